"""Our consumers: group members that come and go, a reader of transactions, and consume-transform-produce."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from barnabas import Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from barnabas.clients.consumer.rebalance_listener import RebalanceListener
from barnabas.clients.errors import ClientError
from barnabas.clients.records import ConsumerRecord
from tests.torture.soak.checker import OUTPUT_PREFIX
from tests.torture.soak.history import Commit, Place, Poll, Transaction
from tests.torture.soak.load.own_producers import end_transaction
from tests.torture.soak.load.stage import PARTITIONS, Stage, pause


class Session(RebalanceListener):
    """The name under which polls are recorded; each assignment begins another one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.number = 0

    async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Begin a session."""
        self.number += 1

    @property
    def name(self) -> str:
        """The current session."""
        return f"{self._name}/{self.number}"


def note_polled(stage: Stage, session: str, records: Sequence[ConsumerRecord]) -> None:
    """Record what a call has returned."""
    tick = stage.history.tick()
    found: dict[Place, list[tuple[int, bytes]]] = defaultdict(list)
    for each in records:
        found[each.topic, each.partition].append((each.offset, each.value or b""))
    stage.history.polls += [Poll(session, place, tick, polled) for place, polled in found.items()]


class OwnMember:
    """A member of a classic group that commits what it reads, leaves, and comes back."""

    def __init__(self, stage: Stage, name: str, bootstrap: str) -> None:
        self._stage = stage
        self._name = name
        self._bootstrap = bootstrap
        self._group = f"classic-{stage.seed}-{stage.number}"
        stage.groups.add(self._group)

    async def run(self) -> None:
        """Read until the stage ends."""
        stage = self._stage
        chance = stage.chance(self._name)
        config = ConsumerConfig(
            bootstrap=self._bootstrap,
            group=self._group,
            offset_reset="earliest",
            auto_commit=False,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=500,
            isolation="read_committed",
        )
        lives = 0
        while not stage.readers_end.is_set():
            lives += 1
            try:
                async with Consumer(config) as consumer:
                    await self._read(consumer, Session(f"{self._name}/{lives}"), polls=chance.choice((10, 50, 1000)))
            except ClientError as error:
                stage.note_error(self._name, error)
                await pause(0.2)

    async def _read(self, consumer: Consumer, session: Session, polls: int) -> None:
        stage = self._stage
        await consumer.subscribe([stage.plain, stage.ledger], session)
        number = 0
        for _ in range(polls):
            if stage.readers_end.is_set():
                return
            note_polled(stage, session.name, await consumer.poll(timeout_ms=100))
            began = stage.history.tick()
            if number != session.number:
                number = session.number
                self._note(await consumer.committed(consumer.assignment), began, is_read=True)
            else:
                self._note(await consumer.commit(), began, is_read=False)
                stage.commits += 1

    def _note(self, offsets: dict[TopicPartition, int], began: int, *, is_read: bool) -> None:
        ended = self._stage.history.tick()
        self._stage.history.commits += [
            Commit(self._group, (each.topic, each.partition), offset, began, ended, is_read)
            for each, offset in offsets.items()
        ]


class OwnReader:
    """A read_committed reader without a group."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def run(self) -> None:
        """Read until the stage ends."""
        stage = self._stage
        config = ConsumerConfig(bootstrap=stage.bootstrap, offset_reset="earliest", isolation="read_committed")
        lives = 0
        while not stage.readers_end.is_set():
            lives += 1
            try:
                async with Consumer(config) as consumer:
                    await consumer.assign((stage.ledger, number) for number in range(PARTITIONS))
                    while not stage.readers_end.is_set():
                        note_polled(stage, f"reader/{lives}", await consumer.poll(timeout_ms=100))
            except ClientError as error:
                stage.note_error("reader", error)
                await pause(0.2)


class OwnPipe:
    """Consume-transform-produce with a group's offsets in the transaction; leaves, and comes back."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._name = f"{name}-{stage.seed}"
        self._group = f"{self._name}-{stage.number}"
        self._output = stage.topic(name)
        self._number = 0
        stage.transactional_ids.add(self._name)
        stage.groups.add(self._group)
        stage.pipes[self._name] = self._output

    async def run(self) -> None:
        """Process until the stage's readers end and all input has been processed."""
        stage = self._stage
        chance = stage.chance(self._name)
        reading = ConsumerConfig(
            bootstrap=stage.bootstrap,
            group=self._group,
            offset_reset="earliest",
            auto_commit=False,
            isolation="read_committed",
            session_timeout_ms=10_000,
            heartbeat_interval_ms=500,
        )
        writing = ProducerConfig(bootstrap=stage.bootstrap, transactional_id=self._name)
        done = False
        while not done:
            try:
                async with Producer(writing) as producer, Consumer(reading) as consumer:
                    await consumer.subscribe([stage.plain])
                    for _ in range(chance.choice((20, 100, 10_000))):
                        if done := await self._step(producer, consumer):
                            break
            except ClientError as error:
                stage.note_error(self._name, error)
                await pause(0.2)

    async def _step(self, producer: Producer, consumer: Consumer) -> bool:
        """Process one batch; return whether nothing is left."""
        ends = self._stage.readers_end.is_set()
        records = await consumer.poll(timeout_ms=100)
        if not records:
            return ends and await self._is_done(consumer)
        history = self._stage.history
        self._number += 1
        transaction = Transaction(f"{self._name}/{self._stage.number}/{self._number}", history.tick())
        history.transactions.append(transaction)
        await producer.begin_transaction()
        for each in records:
            value = OUTPUT_PREFIX + (each.value or b"")
            transaction.reads.append(each.value or b"")
            transaction.writes.append(((self._output, each.partition), value))
            await producer.send(self._output, value, partition=each.partition)
        began = history.tick()
        offsets = await producer.send_offsets_to_transaction(consumer)
        await end_transaction(self._stage, producer, transaction, aborts=False)
        ended = history.tick()
        self._stage.commits += 1
        history.commits += [
            Commit(self._group, (each.topic, each.partition), offset, began, ended) for each, offset in offsets.items()
        ]
        return False

    async def _is_done(self, consumer: Consumer) -> bool:
        """Return whether this member has all partitions, and has read them to their ends."""
        places = [TopicPartition(self._stage.plain, number) for number in range(PARTITIONS)]
        positions = consumer.positions
        return all(positions.get(place, -1) >= end for place, end in (await consumer.end_offsets(places)).items())

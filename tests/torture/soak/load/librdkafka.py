"""librdkafka: an idempotent producer, transactions, and members of a group with the new protocol. Threads."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from tests.torture.soak.history import ABORTED, COMMITTED, Commit, Place, Poll, Transaction, Write
from tests.torture.soak.load.stage import PARTITIONS, Stage
from tests.torture.soak.load.threads import run_in_thread

QUIET: dict[str, Any] = {
    "log_level": 0,
    "error_cb": lambda _: None,  # lost connections are a part of the game
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    # Otherwise librdkafka 2.16 bootstraps again without any broker, and waits for an ended coordinator for ever.
    "metadata.recovery.strategy": "none",
}
_PAUSE_S = 0.02
TIMEOUT_S = 30.0


class LibrdkafkaIdempotent:
    """Sends bursts to all partitions of a topic in one session, which a fatal error ends."""

    def __init__(self, stage: Stage, topic: str) -> None:
        self._stage = stage
        self._topic = topic
        self._number = 0
        self._sessions = 0

    async def run(self) -> None:
        """Write until the stage ends."""
        await run_in_thread(self._run)

    def _run(self) -> None:
        while not self._stage.writers_end.is_set():
            self._sessions += 1
            session = f"librdkafka-{self._stage.number}/{self._sessions}"
            try:
                self._write(session)
            except (KafkaException, SystemError) as error:  # flush() raises the latter because of the former
                self._stage.note_fatal(session, error.__cause__ or error)

    def _write(self, session: str) -> None:
        stage = self._stage
        chance = stage.chance(session)
        producer = Producer({**QUIET, "bootstrap.servers": stage.torn_bootstrap, "enable.idempotence": True})
        while not stage.writers_end.is_set():
            for _ in range(chance.randrange(1, 30)):
                self._number += 1
                self._send(producer, session, self._number, chance.randrange(PARTITIONS))
            producer.poll(0)
            time.sleep(_PAUSE_S)
        producer.flush(TIMEOUT_S)

    def _send(self, producer: Producer, session: str, number: int, partition: int) -> None:
        value = b"%s:%d" % (session.encode(), number)

        def note(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._stage.note_error(session, error)
                return
            offset = message.offset()
            assert offset is not None
            self._stage.history.writes.append(Write(session, number, (self._topic, partition), offset, value))

        producer.produce(self._topic, value, partition=partition, on_delivery=note)


class LibrdkafkaTransactions:
    """Transactions over all partitions of the ledger, of which some are aborted."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._name = f"librdkafka-{stage.seed}"
        self._number = 0
        stage.transactional_ids.add(self._name)

    async def run(self) -> None:
        """Write until the stage ends."""
        await run_in_thread(self._run)

    def _run(self) -> None:
        stage = self._stage
        chance = stage.chance(self._name)
        while not stage.writers_end.is_set():
            producer = Producer(
                {**QUIET, "bootstrap.servers": stage.torn_bootstrap, "transactional.id": self._name, "linger.ms": 0}
            )
            try:
                producer.init_transactions(TIMEOUT_S)
                while not stage.writers_end.is_set():
                    self._transact(producer, aborts=chance.random() < 0.3, size=chance.randrange(1, 5))
                    time.sleep(_PAUSE_S)
            except KafkaException as error:
                stage.note_error(self._name, error)
                time.sleep(0.2)

    def _transact(self, producer: Producer, *, aborts: bool, size: int) -> None:
        history = self._stage.history
        self._number += 1
        transaction = Transaction(f"{self._name}/{self._stage.number}/{self._number}", history.tick())
        history.transactions.append(transaction)
        producer.begin_transaction()
        for index in range(size * PARTITIONS):
            place = (self._stage.ledger, index % PARTITIONS)
            value = b"%s:%d" % (transaction.name.encode(), index)
            transaction.writes.append((place, value))
            producer.produce(place[0], value, partition=place[1])
        if aborts:
            producer.flush(TIMEOUT_S)
        transaction.ending = history.tick()
        if not aborts:
            try:
                producer.commit_transaction(TIMEOUT_S)
            except KafkaException as error:
                if not error.args[0].txn_requires_abort():
                    raise
                self._stage.note_error(transaction.name, error)
                aborts = True
            else:
                transaction.outcome = COMMITTED
        if aborts:
            producer.abort_transaction(TIMEOUT_S)
            transaction.outcome = ABORTED
        transaction.ended = history.tick()


class LibrdkafkaMember:
    """A member of a group with the new protocol (KIP-848) that commits what it reads, leaves, and comes back."""

    def __init__(self, stage: Stage, name: str, bootstrap: str) -> None:
        self._stage = stage
        self._name = name
        self._bootstrap = bootstrap
        self._group = f"new-{stage.seed}-{stage.number}"
        stage.groups.add(self._group)
        self._sessions = 0

    async def run(self) -> None:
        """Read until the stage ends."""
        await run_in_thread(self._run)

    def _run(self) -> None:
        stage = self._stage
        chance = stage.chance(self._name)
        while not stage.readers_end.is_set():
            consumer = Consumer(
                {
                    **QUIET,
                    "bootstrap.servers": self._bootstrap,
                    "group.id": self._group,
                    "group.protocol": "consumer",
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                }
            )
            try:
                consumer.subscribe([stage.plain, stage.ledger], on_assign=self._begin_session)
                for _ in range(chance.choice((20, 100, 1000))):
                    if stage.readers_end.is_set():
                        break
                    self._read(consumer)
            except KafkaException as error:
                stage.note_error(self._name, error)
                time.sleep(0.2)
            finally:
                consumer.close()

    def _begin_session(self, _consumer: Consumer, _partitions: object) -> None:
        self._sessions += 1

    def _read(self, consumer: Consumer) -> None:
        history = self._stage.history
        messages = consumer.consume(200, 0.1)
        tick = history.tick()
        found: dict[Place, list[tuple[int, bytes]]] = defaultdict(list)
        for each in messages:
            if (error := each.error()) is not None:
                self._stage.note_error(self._name, error)
                continue
            topic, partition, offset = each.topic(), each.partition(), each.offset()
            assert topic is not None
            assert partition is not None
            assert offset is not None
            found[topic, partition].append((offset, bytes(each.value() or b"")))
        session = f"{self._name}/{self._sessions}"
        history.polls += [Poll(session, place, tick, polled) for place, polled in found.items()]
        if found:
            self._commit(consumer)

    def _commit(self, consumer: Consumer) -> None:
        history = self._stage.history
        began = history.tick()
        try:
            committed = consumer.commit(asynchronous=False)
        except KafkaException as error:
            self._stage.note_error(self._name, error)
            return
        ended = history.tick()
        self._stage.commits += 1
        history.commits += [
            Commit(self._group, (each.topic, each.partition), each.offset, began, ended)
            for each in committed or ()
            if each.error is None and each.offset >= 0
        ]

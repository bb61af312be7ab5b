"""Our producers: idempotent ones, writers of compacted topics, and transactions."""

from __future__ import annotations

import asyncio

from barnabas import Producer, ProducerConfig
from barnabas.clients.errors import ClientError
from tests.torture.soak.history import ABORTED, COMMITTED, KeyedWrite, Transaction, Write
from tests.torture.soak.load.stage import PARTITIONS, Stage, pause

_PAUSE_S = 0.02
_ENDINGS = 20
"""How often the outcome of a transaction is asked for."""
KEYS = 20


class OwnIdempotent:
    """Sends bursts to all partitions of a topic, each producer being a session."""

    def __init__(self, stage: Stage, name: str, topic: str, bootstrap: str) -> None:
        self._stage = stage
        self._name = name
        self._topic = topic
        self._bootstrap = bootstrap
        self._number = 0
        self._sessions = 0

    async def run(self) -> None:
        """Write until the stage ends."""
        while not self._stage.writers_end.is_set():
            self._sessions += 1
            try:
                async with Producer(ProducerConfig(bootstrap=self._bootstrap)) as producer:
                    await self._send(producer, f"{self._name}/{self._sessions}")
            except ClientError as error:
                self._stage.note_error(self._name, error)
                await pause(0.2)

    async def _send(self, producer: Producer, session: str) -> None:
        chance = self._stage.chance(session)
        # Some sessions are short, so that producer ids come and go.
        for _ in range(chance.choice((20, 200, 10_000))):
            if self._stage.writers_end.is_set():
                return
            sent = []
            for _ in range(chance.randrange(1, 30)):
                self._number += 1
                value = b"%s:%d:%s" % (session.encode(), self._number, b"." * chance.randrange(200))
                place = (self._topic, chance.randrange(PARTITIONS))
                sent.append((self._number, place, value, await producer.send(self._topic, value, partition=place[1])))
            for number, place, value, future in sent:
                try:
                    found = await future
                except ClientError as error:
                    self._stage.note_error(session, error)
                else:
                    self._stage.history.writes.append(Write(session, number, place, found.offset, value))
            await pause(_PAUSE_S)


class OwnKeyed:
    """Writes rising numbers to the keys of the compacted topic, each key's writes one after the other."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._numbers = [0] * KEYS

    async def run(self) -> None:
        """Write until the stage ends."""
        stage = self._stage
        chance = stage.chance("keyed")
        while not stage.writers_end.is_set():
            try:
                async with Producer(ProducerConfig(bootstrap=stage.bootstrap)) as producer:
                    while not stage.writers_end.is_set():
                        chosen = chance.sample(range(KEYS), 10)
                        await asyncio.gather(*(self._write(producer, each) for each in chosen))
                        await pause(_PAUSE_S)
            except ClientError as error:
                stage.note_error("keyed", error)
                await pause(0.2)

    async def _write(self, producer: Producer, index: int) -> None:
        self._numbers[index] += 1
        number, key, place = self._numbers[index], b"key-%d" % index, (self._stage.keyed, index % PARTITIONS)
        value = b"%s%s#%d" % (key, b"." * 200, number)
        try:
            await producer.send_and_wait(place[0], value, key, partition=place[1])
        except ClientError as error:
            self._stage.note_error("keyed", error)
            self._stage.history.keyed.append(KeyedWrite(place, key, number, is_acknowledged=False))
        else:
            self._stage.history.keyed.append(KeyedWrite(place, key, number, is_acknowledged=True))


class OwnTransactions:
    """Transactions over all partitions of the ledger, of which some are aborted."""

    def __init__(self, stage: Stage, name: str, bootstrap: str) -> None:
        self._stage = stage
        self._bootstrap = bootstrap
        self._name = f"{name}-{stage.seed}"
        self._number = 0
        stage.transactional_ids.add(self._name)

    async def run(self) -> None:
        """Write until the stage ends."""
        stage = self._stage
        config = ProducerConfig(bootstrap=self._bootstrap, transactional_id=self._name)
        chance = stage.chance(self._name)
        while not stage.writers_end.is_set():
            try:
                async with Producer(config) as producer:
                    while not stage.writers_end.is_set():
                        await self._transact(producer, aborts=chance.random() < 0.3, size=chance.randrange(1, 5))
                        await pause(_PAUSE_S)
            except ClientError as error:
                stage.note_error(self._name, error)
                await pause(0.2)

    async def _transact(self, producer: Producer, *, aborts: bool, size: int) -> None:
        history = self._stage.history
        self._number += 1
        transaction = Transaction(f"{self._name}/{self._stage.number}/{self._number}", history.tick())
        history.transactions.append(transaction)
        await producer.begin_transaction()
        for index in range(size * PARTITIONS):
            place = (self._stage.ledger, index % PARTITIONS)
            value = b"%s:%d" % (transaction.name.encode(), index)
            transaction.writes.append((place, value))
            await producer.send(place[0], value, partition=place[1])
        if aborts:
            await pause(_PAUSE_S)  # so that the records are written, and readers have the time to be wrong
        await end_transaction(self._stage, producer, transaction, aborts=aborts)


async def end_transaction(stage: Stage, producer: Producer, transaction: Transaction, *, aborts: bool) -> None:
    """Commit or abort, and record the outcome. Raises ClientError, with the outcome unknown."""
    transaction.ending = stage.history.tick()
    for attempt in range(_ENDINGS):
        try:
            if aborts:
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
        except (ConnectionError, TimeoutError) as error:
            if attempt == _ENDINGS - 1:
                raise
            stage.note_error(transaction.name, error)
            await pause(0.1)
        else:
            break
    transaction.outcome = ABORTED if aborts else COMMITTED
    transaction.ended = stage.history.tick()

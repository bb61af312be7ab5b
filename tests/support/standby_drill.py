"""A workload whose acknowledgements, and whatever readers saw, are compared with what a takeover has left."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from dataclasses import dataclass, field

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig
from barnabas.clients.errors import ClientError
from barnabas.protocol.topic_partition import TopicPartition

IDEMPOTENT = "idempotent"
TRANSACTIONAL = "transactional"
PARTITIONS = 2
GROUP = "drill"
_REQUEST_MS = 1000
_TIMEOUT_MS = 2000

Place = tuple[str, int, int]
"""Topic, partition, offset."""


@dataclass
class Promises:
    """What the active broker has told its clients."""

    acknowledged: set[bytes] = field(default_factory=set)
    committed: set[bytes] = field(default_factory=set)
    """Values of committed transactions; each has a record in every partition."""
    aborted: set[bytes] = field(default_factory=set)
    seen: dict[Place, bytes] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    """The group's committed offsets by partition."""


@dataclass
class Drill:
    """One run of the workload against a broker."""

    bootstrap: str
    seed: int
    producers: int = 3
    promises: Promises = field(default_factory=Promises)
    may_end: bool = False
    """Whether clients may give up: their broker is dead or stands still. On a busy machine a takeover lasts longer."""

    async def run(self, stopped: asyncio.Event) -> None:
        """Run until `stopped`, then end all clients."""
        names = [f"{self.seed}-{number}" for number in range(self.producers)]
        works = [
            *(self._produce(name) for name in names),
            *(self._transact(name) for name in names),
            self._commit_offsets(),
            self._read(),
        ]
        tasks = [asyncio.create_task(each) for each in works]
        waiting = asyncio.create_task(stopped.wait())
        left = {waiting, *tasks}
        while not stopped.is_set():
            _, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            if not self.may_end:
                break
        for task in tasks:
            task.cancel()
        waiting.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, ClientError):
                raise result
        assert stopped.is_set(), f"a client has stopped before the broker: {results}"

    def _producer_config(self, transactional_id: str | None) -> ProducerConfig:
        return ProducerConfig(
            bootstrap=self.bootstrap,
            transactional_id=transactional_id,
            request_timeout_ms=_REQUEST_MS,
            api_timeout_ms=_TIMEOUT_MS,
            delivery_timeout_ms=_TIMEOUT_MS,
        )

    async def _produce(self, name: str) -> None:
        async with Producer(self._producer_config(None)) as producer:
            number = 0
            while True:
                value = f"{name}-{number}".encode()
                with contextlib.suppress(ClientError):
                    await producer.send_and_wait(IDEMPOTENT, value, partition=number % PARTITIONS)
                    self.promises.acknowledged.add(value)
                number += 1

    async def _transact(self, name: str) -> None:
        chance = random.Random(name)
        async with Producer(self._producer_config(name)) as producer:
            number = 0
            while True:
                value = f"{name}-{number}".encode()
                aborts = chance.random() < 0.25
                try:
                    async with producer.transaction():
                        for partition in range(PARTITIONS):
                            await producer.send_and_wait(TRANSACTIONAL, value, partition=partition)
                        if aborts:
                            raise ZeroDivisionError
                except ZeroDivisionError:
                    self.promises.aborted.add(value)
                else:
                    self.promises.committed.add(value)
                number += 1

    async def _read(self) -> None:
        config = ConsumerConfig(
            bootstrap=self.bootstrap,
            offset_reset="earliest",
            isolation="read_committed",
            request_timeout_ms=_REQUEST_MS,
            api_timeout_ms=_TIMEOUT_MS,
        )
        async with Consumer(config) as consumer:
            await consumer.assign(partitions())
            while True:
                for each in await consumer.poll(timeout_ms=100):
                    self.promises.seen[each.topic, each.partition, each.offset] = each.value or b""

    async def _commit_offsets(self) -> None:
        config = ConsumerConfig(
            bootstrap=self.bootstrap,
            group=GROUP,
            offset_reset="earliest",
            auto_commit=False,
            request_timeout_ms=_REQUEST_MS,
            api_timeout_ms=_TIMEOUT_MS,
        )
        mine = [each for each in partitions() if each.topic == IDEMPOTENT]
        async with Consumer(config) as consumer:
            await consumer.assign(mine)
            while True:
                found = await consumer.poll(timeout_ms=100)
                await consumer.commit()
                for each in found:
                    self.promises.offsets[each.partition] = each.offset + 1


def partitions() -> list[TopicPartition]:
    """Return all partitions of the drill's topics."""
    return [TopicPartition(topic, number) for topic in (IDEMPOTENT, TRANSACTIONAL) for number in range(PARTITIONS)]


async def end_transactions(bootstrap: str, drill: Drill) -> None:
    """Let the coordinator end what the drill's transactional producers have left open."""
    for number in range(drill.producers):
        async with Producer(ProducerConfig(bootstrap=bootstrap, transactional_id=f"{drill.seed}-{number}")):
            pass


async def stored(bootstrap: str) -> dict[Place, bytes]:
    """Return all committed records of a broker whose transactions have ended."""
    found: dict[Place, bytes] = {}
    config = ConsumerConfig(bootstrap=bootstrap, offset_reset="earliest", isolation="read_committed")
    async with Consumer(config) as consumer, asyncio.timeout(60):
        await consumer.assign(partitions())
        ends = await consumer.end_offsets(partitions())
        for key, end in ends.items():
            while await consumer.position(key) < end:
                for each in await consumer.poll(timeout_ms=100):
                    found[each.topic, each.partition, each.offset] = each.value or b""
    return found


async def check(bootstrap: str, promises: Promises) -> None:
    """Fail if the broker lacks anything that was promised, or has it twice."""
    found = await stored(bootstrap)
    lost = {place: value for place, value in promises.seen.items() if found.get(place) != value}
    assert not lost, f"a reader saw records that are gone: {dict(list(lost.items())[:5])}, {len(lost)} in all"
    single = Counter(value for (topic, _, _), value in found.items() if topic == IDEMPOTENT)
    missing = promises.acknowledged - single.keys()
    assert not missing, f"acknowledged, and lost: {sorted(missing)[:5]}, {len(missing)} in all"
    assert not [value for value, count in single.items() if count > 1], "a record was written twice"
    by_partition = Counter((value, number) for (topic, number, _), value in found.items() if topic == TRANSACTIONAL)
    assert not [each for each, count in by_partition.items() if count > 1], "a transaction was written twice"
    wholes = Counter(value for value, _ in by_partition)
    missing = promises.committed - wholes.keys()
    assert not missing, f"committed, and lost: {sorted(missing)[:5]}, {len(missing)} in all"
    assert not [value for value, count in wholes.items() if count != PARTITIONS], "half of a transaction is committed"
    assert not promises.aborted & wholes.keys(), "an aborted transaction is committed"
    async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
        offsets = await admin.group_offsets(GROUP)
    for partition, offset in promises.offsets.items():
        assert offsets[TopicPartition(IDEMPOTENT, partition)].offset >= offset, "a committed offset was lost"

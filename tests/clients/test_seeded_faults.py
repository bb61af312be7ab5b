"""Producer and consumer together against a broker with seeded faults: drops, refusals, repeats and silence.

Whatever happens: every record is stored, once and in order (without idempotence: at least once, first copies in order),
at the offset that its future names; and the consumer hands out every stored offset exactly once and in order.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import pytest

from barnabas.clients.config import ConsumerConfig, ProducerConfig
from barnabas.clients.consumer.consumer import Consumer
from barnabas.clients.errors import BrokerConnectionError
from barnabas.clients.producer.producer import Producer
from barnabas.clients.records import RecordMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.topic_partition import TopicPartition
from tests.clients.fake_broker import Action, Drop, FakeBroker, RefusePartitions, Silence

PARTITIONS = 4
RECORDS = 2_000
PASSING = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.LEADER_NOT_AVAILABLE)
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 2,
    "retry_backoff_max_ms": 10,
    "reconnect_backoff_ms": 2,
    "reconnect_backoff_max_ms": 10,
    "request_timeout_ms": 100,
}


Client = TypeVar("Client", Producer, Consumer)


class Faults:
    """The fault of each request. The response to the first produce request is always lost, whatever the seed."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._produced = False

    def __call__(self, api: ApiKey, request: Any) -> Action | None:
        draw = self._chance.random()
        if api is ApiKey.PRODUCE and not self._produced:
            self._produced = True
            return Drop(serve_first=True)
        if api not in (ApiKey.PRODUCE, ApiKey.FETCH):
            return Drop() if draw < 0.05 else None
        if draw < 0.05:
            return Drop()
        if draw < 0.10:
            return Drop(serve_first=True)
        if draw < 0.15:
            return RefusePartitions(self._chance.choice(PASSING))
        return Silence() if draw < 0.16 else None


async def started(make: Callable[[], Client]) -> Client:
    """A start fails immediately when the broker does not answer: retry until one succeeds."""
    async with asyncio.timeout(30):
        while True:
            client = make()
            with suppress(BrokerConnectionError):
                await client.start()
                return client


async def produce(broker: FakeBroker, chance: random.Random, *, idempotent: bool) -> list[RecordMetadata]:
    config = ProducerConfig(
        bootstrap=broker.bootstrap,
        batch_size=chance.choice([200, 1_000, 5_000]),
        buffer_memory=100_000,
        compression=chance.choice(["none", "lz4", "zstd"]),
        linger_ms=chance.choice([0, 1]),
        max_in_flight=chance.choice([1, 2, 5]),
        enable_idempotence=idempotent,
        **QUICK,
    )
    producer = await started(lambda: Producer(config))
    try:
        futures = [await producer.send("t", b"%d" % number, partition=number % PARTITIONS) for number in range(RECORDS)]
        return await asyncio.gather(*futures)
    finally:
        await producer.close()


async def consume(broker: FakeBroker, chance: random.Random) -> dict[int, list[int]]:
    """The offsets of each partition as they were handed out, until every value has been seen."""
    config = ConsumerConfig(
        bootstrap=broker.bootstrap,
        offset_reset="earliest",
        max_partition_bytes=chance.choice([300, 3_000]),
        prefetch_bytes=chance.choice([500, 50_000]),
        max_wait_ms=20,
        **QUICK,
    )
    consumer = await started(lambda: Consumer(config))
    partitions = [TopicPartition("t", number) for number in range(PARTITIONS)]
    offsets: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
    values: set[bytes | None] = set()
    try:
        await consumer.assign(partitions)
        while len(values) < RECORDS:
            for record in await consumer.poll(chance.choice([1, 10, 500]), 50):
                offsets[record.partition].append(record.offset)
                values.add(record.value)
            moved = chance.choice(partitions)
            if chance.random() < 0.02 and offsets[moved.partition]:
                consumer.seek(moved, offsets[moved.partition][-1] + 1)
            if chance.random() < 0.02:
                consumer.pause(partitions[0])
            if chance.random() < 0.1:
                consumer.resume()
        return offsets
    finally:
        await consumer.close()


async def run(broker: FakeBroker, seed: int, *, idempotent: bool) -> None:
    """Produce and consume under faults, and check what holds in any case."""
    chance = random.Random(seed)
    broker.create("t", PARTITIONS)
    broker.intercept = Faults(chance)
    async with asyncio.timeout(60):
        metadata, offsets = await asyncio.gather(
            produce(broker, chance, idempotent=idempotent), consume(broker, chance)
        )
    broker.intercept = lambda api, request: None
    for partition in range(PARTITIONS):
        assert list(dict.fromkeys(broker.log("t", partition).values())) == expected(partition)
        assert offsets[partition] == list(range(len(offsets[partition])))
    for number, where in enumerate(metadata):
        assert broker.log("t", where.partition).values()[where.offset] == b"%d" % number


def expected(partition: int) -> list[bytes | None]:
    """The values that were sent to a partition."""
    return [b"%d" % number for number in range(partition, RECORDS, PARTITIONS)]


@pytest.mark.parametrize("seed", range(1, 9))
async def test_no_record_is_lost_reordered_stored_twice_or_read_twice(seed: int) -> None:
    async with FakeBroker() as broker:
        await run(broker, seed, idempotent=True)
        for partition in range(PARTITIONS):
            assert broker.log("t", partition).values() == expected(partition)


@pytest.mark.parametrize("seed", range(1, 4))
async def test_without_idempotence_no_record_is_lost_or_reordered_but_some_are_stored_twice(seed: int) -> None:
    async with FakeBroker() as broker:
        await run(broker, seed, idempotent=False)
        assert sum(len(broker.log("t", partition).values()) for partition in range(PARTITIONS)) > RECORDS

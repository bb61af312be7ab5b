"""Producer, Consumer and Admin of this project at one node of Apache Kafka 3.9, which has transaction.version 0."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas import (
    Admin,
    AdminConfig,
    Consumer,
    ConsumerConfig,
    Producer,
    ProducerConfig,
    RefusedError,
    TopicPartition,
)
from barnabas.clients.errors import ProducerFencedError
from barnabas.clients.group_offsets import CommittedOffset
from tests.interop.clients.target import Target, running_kafka

PLACES = [TopicPartition("t", number) for number in range(3)]
BOUND_S = 60.0


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with running_kafka("3.9.1", tmp_path_factory.mktemp("kafka")) as running:
        running.create_topic("t", len(PLACES))
        yield running


def transactional(kafka: Target) -> Producer:
    return Producer(ProducerConfig(bootstrap=kafka.bootstrap, transactional_id="old"))


async def send(producer: Producer, name: str) -> list[bytes]:
    values = [b"%s-%d" % (name.encode(), place.partition) for place in PLACES]
    futures = [await producer.send("t", value, partition=number) for number, value in enumerate(values)]
    await asyncio.gather(*futures)
    return values


async def test_transactions_commit_with_offsets_abort_and_are_fenced(kafka: Target) -> None:
    config = ConsumerConfig(
        bootstrap=kafka.bootstrap, group="g", auto_commit=False, offset_reset="earliest", isolation="read_committed"
    )
    expected: list[bytes] = []
    admin = Admin(AdminConfig(bootstrap=kafka.bootstrap))
    async with asyncio.timeout(BOUND_S), transactional(kafka) as producer, Consumer(config) as consumer, admin:
        for number in range(3):
            async with producer.transaction():
                expected += await send(producer, f"committed{number}")
        await producer.begin_transaction()
        await send(producer, "aborted")
        await producer.abort_transaction()
        await consumer.subscribe(["t"])
        read: list[bytes | None] = []
        while len(read) < len(expected):
            read += [record.value for record in await consumer.poll(timeout_ms=200)]
        assert sorted(map(str, read)) == sorted(map(str, expected))
        async with producer.transaction():
            await send(producer, "result")
            sent = await producer.send_offsets_to_transaction(consumer)
        committed = await admin.group_offsets("g", PLACES, require_stable=True)
        assert {place: each.offset for place, each in committed.items()} == sent
        (described,) = (await admin.describe_transactions(["old"])).values()
        assert not isinstance(described, RefusedError)
        assert described.producer_epoch == 0, "it rises with transaction.version 2 only"
        await producer.begin_transaction()
        await send(producer, "fenced")
        assert len(await admin.open_transactions(PLACES)) == len(PLACES)
        async with transactional(kafka):
            with pytest.raises(ProducerFencedError):
                await producer.commit_transaction()


async def test_groups_and_transactions_are_described_in_the_versions_that_it_has(kafka: Target) -> None:
    async with Admin(AdminConfig(bootstrap=kafka.bootstrap)) as admin:
        await admin.set_group_offsets("committed", {PLACES[0]: CommittedOffset(0)})
        assert "committed" in [each.group_id for each in await admin.list_groups()]
        assert (await admin.describe_group("committed")).state == "Empty"
        with pytest.raises(RefusedError, match="there is no group 'nobody'"):
            await admin.describe_group("nobody")
        assert [each.transactional_id for each in await admin.list_transactions()] == ["old"]
        with pytest.raises(RefusedError, match="lists transactions without this filter"):
            await admin.list_transactions(pattern="o.*")
        (directory,) = await admin.describe_log_dirs(PLACES)
        assert (directory.broker, len(directory.replicas)) == (1, len(PLACES))

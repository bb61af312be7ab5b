"""One group with members of two libraries and protocols: Barnabas's (native) and librdkafka (Kafka). Either leads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import confluent_kafka
import pytest

from barnabas import (
    Admin,
    AdminConfig,
    Consumer,
    ConsumerConfig,
    Producer,
    ProducerConfig,
    RebalanceListener,
    TopicPartition,
)
from tests.clients.waiting import until
from tests.support.daemon import Daemon, start_daemon

PARTITIONS = 5
NEWER_PROTOCOL = "consumer"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("daemon"), "group.consumer.heartbeat.interval.ms=50") as running:
        yield running


class Member(RebalanceListener):
    """A member's partitions, and the values that it read."""

    def __init__(self) -> None:
        self.owned: list[int] = []
        self.values: set[bytes] = set()

    async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.owned = sorted({*self.owned, *(each.partition for each in partitions)})

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.owned = sorted({*self.owned}.difference(each.partition for each in partitions))


@asynccontextmanager
async def ours(daemon: Daemon, topic: str, assignor: str) -> AsyncIterator[Member]:
    member = Member()
    config = ConsumerConfig(
        bootstrap=daemon.bootstrap,
        group=topic,
        offset_reset="earliest",
        heartbeat_interval_ms=50,
        assignors=(assignor,),
    )

    async def read() -> None:
        while True:
            member.values.update(record.value or b"" for record in await consumer.poll())

    async with Consumer(config) as consumer:
        await consumer.subscribe([topic], member)
        reading = asyncio.create_task(read())
        try:
            yield member
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


@asynccontextmanager
async def librdkafkas(daemon: Daemon, topic: str, assignor: str) -> AsyncIterator[Member]:
    member = Member()
    stopping = False

    def assigned(_: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
        member.owned = sorted({*member.owned, *(each.partition for each in partitions)})

    def revoked(_: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
        member.owned = sorted({*member.owned}.difference(each.partition for each in partitions))

    classic = {"heartbeat.interval.ms": 50, "partition.assignment.strategy": assignor}
    protocol = {"group.protocol": NEWER_PROTOCOL} if assignor == NEWER_PROTOCOL else classic

    def read() -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": daemon.bootstrap,
                "group.id": topic,
                "auto.offset.reset": "earliest",
                **protocol,
            }
        )
        consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked)
        while not stopping:
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                member.values.add(message.value() or b"")
        consumer.close()

    reading = asyncio.create_task(asyncio.to_thread(read))
    try:
        yield member
    finally:
        stopping = True
        await reading


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
@pytest.mark.parametrize("first_is_ours", [True, False], ids=["ours leads", "librdkafka leads"])
async def test_partitions_are_shared_between_libraries(daemon: Daemon, assignor: str, first_is_ours: bool) -> None:
    topic = f"{assignor}-{first_is_ours}"
    daemon.create_topic(topic, partitions=PARTITIONS)
    first_kind, second_kind = (ours, librdkafkas) if first_is_ours else (librdkafkas, ours)
    async with first_kind(daemon, topic, assignor) as first:
        await until(lambda: len(first.owned) == PARTITIONS)
        async with second_kind(daemon, topic, assignor) as second:
            await until(lambda: len(second.owned) >= 2 and sorted(first.owned + second.owned) == [*range(PARTITIONS)])
            async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
                for number in range(50):
                    await producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
            await until(lambda: len(first.values | second.values) == 50)
            assert first.values
            assert second.values
        await until(lambda: len(first.owned) == PARTITIONS)


async def test_our_member_and_one_of_the_newer_protocol_share_a_group(daemon: Daemon) -> None:
    daemon.create_topic("migrating", partitions=PARTITIONS)
    async with ours(daemon, "migrating", "range") as classic:
        await until(lambda: len(classic.owned) == PARTITIONS)
        async with librdkafkas(daemon, "migrating", NEWER_PROTOCOL) as newer:
            await until(lambda: len(newer.owned) >= 2 and sorted(classic.owned + newer.owned) == [*range(PARTITIONS)])
            async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
                described = await admin.describe_group("migrating")
            assert {each.client_id for each in described.members} == {"barnabas", "rdkafka"}
            assert sorted(each.partition for member in described.members for each in member.partitions) == [
                *range(PARTITIONS)
            ]
        await until(lambda: len(classic.owned) == PARTITIONS)

"""A consumer subscribed to a pattern reads matching topics as they are created, and gives up deleted ones."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

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

LONG_MS = 600_000
EAGER, COOPERATIVE = ("range",), ("cooperative-sticky",)
both = pytest.mark.parametrize("assignors", [EAGER, COOPERATIVE], ids=["eager", "cooperative"])


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("daemon")) as running:
        yield running


class Reader(RebalanceListener):
    """A subscribed consumer, with the partitions it gave up and the records it read."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.revoked: list[TopicPartition] = []
        self.values: list[bytes | None] = []

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.revoked += partitions

    def has(self, counts: dict[str, int]) -> bool:
        """Whether it has exactly these topics' partitions."""
        wanted = [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
        return sorted(self.consumer.assignment) == sorted(wanted)

    async def read(self) -> None:
        while True:
            self.values += [record.value for record in await self.consumer.poll(timeout_ms=LONG_MS)]


def config(daemon: Daemon, group: str, **changes: Any) -> ConsumerConfig:
    settings: dict[str, Any] = {
        "offset_reset": "earliest",
        "heartbeat_interval_ms": 20,
        "metadata_max_age_ms": 50,
        **changes,
    }
    return ConsumerConfig(bootstrap=daemon.bootstrap, group=group, **settings)


@asynccontextmanager
async def reading(daemon: Daemon, pattern: str | re.Pattern[str], **changes: Any) -> AsyncIterator[Reader]:
    """A member of the group of the pattern's name. An error of its poll is raised at the end."""
    group = pattern if isinstance(pattern, str) else pattern.pattern
    async with Consumer(config(daemon, group, **changes)) as consumer:
        reader = Reader(consumer)
        await consumer.subscribe(listener=reader, pattern=pattern)
        task = asyncio.create_task(reader.read())
        try:
            yield reader
        finally:
            task.cancel()
            (ended,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError), ended


@asynccontextmanager
async def admin_of(daemon: Daemon) -> AsyncIterator[Admin]:
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        yield admin


async def send(daemon: Daemon, topic: str, value: bytes) -> None:
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
        await producer.send(topic, value, partition=0)


@both
async def test_created_topics_are_read_and_deleted_ones_given_up(daemon: Daemon, assignors: tuple[str, ...]) -> None:
    kind = assignors[0][0]
    one, two, other = (f"{kind}-{name}" for name in ("one", "two", "xother"))
    daemon.create_topic(other)
    async with admin_of(daemon) as admin, reading(daemon, f"{kind}-[a-w].*", assignors=assignors) as reader:
        assert not [*reader.consumer.subscription]
        daemon.create_topic(one, partitions=2)
        await send(daemon, one, b"1")
        await until(lambda: {*reader.values} == {b"1"} and reader.has({one: 2}))
        daemon.create_topic(two)
        await send(daemon, two, b"2")
        await until(lambda: {*reader.values} == {b"1", b"2"} and reader.has({one: 2, two: 1}))
        assert list(reader.consumer.subscription) == [one, two]
        await admin.create_partitions(two, 3)
        await until(lambda: reader.has({one: 2, two: 3}))
        await admin.delete_topic(one)
        await until(lambda: reader.has({two: 3}))
        assert {each for each in reader.revoked if each.topic == one} == {
            TopicPartition(one, 0),
            TopicPartition(one, 1),
        }
        if assignors == COOPERATIVE:
            assert not [each for each in reader.revoked if each.topic == two]
        await send(daemon, two, b"3")
        await until(lambda: {*reader.values} == {b"1", b"2", b"3"})


async def test_a_deletion_noticed_by_a_fetch_first_is_not_an_error(daemon: Daemon) -> None:
    daemon.create_topic("fetched-a")
    daemon.create_topic("fetched-b")
    slow = {
        "metadata_max_age_ms": LONG_MS,
        "heartbeat_interval_ms": 40_000,
    }  # neither a look nor the leader's comes first
    async with admin_of(daemon) as admin, reading(daemon, "fetched-.", **slow) as reader:
        await until(lambda: reader.has({"fetched-a": 1, "fetched-b": 1}))
        await admin.delete_topic("fetched-a")
        await until(lambda: reader.has({"fetched-b": 1}))
        await send(daemon, "fetched-b", b"on")
        await until(lambda: {*reader.values} == {b"on"})


@both
async def test_members_with_one_pattern_share_new_topics(daemon: Daemon, assignors: tuple[str, ...]) -> None:
    topics = [f"shared-{assignors[0]}-{number}" for number in range(2)]
    pattern = re.compile(rf"shared-{assignors[0]}-\d")
    async with (
        reading(daemon, pattern, assignors=assignors) as first,
        reading(daemon, pattern, assignors=assignors) as second,
    ):
        for done, topic in enumerate(topics, 1):
            daemon.create_topic(topic, partitions=4)
            wanted = sorted(TopicPartition(name, number) for name in topics[:done] for number in range(4))
            await until(lambda: sorted([*first.consumer.assignment, *second.consumer.assignment]) == wanted)  # noqa: B023
            await until(lambda: len(first.consumer.assignment) == len(second.consumer.assignment))


async def test_patterns_match_whole_names_and_internal_topics_only_on_request(daemon: Daemon) -> None:
    for name in ("whole", "whole-name"):
        daemon.create_topic(name)
    async with Consumer(config(daemon, "anything")) as consumer:
        await consumer.commit({TopicPartition("whole", 0): 0})  # makes __consumer_offsets
        await consumer.subscribe(pattern="whole")
        assert list(consumer.subscription) == ["whole"]
        await consumer.subscribe(pattern=".*offsets")
        assert not [*consumer.subscription]
        await consumer.subscribe(["whole-name"])
        assert list(consumer.subscription) == ["whole-name"]
        assert consumer._subscription._pattern is None
    async with Consumer(config(daemon, "internals", exclude_internal_topics=False)) as consumer:
        await consumer.subscribe(pattern=".*offsets")
        assert consumer.subscription == ("__consumer_offsets",)


async def test_an_invalid_pattern_is_refused_and_changes_nothing(daemon: Daemon) -> None:
    daemon.create_topic("kept")
    async with Consumer(config(daemon, "refused")) as consumer:
        await consumer.subscribe(["kept"])
        with pytest.raises(ValueError, match=r"'\(' is not a regular expression that is served: missing \)"):
            await consumer.subscribe(pattern="(")
        with pytest.raises(ValueError, match="topics or to a pattern, one of the two"):
            await consumer.subscribe(["kept"], pattern="k.*")
        with pytest.raises(ValueError, match="topics or to a pattern, one of the two"):
            await consumer.subscribe()
        assert consumer.subscription == ("kept",)

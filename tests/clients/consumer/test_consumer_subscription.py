"""Subscribed consumers share partitions, give them up in order, and commit only records that were processed."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from barnabas import (
    Admin,
    AdminConfig,
    ClientError,
    CommitFailedError,
    Consumer,
    ConsumerConfig,
    ErrorCode,
    Producer,
    ProducerConfig,
    RebalanceListener,
    RefusedError,
    TopicPartition,
    UnknownTopicError,
)
from tests.clients.waiting import until
from tests.support.daemon import Daemon, start_daemon
from tests.support.groups.admin_offsets import committed, until_committed

PARTITIONS = 4
LONG_MS = 600_000
_numbers = count()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("daemon"), "group.min.session.timeout.ms=100") as running:
        yield running


@pytest.fixture
def topic(daemon: Daemon) -> str:
    """A new topic, whose name is also the group's."""
    name = f"orders-{next(_numbers)}"
    daemon.create_topic(name, partitions=PARTITIONS)
    return name


class Events(RebalanceListener):
    """What happened to a consumer's partitions, by their numbers."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, list[int]]] = []

    async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.seen.append(("assigned", sorted(each.partition for each in partitions)))

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.seen.append(("revoked", sorted(each.partition for each in partitions)))

    async def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.seen.append(("lost", sorted(each.partition for each in partitions)))

    @property
    def owned(self) -> list[int]:
        """The partitions of the last event, empty after a revocation."""
        return self.seen[-1][1] if self.seen and self.seen[-1][0] == "assigned" else []


class Reader:
    """A subscribed consumer with a task that polls it."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.events = Events()
        self.values: list[bytes | None] = []
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Continue polling."""
        self._task = asyncio.create_task(self._read())

    async def rest(self) -> None:
        """Stop polling."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _read(self) -> None:
        while True:
            self.values += [record.value for record in await self.consumer.poll(timeout_ms=LONG_MS)]


def config(daemon: Daemon, group: str, **changes: Any) -> ConsumerConfig:
    settings: dict[str, Any] = {
        "offset_reset": "earliest",
        "heartbeat_interval_ms": 20,
        "session_timeout_ms": 10_000,
        "auto_commit_interval_ms": LONG_MS,
        **changes,
    }
    return ConsumerConfig(bootstrap=daemon.bootstrap, group=group, **settings)


@asynccontextmanager
async def reader(daemon: Daemon, topic: str, **changes: Any) -> AsyncIterator[Reader]:
    """A member that reads, and leaves at the end."""
    async with Consumer(config(daemon, topic, **changes)) as consumer:
        running = Reader(consumer)
        await consumer.subscribe([topic], running.events)
        running.begin()
        try:
            yield running
        finally:
            await running.rest()


async def produce(daemon: Daemon, topic: str, values: range) -> None:
    """Send the values to the partitions in turn."""
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
        for number in values:
            await producer.send(topic, b"%d" % number, partition=number % PARTITIONS)


def numbers(values: range) -> set[bytes]:
    return {b"%d" % number for number in values}


async def state(daemon: Daemon, group: str) -> str:
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        return {each.group_id: each.state for each in await admin.list_groups()}[group]


async def test_a_single_member_has_all_partitions_and_the_next_one_continues_after_it(
    daemon: Daemon, topic: str
) -> None:
    await produce(daemon, topic, range(20))
    async with Consumer(config(daemon, topic)) as first:
        await first.subscribe([topic])
        read = {(await anext(first)).value for _ in range(20)}
        assert read == numbers(range(20))
        assert sorted(first.assignment) == [TopicPartition(topic, number) for number in range(PARTITIONS)]
        assert first.subscription == (topic,)
        assert await state(daemon, topic) == "Stable"
    assert await committed(daemon, topic) == dict.fromkeys(range(PARTITIONS), 5)
    assert await state(daemon, topic) == "Empty"
    await produce(daemon, topic, range(20, 24))
    async with reader(daemon, topic) as second:
        await until(lambda: len(second.values) >= 4)
        assert set(second.values) == numbers(range(20, 24))


async def test_members_share_partitions_and_take_over_those_of_a_leaving_member(daemon: Daemon, topic: str) -> None:
    async with reader(daemon, topic) as first:
        await until(lambda: first.events.owned == [0, 1, 2, 3])
        async with AsyncExitStack() as stack:
            second = await stack.enter_async_context(reader(daemon, topic))
            await until(lambda: len(first.events.owned) == len(second.events.owned) == 2)
            assert sorted(first.events.owned + second.events.owned) == [0, 1, 2, 3]
            assert first.events.seen[1] == ("revoked", [0, 1, 2, 3])
            await produce(daemon, topic, range(40))
            await until(lambda: len(first.values) + len(second.values) == 40)
            assert Counter(first.values + second.values) == Counter(numbers(range(40)))
        assert second.events.seen[-1][0] == "revoked"
        await until(lambda: first.events.owned == [0, 1, 2, 3])
        await produce(daemon, topic, range(40, 80))
        await until(lambda: len(first.values) + len(second.values) == 80)
    assert Counter(first.values + second.values) == Counter(numbers(range(80)))  # it had committed before it left


async def test_more_members_than_partitions_leave_one_with_nothing(daemon: Daemon) -> None:
    daemon.create_topic("single")
    async with reader(daemon, "single") as first, reader(daemon, "single") as second:
        await until(lambda: first.events.owned + second.events.owned == [0])
        await until(lambda: ("assigned", []) in first.events.seen + second.events.seen)


async def test_a_member_without_heartbeats_loses_its_partitions(daemon: Daemon, topic: str) -> None:
    await produce(daemon, topic, range(8))
    async with Consumer(config(daemon, topic, session_timeout_ms=300, heartbeat_interval_ms=299)) as silent:
        await silent.subscribe([topic])
        assert await silent.poll(1, LONG_MS)
        member = silent._subscription.membership
        assert member is not None
        assert member._task is not None
        member._task.cancel()  # as if its process hung: no heartbeats, no leave
        async with reader(daemon, topic) as other:
            await until(lambda: len(other.values) == 8)
        with pytest.raises(CommitFailedError, match="this consumer is no longer a member") as refused:
            await silent.commit()
        assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_member_that_does_not_read_leaves_and_comes_back_with_its_next_read(daemon: Daemon, topic: str) -> None:
    await produce(daemon, topic, range(4))
    events = Events()
    async with Consumer(config(daemon, topic, max_poll_interval_ms=200)) as consumer:
        await consumer.subscribe([topic], events)
        assert await consumer.poll(1, LONG_MS)
        member = consumer._subscription.membership
        assert member is not None
        await until(lambda: member.generation == -1, "the leave")
        assert await state(daemon, topic) == "Empty"
        with pytest.raises(CommitFailedError):
            await consumer.commit()
        assert len(await read(consumer, 4)) == 4
        assert [kind for kind, _ in events.seen] == ["assigned", "lost", "assigned"]


async def read(consumer: Consumer, wanted: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    while len(values) < wanted:
        values += [record.value for record in await consumer.poll(timeout_ms=LONG_MS)]
    return values


async def test_a_member_of_a_deleted_group_joins_it_again(daemon: Daemon, topic: str) -> None:
    async with Consumer(config(daemon, topic, session_timeout_ms=100, heartbeat_interval_ms=99)) as consumer:
        events = Events()
        await consumer.subscribe([topic], events)
        waiting = asyncio.create_task(consumer.poll(timeout_ms=LONG_MS))
        await until(lambda: events.owned == [0, 1, 2, 3])
        member = consumer._subscription.membership
        assert member is not None
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            with contextlib.suppress(RefusedError):  # NON_EMPTY_GROUP where it has come back by itself
                await member._requests.leave(member.member_id, "as an operator removes members")
                await admin.delete_group(topic)
        # On a slow machine its session ends again and again.
        await until(lambda: [kind for kind, _ in events.seen][:3] == ["assigned", "lost", "assigned"])
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def test_an_iteration_within_a_batch_counts_as_reading_only_while_it_advances(daemon: Daemon, topic: str) -> None:
    await produce(daemon, topic, range(0, 4 * PARTITIONS, PARTITIONS))
    async with Consumer(config(daemon, topic)) as consumer:
        await consumer.subscribe([topic])
        await anext(consumer)
        for _ in range(2):  # of the same batch: the iteration takes its short way
            last = consumer._activity.last_read()
            assert consumer._activity.last_read() == last
            await anext(consumer)
            assert consumer._activity.last_read() > last


async def test_a_read_commits_only_records_returned_before_it(daemon: Daemon, topic: str) -> None:
    await produce(daemon, topic, range(0, 3 * PARTITIONS, PARTITIONS))
    async with Consumer(config(daemon, topic, auto_commit_interval_ms=1)) as consumer:
        await consumer.subscribe([topic])
        for done in range(3):
            await anext(consumer)
            await until(lambda: consumer._subscription.auto_commit.due, "the interval")
            assert (await committed(daemon, topic)).get(0, 0) == done


async def test_leaving_the_context_by_an_exception_commits_nothing(daemon: Daemon, topic: str) -> None:
    await produce(daemon, topic, range(8))

    async def fail() -> None:
        async with Consumer(config(daemon, topic)) as consumer:
            await consumer.subscribe([topic])
            await anext(consumer)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await committed(daemon, topic) == {}
    async with reader(daemon, topic) as again:
        await until(lambda: len(again.values) == 8)


async def test_without_auto_commit_only_commit_commits(daemon: Daemon, topic: str) -> None:
    await produce(daemon, topic, range(8))
    async with Consumer(config(daemon, topic, auto_commit=False)) as consumer:
        await consumer.subscribe([topic])
        await anext(consumer)
        first = await consumer.commit()
        await anext(consumer)
    assert await committed(daemon, topic) == {each.partition: offset for each, offset in first.items()}


async def test_a_listener_may_seek_assigned_and_commit_revoked_partitions(daemon: Daemon, topic: str) -> None:
    class Careful(RebalanceListener):
        async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            for partition in partitions:
                consumer.seek(partition, 1)

        async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            await consumer.commit(dict.fromkeys(partitions, 7))

    await produce(daemon, topic, range(8))
    async with Consumer(config(daemon, topic, auto_commit=False)) as consumer:
        await consumer.subscribe([topic], Careful())
        assert set(await read(consumer, 4)) == numbers(range(4, 8))
    assert await committed(daemon, topic) == dict.fromkeys(range(PARTITIONS), 7)


async def test_a_static_member_returns_to_its_partitions_without_a_rebalance(daemon: Daemon, topic: str) -> None:
    async with reader(daemon, topic, group_instance_id="one") as staying:
        async with reader(daemon, topic, group_instance_id="two") as restarting:
            await until(lambda: len(staying.events.owned) == len(restarting.events.owned) == 2)
            before, events = restarting.events.owned, list(staying.events.seen)
        async with reader(daemon, topic, group_instance_id="two") as restarted:
            await until(lambda: restarted.events.owned == before)
            assert staying.events.seen == events


async def test_taking_an_instance_id_ends_its_previous_member(daemon: Daemon, topic: str) -> None:
    async with Consumer(config(daemon, topic, group_instance_id="one")) as first:
        await first.subscribe([topic])
        assert await first.poll(timeout_ms=1) == []
        async with reader(daemon, topic, group_instance_id="one") as second:
            await until(lambda: second.events.owned == [0, 1, 2, 3])
            with pytest.raises(RefusedError, match="another consumer has taken") as refused:
                await first.poll(timeout_ms=LONG_MS)
            assert refused.value.code is ErrorCode.FENCED_INSTANCE_ID
            assert first.assignment == ()


async def test_the_leader_shares_out_partitions_that_are_added(daemon: Daemon, topic: str) -> None:
    async with reader(daemon, topic, metadata_max_age_ms=50) as member:
        await until(lambda: member.events.owned == [0, 1, 2, 3])
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            await admin.create_partitions(topic, PARTITIONS + 1)
        await until(lambda: member.events.owned == [0, 1, 2, 3, 4])


async def test_a_subscription_changes_and_ends(daemon: Daemon, topic: str) -> None:
    other = f"{topic}-other"
    daemon.create_topic(other)
    await produce(daemon, topic, range(4))
    async with Consumer(config(daemon, topic)) as consumer:
        await consumer.subscribe([topic])
        await read(consumer, 4)
        await consumer.subscribe([other])
        while consumer.assignment != (TopicPartition(other, 0),):
            await consumer.poll(timeout_ms=50)
        assert await committed(daemon, topic) == dict.fromkeys(range(PARTITIONS), 1)
        await consumer.unsubscribe()
        assert [*consumer.assignment, *consumer.subscription] == []
        assert await state(daemon, topic) == "Empty"
        await consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(ClientError, match="assigned by hand"):
            await consumer.subscribe([topic])


async def test_an_invalid_subscription_is_refused(daemon: Daemon, topic: str) -> None:
    async with Consumer(config(daemon, topic)) as consumer:
        with pytest.raises(UnknownTopicError, match="no-such-topic"):
            await consumer.subscribe(["no-such-topic"])
        with pytest.raises(ValueError, match="at least one topic"):
            await consumer.subscribe([])
        await consumer.subscribe([topic])
        with pytest.raises(ClientError, match="unsubscribe first"):
            await consumer.assign([TopicPartition(topic, 0)])
    async with Consumer(ConsumerConfig(bootstrap=daemon.bootstrap)) as alone:
        with pytest.raises(ClientError, match="no group"):
            await alone.subscribe([topic])


async def test_a_session_that_the_broker_does_not_allow_is_named(daemon: Daemon, topic: str) -> None:
    async with Consumer(config(daemon, topic, session_timeout_ms=99, heartbeat_interval_ms=10)) as consumer:
        await consumer.subscribe([topic])
        for _ in range(2):  # every read says so
            with pytest.raises(RefusedError, match=r"group\.min\.session\.timeout\.ms"):
                await consumer.poll(timeout_ms=LONG_MS)


async def test_a_member_without_a_common_assignor_is_refused(daemon: Daemon, topic: str) -> None:
    async with reader(daemon, topic, assignors=("range",)) as first:
        await until(lambda: first.events.owned == [0, 1, 2, 3])
        async with Consumer(config(daemon, topic, assignors=("roundrobin",))) as second:
            await second.subscribe([topic])
            with pytest.raises(RefusedError, match="no assignor in common"):
                await second.poll(timeout_ms=LONG_MS)


async def test_members_live_through_a_restart_and_a_kill_of_the_broker(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as own:
        own.create_topic("t", partitions=PARTITIONS)
        async with (
            reader(own, "t", auto_commit_interval_ms=10) as first,
            reader(own, "t", auto_commit_interval_ms=10) as second,
        ):
            await until(lambda: len(first.events.owned) == len(second.events.owned) == 2)
            await produce(own, "t", range(40))
            await until(lambda: set(first.values + second.values) == numbers(range(40)))
            for clean in (True, False):
                await asyncio.to_thread(own.restart, clean=clean)
            await produce(own, "t", range(40, 80))
            await until(lambda: set(first.values + second.values) == numbers(range(80)))
            await until_committed(own, "t", 80)


async def test_close_ends_a_waiting_read_and_leaves_the_group(daemon: Daemon, topic: str) -> None:
    consumer = Consumer(config(daemon, topic))
    await consumer.start()
    events = Events()
    await consumer.subscribe([topic], events)
    waiting = asyncio.create_task(consumer.poll(timeout_ms=LONG_MS))
    await until(lambda: events.owned == [0, 1, 2, 3])
    await consumer.close()
    with pytest.raises(ClientError, match="the consumer is closed"):
        await waiting
    assert [kind for kind, _ in events.seen] == ["assigned", "revoked"]
    assert await state(daemon, topic) == "Empty"


async def test_an_error_of_the_listener_is_raised_by_the_read_and_the_member_stays(daemon: Daemon, topic: str) -> None:
    class Failing(Events):
        async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            await super().on_partitions_revoked(partitions)
            if len(self.seen) == 2:
                raise ZeroDivisionError

    events = Failing()
    async with Consumer(config(daemon, topic)) as consumer:
        await consumer.subscribe([topic], events)
        waiting = asyncio.create_task(consumer.poll(timeout_ms=LONG_MS))
        await until(lambda: events.owned == [0, 1, 2, 3])
        async with reader(daemon, topic) as other:
            with pytest.raises(ZeroDivisionError):
                await waiting
            waiting = asyncio.create_task(consumer.poll(timeout_ms=LONG_MS))
            await until(lambda: len(events.owned) == len(other.events.owned) == 2)
            waiting.cancel()

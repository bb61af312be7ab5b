"""Cooperative consumers keep their partitions: only those that move are revoked, before another member gets them."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas import (
    Consumer,
    ConsumerConfig,
    ErrorCode,
    Producer,
    ProducerConfig,
    RebalanceListener,
    RefusedError,
    TopicPartition,
)
from barnabas.clients.group_offsets import commit_offsets
from barnabas.clients.membership.group_leader import GroupLeader
from barnabas.protocol.messages.groups.join_group import JoinGroupResponse
from tests.clients.waiting import turns, until
from tests.support.daemon import Daemon, start_daemon
from tests.support.groups.admin_offsets import committed, until_committed

PARTITIONS = 4
LONG_MS = 600_000
COOPERATIVE = ("cooperative-sticky",)
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


class Reader(RebalanceListener):
    """A subscribed consumer with a task that polls it, and the calls of its listener."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.events: list[tuple[str, set[int]]] = []
        self.values: list[bytes | None] = []
        self._task: asyncio.Task[None] | None = None

    async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.events.append(("assigned", {each.partition for each in partitions}))

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.events.append(("revoked", {each.partition for each in partitions}))

    async def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.events.append(("lost", {each.partition for each in partitions}))

    @property
    def owned(self) -> set[int]:
        """The consumer's assignment, which must agree with the listener's calls."""
        return {each.partition for each in self.consumer.assignment}

    @property
    def told(self) -> set[int]:
        """The assignment by the listener's calls."""
        found: set[int] = set()
        for kind, partitions in self.events:
            if kind == "assigned":
                assert not found & partitions
                found |= partitions
            else:
                assert found >= partitions
                found -= partitions
        return found

    def begin(self) -> None:
        """Continue polling."""
        self._task = asyncio.create_task(self._read())

    async def rest(self) -> None:
        """Stop polling."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def hang(self) -> None:
        """End like a killed process: no heartbeats, no joins."""
        assert self.consumer._subscription.membership is not None
        assert self.consumer._subscription.membership._task is not None
        self.consumer._subscription.membership._task.cancel()

    async def _read(self) -> None:
        while True:
            self.values += [record.value for record in await self.consumer.poll(timeout_ms=LONG_MS)]


def config(daemon: Daemon, group: str, **changes: Any) -> ConsumerConfig:
    settings: dict[str, Any] = {
        "offset_reset": "earliest",
        "heartbeat_interval_ms": 20,
        "session_timeout_ms": 10_000,
        "auto_commit_interval_ms": LONG_MS,
        "assignors": COOPERATIVE,
        **changes,
    }
    return ConsumerConfig(bootstrap=daemon.bootstrap, group=group, **settings)


@asynccontextmanager
async def reader(daemon: Daemon, topic: str, kind: type[Reader] = Reader, **changes: Any) -> AsyncIterator[Reader]:
    """A member that reads, and leaves at the end."""
    async with Consumer(config(daemon, topic, **changes)) as consumer:
        running = kind(consumer)
        await consumer.subscribe([topic], running)
        running.begin()
        try:
            yield running
        finally:
            await running.rest()


def shared(*readers: Reader) -> bool:
    """Whether they have all partitions, each of them some, and their listeners were called."""
    found = [number for each in readers for number in each.owned]
    return (
        sorted(found) == [*range(PARTITIONS)]
        and all(each.owned for each in readers)
        and all(each.told == each.owned for each in readers)
    )


async def produce(daemon: Daemon, topic: str, values: range) -> None:
    """Send the values to the partitions in turn."""
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
        for number in values:
            await producer.send(topic, b"%d" % number, partition=number % PARTITIONS)


def numbers(values: range) -> list[bytes]:
    return [b"%d" % number for number in values]


async def test_only_partitions_that_move_are_revoked_and_reported_to_listeners(daemon: Daemon, topic: str) -> None:
    await produce(daemon, topic, range(20))
    async with reader(daemon, topic) as first:
        await until(lambda: len(first.values) == 20)
        async with reader(daemon, topic) as second:
            await until(lambda: shared(first, second))
            moved = second.owned
            changes = [event for event in first.events[1:] if event[1]]
            assert changes == [("revoked", moved)]
            assert [event for event in second.events if event[1]] == [("assigned", moved)]
            await produce(daemon, topic, range(20, 60))
            await until(lambda: len(first.values) + len(second.values) == 60)
        await until(lambda: first.owned == first.told == {0, 1, 2, 3})
        assert [event for event in first.events if event[1]][-1] == ("assigned", moved)
        await produce(daemon, topic, range(60, 80))
        await until(lambda: len(first.values) + len(second.values) == 80)
    assert Counter(first.values + second.values) == Counter(numbers(range(80)))


async def test_a_member_reads_on_while_another_one_delays_the_rebalance(
    daemon: Daemon, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader does not assign until the kept partitions were read and committed in the middle of it."""
    assigning, go = asyncio.Event(), asyncio.Event()
    refused: list[ErrorCode] = []
    assign = GroupLeader.assign

    async def slowly(self: GroupLeader, joined: JoinGroupResponse) -> Mapping[str, bytes]:
        if len(joined.members) == 2 and not go.is_set():
            assigning.set()
            await go.wait()
        return await assign(self, joined)

    async def noting(*arguments: Any, **named: Any) -> None:
        try:
            await commit_offsets(*arguments, **named)
        except RefusedError as error:
            refused.append(error.code)
            raise

    monkeypatch.setattr(GroupLeader, "assign", slowly)
    monkeypatch.setattr("barnabas.clients.consumer.commits.commit_offsets", noting)
    async with reader(daemon, topic, auto_commit=False, retry_backoff_ms=1) as first:
        await until(lambda: first.owned == {0, 1, 2, 3})
        async with reader(daemon, topic, auto_commit=False) as second:
            await asyncio.wait_for(assigning.wait(), 30)
            await produce(daemon, topic, range(8))
            await until(lambda: len(first.values) == 8)
            committing = asyncio.create_task(first.consumer.commit())
            await until(lambda: len(refused) > 0)
            assert set(refused) == {ErrorCode.REBALANCE_IN_PROGRESS}
            await first.rest()  # what it has now is given up by its next poll
            go.set()
            assert len(await committing) == PARTITIONS
            first.begin()
            assert await committed(daemon, topic) == dict.fromkeys(range(PARTITIONS), 2)
            await until(lambda: shared(first, second))
            assert second.values == []


async def test_a_delayed_commit_does_not_overwrite_the_next_owners_commit(
    daemon: Daemon, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for the next generation in one task while another one reads, and gives half of the partitions up."""
    assigning, waiting, go = asyncio.Event(), asyncio.Event(), asyncio.Event()
    assign = GroupLeader.assign

    async def slowly(self: GroupLeader, joined: JoinGroupResponse) -> Mapping[str, bytes]:
        if len(joined.members) == 2:
            assigning.set()
            await waiting.wait()
        return await assign(self, joined)

    async def pause(seconds: float) -> None:
        waiting.set()
        await go.wait()

    monkeypatch.setattr(GroupLeader, "assign", slowly)
    async with reader(daemon, topic, auto_commit=False) as first:
        await until(lambda: first.owned == {0, 1, 2, 3})
        async with reader(daemon, topic, auto_commit=False) as second:
            await asyncio.wait_for(assigning.wait(), 30)
            paused = SimpleNamespace(get_running_loop=asyncio.get_running_loop, sleep=pause)
            monkeypatch.setattr("barnabas.clients.consumer.commits.asyncio", paused)
            old = {TopicPartition(topic, number): 1 for number in range(PARTITIONS)}
            committing = asyncio.create_task(first.consumer.commit(old))
            await until(lambda: shared(first, second))
            moved = sorted(second.owned)
            await second.consumer.commit({TopicPartition(topic, number): 7 for number in moved})
            go.set()
            with pytest.raises(RefusedError, match="partitions were given up while their commit waited"):
                await committing
            assert await committed(daemon, topic) == dict.fromkeys(moved, 7)


async def test_partitions_given_up_by_a_member_that_dies_go_to_the_others(daemon: Daemon, topic: str) -> None:
    class Dying(Reader):
        async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            await super().on_partitions_revoked(partitions)
            self.hang()

    await produce(daemon, topic, range(8))
    async with reader(daemon, topic, Dying, session_timeout_ms=1000) as first:
        await until(lambda: len(first.values) == 8)
        async with reader(daemon, topic) as second:
            await until(lambda: second.owned == second.told == {0, 1, 2, 3})
            await produce(daemon, topic, range(8, 16))
            await until(lambda: {*second.values} == {*numbers(range(8, 16))})  # it had committed what it gave up


async def test_an_expired_member_loses_its_partitions_and_rejoins_without_claims(daemon: Daemon, topic: str) -> None:
    async with reader(daemon, topic) as first, reader(daemon, topic) as second:
        await until(lambda: shared(first, second))
        had = second.owned
        member = second.consumer._subscription.membership
        assert member is not None
        await member._requests.leave(member.member_id, "as an operator removes members")
        await until(lambda: ("lost", had) in second.events)
        await until(lambda: shared(first, second))


async def test_a_kill_of_the_broker_between_revocation_and_rejoin_loses_nothing(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as own:

        class Killing(Reader):
            async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
                await super().on_partitions_revoked(partitions)
                if len([each for each in self.events if each[0] == "revoked"]) == 1:
                    await asyncio.to_thread(own.restart, clean=False)

        own.create_topic("t", partitions=PARTITIONS)
        await produce(own, "t", range(20))
        async with reader(own, "t", Killing, auto_commit_interval_ms=10) as first:
            await until(lambda: len(first.values) == 20)
            async with reader(own, "t", auto_commit_interval_ms=10) as second:
                await until(lambda: shared(first, second))
                await produce(own, "t", range(20, 60))
                await until(lambda: {*first.values, *second.values} == {*numbers(range(60))})
                await until_committed(own, "t", 60)


async def test_unsubscribed_topics_are_given_up_and_the_others_kept(daemon: Daemon, topic: str) -> None:
    other = f"{topic}-other"
    daemon.create_topic(other)
    async with reader(daemon, topic) as first:
        await until(lambda: first.owned == {0, 1, 2, 3})
        await first.consumer.subscribe([topic, other], first)
        await until(lambda: TopicPartition(other, 0) in first.consumer.assignment)
        assert not [event for event in first.events if event[0] != "assigned"]
        first.events.clear()
        await first.consumer.subscribe([other], first)
        await until(lambda: first.consumer.assignment == (TopicPartition(other, 0),))
        assert [event for event in first.events if event[1]] == [("revoked", {0, 1, 2, 3})]


async def test_a_group_is_moved_from_eager_to_cooperative_member_by_member(daemon: Daemon, topic: str) -> None:
    """Kafka's way: members that offer both, then members that offer the cooperative one alone."""
    both = ("range", *COOPERATIVE)
    async with reader(daemon, topic, assignors=both) as first:
        await until(lambda: first.owned == {0, 1, 2, 3})
        async with reader(daemon, topic, assignors=COOPERATIVE) as second:
            await until(lambda: shared(first, second))
            await first.rest()
            await first.consumer.close()
            async with reader(daemon, topic, assignors=COOPERATIVE) as third:
                await until(lambda: shared(second, third))
                assert not [event for event in third.events if event[0] != "assigned"]


async def test_no_partition_has_two_owners_at_any_time_while_members_come_leave_and_die(
    daemon: Daemon, topic: str
) -> None:
    """Checked all the time. A dead member is removed from the list: its partitions go to others later."""

    class Slow(Reader):
        async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            await super().on_partitions_revoked(partitions)
            await turns(100)  # time enough for somebody who does not wait

    generator = random.Random("churn")
    alive: list[tuple[Reader, AsyncExitStack]] = []
    gone: list[Reader] = []
    sent = 0

    async def come() -> None:
        stack = AsyncExitStack()
        found = reader(daemon, topic, Slow, session_timeout_ms=1_000, auto_commit_interval_ms=10)
        alive.append((await stack.enter_async_context(found), stack))

    async def end(index: int, *, kill: bool) -> None:
        found, stack = alive.pop(index)
        gone.append(found)
        if kill:
            found.hang()
            await found.rest()
            found.consumer._subscription.membership = None  # without leaving the group
        await stack.aclose()

    async def watch() -> None:
        while True:
            owned = Counter(each for found, _ in alive for each in found.owned)
            assert not owned or max(owned.values()) == 1, [found.events for found, _ in alive]
            await asyncio.sleep(0.0005)

    watching = asyncio.create_task(watch())
    await come()
    for _ in range(30):
        what = generator.choice(["come", "come", "leave", "die", "produce"])
        if what == "come" and len(alive) < 4:
            await come()
        elif what in ("leave", "die") and len(alive) > 1:
            await end(generator.randrange(len(alive)), kill=what == "die")
        else:
            await produce(daemon, topic, range(sent, sent + 8))
            sent += 8
            await until(lambda: any(found.owned for found, _ in alive))
        assert not watching.done(), watching.exception()
    while len(alive) > 2:
        await end(0, kill=False)
    await until(lambda: sorted(each for found, _ in alive for each in found.owned) == [0, 1, 2, 3])
    everything = [*gone, *(found for found, _ in alive)]
    await until(lambda: {value for found in everything for value in found.values} == {*numbers(range(sent))})
    assert not watching.done(), watching.exception()
    watching.cancel()
    while alive:
        await end(0, kill=False)

"""Groups' offsets of a running source, followed into the groups of another coordinator, and clamped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import confluent_kafka
import pytest

from barnabas.broker.mirrors.following import group_follower as groups
from barnabas.broker.mirrors.following.group_follower import FollowedGroup, GroupFollower, clamp_groups, clamped
from barnabas.broker.mirrors.following.local_groups import LocalGroups
from barnabas.broker.mirrors.following.source_groups import GROUPS_AT_ONCE, GroupOffset, SourceGroups
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import BrokerConnectionError
from barnabas.clients.network import versions
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import Daemon, start_daemon
from tests.support.groups.committed import commit, create_topic
from tests.support.groups.consumer_groups import GROUP, ConsumerGroupHost
from tests.support.kafka.kafka_wire import KafkaWire

T0, T1, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("other", 0)
EPOCH = 5
"""Leader epoch of the offsets that the tests commit at the source."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("source")) as running:
        with KafkaWire(running.host, running.port) as kafka:
            create_topic(kafka, "t", 2)
            create_topic(kafka, "other")
        yield running


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


@pytest.fixture
async def cluster(daemon: Daemon) -> AsyncIterator[Cluster]:
    cluster = Cluster(ClientConfig(bootstrap=daemon.bootstrap))
    yield cluster
    await cluster.close()


class Here:
    """The groups of the cluster that mirrors, and the ends of its copies."""

    def __init__(self) -> None:
        self.host = ConsumerGroupHost()
        self.host.topic("t", 2)
        self.groups = LocalGroups(self.host.offsets)
        self.ends = {T0: 100, T1: 100}

    def follower(self, cluster: Cluster, *patterns: str) -> GroupFollower:
        return GroupFollower(SourceGroups(cluster, patterns), self.groups, self.ends.get)


async def test_offsets_metadata_and_epochs_of_matching_groups_are_followed(kafka: KafkaWire, cluster: Cluster) -> None:
    here = Here()
    follower = here.follower(cluster, "follow-.*", "single")
    for group in ("follow-a", "follow-b", "single", "single-not", "__follow-a"):
        assert commit(kafka, group, "t", {0: 7, 1: 8}, metadata="note") == [0, 0]
    commit(kafka, "follow-a", "other", {0: 3})
    await follower.follow()
    expected = {T0: GroupOffset(7, EPOCH, "note"), T1: GroupOffset(8, EPOCH, "note")}
    assert here.groups.ids() == ["follow-a", "follow-b", "single"]
    assert all(here.groups.committed(each) == expected for each in here.groups.ids())
    assert follower.groups == dict.fromkeys(here.groups.ids(), FollowedGroup(2))
    written = len(here.host.log.values)
    commit(kafka, "follow-a", "t", {0: 9}, metadata="note")
    await follower.follow()
    assert here.groups.committed("follow-a") == {**expected, T0: GroupOffset(9, EPOCH, "note")}
    assert len(here.host.log.values) == written


async def test_what_did_not_change_is_not_written(
    kafka: KafkaWire, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here()
    follower = here.follower(cluster, "still")
    commit(kafka, "still", "t", {0: 7})
    await follower.follow()

    async def refuse(group_id: str, offsets: object) -> None:
        raise AssertionError(f"{group_id}: {offsets}")

    monkeypatch.setattr(here.groups, "commit", refuse)
    await follower.follow()
    assert follower.groups == {"still": FollowedGroup(1)}


async def test_an_offset_beyond_the_copy_waits_for_it(kafka: KafkaWire, cluster: Cluster) -> None:
    here = Here()
    here.ends[T0] = 5
    follower = here.follower(cluster, "ahead")
    commit(kafka, "ahead", "t", {0: 7, 1: 8}, metadata="note")
    await follower.follow()
    assert here.groups.committed("ahead") == {T0: GroupOffset(5, -1, "note"), T1: GroupOffset(8, EPOCH, "note")}
    here.ends[T0] = 7
    await follower.follow()
    assert here.groups.committed("ahead")[T0] == GroupOffset(7, EPOCH, "note")


async def test_a_group_with_members_here_is_left_alone_until_they_leave(kafka: KafkaWire, cluster: Cluster) -> None:
    here = Here()
    follower = here.follower(cluster, GROUP)
    commit(kafka, GROUP, "t", {0: 7})
    here.host.join("m", ["t"])
    here.host.settle("m")
    await follower.follow()
    assert here.groups.committed(GROUP) == {}
    assert follower.groups == {GROUP: FollowedGroup(1, "it has members in this cluster")}
    with pytest.raises(BrokerError, match="has members"):
        await here.groups.commit(GROUP, {T0: GroupOffset(7)})
    here.host.leave("m")
    await follower.follow()
    assert here.groups.committed(GROUP) == {T0: GroupOffset(7, EPOCH)}
    assert follower.groups == {GROUP: FollowedGroup(1)}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_groups_with_members_at_the_source_are_followed_in_both_protocols(
    daemon: Daemon, cluster: Cluster, protocol: str
) -> None:
    group = f"members-{protocol}"
    settings = {"bootstrap.servers": daemon.bootstrap, "group.id": group, "group.protocol": protocol}
    member = confluent_kafka.Consumer(settings | {"enable.auto.commit": False})
    try:
        member.subscribe(["t"])
        assert await until(lambda: member.poll(0.05) is None and len(member.assignment()) == 2)
        member.commit(offsets=[confluent_kafka.TopicPartition("t", 0, 7)], asynchronous=False)
        here = Here()
        await here.follower(cluster, group).follow()
        assert here.groups.committed(group) == {T0: GroupOffset(7)}
    finally:
        member.close()


async def until(condition: Callable[[], bool]) -> bool:
    """Wait for a condition, which is checked on a thread."""
    async with asyncio.timeout(30):
        while not await asyncio.to_thread(condition):
            pass
    return True


async def test_an_older_source_is_asked_for_one_group_at_a_time(
    kafka: KafkaWire, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(versions._HIGHEST, ApiKey.OFFSET_FETCH, 7)
    here = Here()
    for group in ("old-a", "old-b"):
        commit(kafka, group, "t", {0: 7})
    await here.follower(cluster, "old-.").follow()
    assert {each: here.groups.committed(each)[T0].offset for each in here.groups.ids()} == {"old-a": 7, "old-b": 7}


async def test_many_groups_take_several_requests(kafka: KafkaWire, cluster: Cluster) -> None:
    here = Here()
    names = [f"many-{number}" for number in range(GROUPS_AT_ONCE + 3)]
    for number, name in enumerate(names):
        commit(kafka, name, "t", {0: number})
    await here.follower(cluster, "many-.*").follow()
    assert {each: here.groups.committed(each)[T0].offset for each in names} == {
        each: number for number, each in enumerate(names)
    }


async def test_a_source_that_cannot_be_reached_is_an_error() -> None:
    cluster = Cluster(ClientConfig(bootstrap="127.0.0.1:1"))
    with pytest.raises(BrokerConnectionError):
        await Here().follower(cluster, ".*").follow()
    await cluster.close()


class Scripted:
    """A source with given answers."""

    def __init__(self, offsets: dict[str, dict[TopicPartition, GroupOffset] | ErrorCode]) -> None:
        self._offsets = offsets

    async def matching(self) -> dict[int, list[str]]:
        return {1: sorted(self._offsets)}

    async def offsets(
        self, node_id: int, group_ids: list[str]
    ) -> dict[str, dict[TopicPartition, GroupOffset] | ErrorCode]:
        return self._offsets


async def test_a_group_that_fails_does_not_stop_the_others() -> None:
    here = Here()
    too_long = GroupOffset(1, -1, "x" * 5000)
    source = Scripted(
        {
            "denied": ErrorCode.GROUP_AUTHORIZATION_FAILED,
            "long": {T0: too_long, T1: GroupOffset(2)},
            "ok": {T0: GroupOffset(3)},
        }
    )
    follower = GroupFollower(source, here.groups, here.ends.get)
    await follower.follow()
    assert follower.groups == {
        "denied": FollowedGroup(0, "the source answers GROUP_AUTHORIZATION_FAILED"),
        "long": FollowedGroup(2, "1 offsets were refused, t-0 with OFFSET_METADATA_TOO_LARGE"),
        "ok": FollowedGroup(1),
    }
    assert here.groups.committed("long") == {T1: GroupOffset(2)}
    assert here.groups.committed("ok") == {T0: GroupOffset(3)}


async def test_following_goes_on_after_errors_of_any_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "INTERVAL_SECONDS", 0.001)
    here = Here()
    source = Scripted({"ok": {T0: GroupOffset(3)}})
    follower = GroupFollower(source, here.groups, here.ends.get)
    errors: list[Exception] = [BrokerConnectionError("down"), RuntimeError("a bug")]
    seen: list[str | None] = []

    async def matching() -> dict[int, list[str]]:
        seen.append(follower.error)
        if errors:
            raise errors.pop(0)
        return {1: ["ok"]}

    monkeypatch.setattr(source, "matching", matching)
    task = asyncio.create_task(follower.run())
    async with asyncio.timeout(20):
        while len(seen) < 4:
            await asyncio.sleep(0.001)
    task.cancel()
    assert seen[:4] == [None, "down", "internal error: RuntimeError: a bug", None]
    assert here.groups.committed("ok") == {T0: GroupOffset(3)}


def test_offsets_beyond_the_end_are_clamped_without_an_epoch() -> None:
    offsets = {T0: GroupOffset(9, 4, "a"), T1: GroupOffset(5, 4, "b"), OTHER: GroupOffset(5)}
    assert clamped(offsets, {T0: 7, T1: 5}.get) == {T0: GroupOffset(7, -1, "a"), T1: GroupOffset(5, 4, "b")}


async def test_a_promotion_moves_offsets_beyond_the_end_back_in_groups_without_members() -> None:
    here = Here()
    here.host.topic("other", 1)
    for group in ("a", "b"):
        await here.groups.commit(group, {T0: GroupOffset(9, 4, "note"), T1: GroupOffset(5, 4), OTHER: GroupOffset(9)})
    await here.groups.commit("c", {T0: GroupOffset(3, 4)})
    await here.groups.commit(GROUP, {T0: GroupOffset(9)})
    here.host.join("m", ["t"])
    found = await clamp_groups(here.groups, {"t"}, {T0: 7, T1: 7, OTHER: 1}.get)
    assert found.moved == {"a": 1, "b": 1}
    assert list(found.problems) == [GROUP]
    assert "has members" in found.problems[GROUP]
    for group in ("a", "b"):
        assert here.groups.committed(group) == {
            T0: GroupOffset(7, -1, "note"),
            T1: GroupOffset(5, 4),
            OTHER: GroupOffset(9),
        }
    assert here.groups.committed("c") == {T0: GroupOffset(3, 4)}

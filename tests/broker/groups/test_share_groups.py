"""Share groups over Kafka's protocol, against a real daemon: members, records, restarts, offsets, deletion."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.update_features import SAFE_DOWNGRADE
from tests.support.daemon import Daemon, start_daemon, with_fault
from tests.support.eventually import eventually
from tests.support.groups.share_groups import (
    TIMEOUT,
    alter,
    create,
    delete_group,
    delete_offsets,
    describe,
    heartbeat,
    joined,
    offsets,
    partitions,
    settled,
)
from tests.support.kafka.kafka_wire import KafkaWire, message_type, schema
from tests.support.metrics import metric


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Return a name for the topic and the group of one test; the daemon is shared."""
    found: str = request.node.name.replace("[", "-").replace("]", "")
    return found[-60:]


def test_a_member_gets_its_partitions_once_their_states_are_initialized(kafka: KafkaWire, name: str) -> None:
    create(kafka, name, 3)
    first = heartbeat(kafka, name, "m", 0, name)
    assert (first.error_code, first.member_id, first.member_epoch) == (ErrorCode.NONE, "m", 2)
    assert partitions(first) == []
    epoch, has = settled(kafka, name, "m", 2)
    assert (epoch, has) == (3, [0, 1, 2])
    later = heartbeat(kafka, name, "m", epoch)
    assert (later.member_epoch, later.assignment, later.heartbeat_interval.total_seconds()) == (epoch, None, 5)
    found = describe(kafka, name)
    assert (found.error_code, found.group_state, found.assignor_name) == (ErrorCode.NONE, "Stable", "simple")
    assert (found.group_epoch, found.assignment_epoch) == (3, 3)
    (member,) = found.members
    assert (member.member_id, member.member_epoch, member.client_id) == ("m", 3, "wire")
    assert [(each.topic_name, sorted(each.partitions)) for each in member.assignment.topic_partitions] == [
        (name, [0, 1, 2])
    ]


def test_members_share_partitions_and_the_last_one_leaves_an_empty_group(kafka: KafkaWire, name: str) -> None:
    create(kafka, name)
    epoch, _ = joined(kafka, name, "a", name)
    assert joined(kafka, name, "b", name)[1] == [0]
    assert joined(kafka, name, "a", name)[1] == [0]
    left = heartbeat(kafka, name, "a", -1)
    assert (left.error_code, left.member_epoch) == (ErrorCode.NONE, -1)
    assert heartbeat(kafka, name, "a", epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert [each.member_id for each in describe(kafka, name).members] == ["b"]
    assert heartbeat(kafka, name, "b", -1).error_code == ErrorCode.NONE
    assert describe(kafka, name).group_state == "Empty"


def test_a_restart_keeps_members_epochs_and_partitions(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create(kafka, "t", 2)
        epoch, _ = joined(kafka, "g", "m", "t")
        before = describe(kafka, "g")
        daemon.kill()
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        after = describe(kafka, "g")
        while after.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            after = describe(kafka, "g")
        assert after == before
        same = heartbeat(kafka, "g", "m", epoch)
        assert (same.error_code, same.member_epoch, same.assignment) == (ErrorCode.NONE, epoch, None)
        kinds = schema("create_partitions", 3, "request")
        grown = kinds.CreatePartitionsTopic(name="t", count=3, assignments=None)
        kafka.call("create_partitions", 3, topics=(grown,), timeout=TIMEOUT, validate_only=False)
        while settled(kafka, "g", "m", epoch)[1] != [0, 1, 2]:
            pass


def test_a_silent_member_is_removed(tmp_path: Path) -> None:
    settings = ("group.share.session.timeout.ms=300", "group.share.heartbeat.interval.ms=100")
    with start_daemon(tmp_path, *settings) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create(kafka, "t")
        joined(kafka, "g", "m", "t")
        while describe(kafka, "g").members:
            pass
        assert describe(kafka, "g").group_state == "Empty"


@pytest.mark.parametrize(
    ("member", "epoch", "topics", "code"),
    [
        ("", 0, ("t",), ErrorCode.INVALID_REQUEST),
        ("x" * 37, 0, ("t",), ErrorCode.INVALID_REQUEST),
        ("m", 0, (), ErrorCode.INVALID_REQUEST),
        ("m", -2, (), ErrorCode.INVALID_REQUEST),
        ("m", 1, (), ErrorCode.GROUP_ID_NOT_FOUND),
        ("m", -1, (), ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_invalid_heartbeats_are_refused(
    kafka: KafkaWire, member: str, epoch: int, topics: tuple[str, ...], code: ErrorCode
) -> None:
    assert heartbeat(kafka, "refused", member, epoch, *topics).error_code == code


def test_a_wrong_epoch_is_fenced_and_the_previous_one_is_not(kafka: KafkaWire, name: str) -> None:
    create(kafka, name)
    epoch, _ = joined(kafka, name, "m", name)
    assert heartbeat(kafka, name, "m", epoch - 1).member_epoch == epoch
    assert heartbeat(kafka, name, "m", epoch + 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert heartbeat(kafka, name, "m", epoch - 2).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert heartbeat(kafka, name, "other", epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_groups_of_one_protocol_exclude_the_others(kafka: KafkaWire, name: str) -> None:
    create(kafka, name)
    joined(kafka, name, "m", name)
    consumer = kafka.call(
        "consumer_group_heartbeat",
        1,
        group_id=name,
        member_id="c",
        member_epoch=0,
        instance_id=None,
        rack_id=None,
        rebalance_timeout=TIMEOUT,
        subscribed_topic_names=(name,),
        subscribed_topic_regex=None,
        server_assignor=None,
        topic_partitions=(),
    )
    assert consumer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    protocol = schema("join_group", 9, "request").JoinGroupRequestProtocol(name="range", metadata=b"")
    classic = kafka.call(
        "join_group",
        9,
        group_id=name,
        session_timeout=TIMEOUT,
        rebalance_timeout=TIMEOUT,
        member_id="",
        group_instance_id=None,
        protocol_type="consumer",
        protocols=(protocol,),
        reason=None,
    )
    assert classic.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    (as_consumer,) = kafka.call(
        "consumer_group_describe", 1, group_ids=(name,), include_authorized_operations=False
    ).groups
    assert as_consumer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    (as_classic,) = kafka.call("describe_groups", 6, groups=(name,), include_authorized_operations=False).groups
    assert as_classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    listed = {
        each.group_id: each for each in kafka.call("list_groups", 5, states_filter=(), types_filter=("Share",)).groups
    }
    assert (listed[name].group_type, listed[name].protocol_type, listed[name].group_state) == (
        "share",
        "share",
        "Stable",
    )


def test_offsets_are_set_shown_and_deleted_while_the_group_is_empty(kafka: KafkaWire, name: str) -> None:
    create(kafka, name, 2)
    assert delete_offsets(kafka, name, name).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    altered = alter(kafka, name, name, p0=0, p7=1)
    (topic,) = altered.responses
    assert [(each.partition_index, each.error_code) for each in topic.partitions] == [
        (0, ErrorCode.NONE),
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    (shown,) = offsets(kafka, name).topics
    assert [(each.partition_index, each.start_offset, each.error_code) for each in shown.partitions] == [(0, 0, 0)]
    (unknown,) = offsets(kafka, name, {"no-such-topic": (3,)}).topics
    assert [(each.partition_index, each.start_offset, each.lag) for each in unknown.partitions] == [(3, -1, -1)]
    epoch, mine = joined(kafka, name, "m", name)
    while mine != [0, 1]:  # partition 1 is initialized in the background, and must be before its offsets are deleted
        epoch, mine = settled(kafka, name, "m", epoch)
    assert alter(kafka, name, name, p0=1).error_code == ErrorCode.NON_EMPTY_GROUP
    assert delete_offsets(kafka, name, name).error_code == ErrorCode.NON_EMPTY_GROUP
    assert delete_group(kafka, name) == ErrorCode.NON_EMPTY_GROUP
    heartbeat(kafka, name, "m", -1)
    deleted = {
        each.topic_name: each.error_code for each in delete_offsets(kafka, name, name, "no-such-topic").responses
    }
    assert deleted == {name: ErrorCode.NONE, "no-such-topic": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert offsets(kafka, name).topics == ()
    assert delete_group(kafka, name) == ErrorCode.NONE
    assert describe(kafka, name).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert delete_group(kafka, name) == ErrorCode.GROUP_ID_NOT_FOUND


def test_states_of_a_deleted_topic_are_forgotten(kafka: KafkaWire, name: str) -> None:
    create(kafka, name)
    joined(kafka, name, "m", name)
    assert len(offsets(kafka, name).topics) == 1
    kinds = schema("delete_topics", 6, "request")
    entry = kinds.DeleteTopicState(name=name, topic_id=None)
    kafka.call("delete_topics", 6, topics=(entry,), timeout=TIMEOUT)
    while offsets(kafka, name).topics:
        pass
    create(kafka, name, 2)
    assert joined(kafka, name, "m", name)[1] == [0, 1]


def test_without_the_feature_share_groups_are_refused(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create(kafka, "t")
        joined(kafka, "g", "m", "t")
        kinds = schema("update_features", 2, "request")
        entry = kinds.FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=SAFE_DOWNGRADE)
        assert kafka.call("update_features", 2, feature_updates=(entry,)).error_code == ErrorCode.NONE
        assert heartbeat(kafka, "g", "m", 0, "t").error_code == ErrorCode.UNSUPPORTED_VERSION
        assert describe(kafka, "g").error_code == ErrorCode.UNSUPPORTED_VERSION
        assert offsets(kafka, "g").error_code == ErrorCode.UNSUPPORTED_VERSION
        assert alter(kafka, "g", "t", p0=0).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert delete_offsets(kafka, "g", "t").error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_share_group_has_no_committed_offsets(kafka: KafkaWire, daemon: Daemon, name: str) -> None:
    create(kafka, name)
    joined(kafka, name, "m", name)
    kinds = schema("offset_commit", 9, "request")
    entry = kinds.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata=""
    )
    row = kinds.OffsetCommitRequestTopic(name=name, partitions=(entry,))
    answer = kafka.call(
        "offset_commit",
        9,
        group_id=name,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=(row,),
    )
    assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert (metric(daemon, "barnabas_groups_stable") or 0) >= 1
    assert (metric(daemon, "barnabas_share_groups_stable") or 0) >= 1
    assert (metric(daemon, "barnabas_share_group_rebalances_total") or 0) >= 2


def test_a_kill_while_states_are_initialized_leaves_no_group_without_partitions(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create(kafka, "t")
        epoch = heartbeat(kafka, "g", "m", 0, "t").member_epoch
        daemon.kill()
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        while describe(kafka, "g").error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        assert settled(kafka, "g", "m", epoch)[1] == [0]


@pytest.mark.parametrize(
    ("key", "version", "code"),
    [
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:0", 6, ErrorCode.NONE),
        ("with:colons:AAAAAAAAAAAAAAAAAAAAAQ:7", 6, ErrorCode.NONE),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:0", 5, ErrorCode.INVALID_REQUEST),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ", 6, ErrorCode.INVALID_REQUEST),
        (":AAAAAAAAAAAAAAAAAAAAAQ:0", 6, ErrorCode.INVALID_REQUEST),
        ("g:no-uuid:0", 6, ErrorCode.INVALID_REQUEST),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:x", 6, ErrorCode.INVALID_REQUEST),
    ],
)
def test_the_coordinator_of_a_share_partition_is_this_broker(
    kafka: KafkaWire, key: str, version: int, code: ErrorCode
) -> None:
    (found,) = kafka.call("find_coordinator", version, key_type=2, coordinator_keys=(key,)).coordinators
    assert found.error_code == code
    assert (found.node_id.value if hasattr(found.node_id, "value") else found.node_id) == (1 if code == 0 else -1)


def test_of_two_requests_that_create_groups_of_one_id_and_different_types_one_is_refused(tmp_path: Path) -> None:
    """Both come before `__consumer_offsets` exists, so neither group is there when the other one is looked for."""
    with start_daemon(tmp_path) as daemon:
        with KafkaWire(daemon.host, daemon.port) as member, KafkaWire(daemon.host, daemon.port) as admin:
            create(admin, "t", 1)
            member.send(
                message_type("consumer_group_heartbeat", 1, "request")(
                    group_id="g",
                    member_id="m",
                    member_epoch=0,
                    instance_id=None,
                    rack_id=None,
                    rebalance_timeout=timedelta(seconds=60),
                    subscribed_topic_names=("t",),
                    subscribed_topic_regex=None,
                    server_assignor=None,
                    topic_partitions=(),
                )
            )
            altered = alter(admin, "g", "t", p0=0)
            joined_code = member.receive("consumer_group_heartbeat", 1).error_code
            assert sorted([altered.error_code == 0, joined_code == 0]) == [False, True]
        assert "a bug" not in daemon.log
        daemon.restart(clean=False)
        with KafkaWire(daemon.host, daemon.port) as other:

            def types() -> list[int] | None:
                found = [describe(other, "g").error_code]
                asked = {"group_ids": ("g",), "include_authorized_operations": False}
                found.append(other.call("consumer_group_describe", 1, **asked).groups[0].error_code)
                return None if ErrorCode.COORDINATOR_LOAD_IN_PROGRESS in found else sorted(found)

            expected = [ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]
            assert eventually(types, what="the group is loaded") == expected


def test_an_initialization_that_fails_several_times_succeeds_in_the_end(tmp_path: Path) -> None:
    fault = """
from barnabas.broker.share.coordinator import ShareCoordinator
from barnabas.protocol.errors import ErrorCode

initialize = ShareCoordinator.initialize
failures = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3

async def failing(self, group_id, partitions):
    if failures:
        code = failures.pop()
        return {(each.topic_id, each.partition): code for each in partitions}
    return await initialize(self, group_id, partitions)

ShareCoordinator.initialize = failing

# Each pause ends in the middle of a heartbeat: it has passed at the second look.
from barnabas.broker.groups.share.group import ShareGroup

postponed_ms = ShareGroup.postponed_ms.fget
looks = set()

def ending(self):
    left, pause = postponed_ms(self), self.postponed
    if left or not pause.pause_ms or pause in looks:
        return left
    looks.add(pause)
    return 1

ShareGroup.postponed_ms = property(ending)
"""
    with start_daemon(tmp_path, environ=with_fault(tmp_path, fault)) as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            create(kafka, "t")
            epoch = heartbeat(kafka, "g", "m", 0, "t").member_epoch
            longest = timedelta()
            has: list[int] = []
            while not has:
                answer = heartbeat(kafka, "g", "m", epoch)
                epoch = answer.member_epoch
                has = partitions(answer) if answer.assignment is not None else []
                longest = longest if has else max(longest, answer.heartbeat_interval)
            assert has == [0]
            assert timedelta(milliseconds=200) < longest <= timedelta(milliseconds=800)
        assert daemon.log.count("could not be initialized, trying again in") == 3


def test_the_deletion_of_a_group_is_answered_if_it_meets_a_bug(tmp_path: Path) -> None:
    fault = """
from barnabas.broker.groups.share.offsets import ShareGroupOffsets

async def broken(self, group_id):
    raise ZeroDivisionError("broken on purpose")

ShareGroupOffsets.delete_states = broken
"""
    with start_daemon(tmp_path, environ=with_fault(tmp_path, fault)) as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            create(kafka, "t")
            joined(kafka, "g", "m", "t")
            assert heartbeat(kafka, "g", "m", -1).error_code == ErrorCode.NONE
            assert delete_group(kafka, "g") == ErrorCode.UNKNOWN_SERVER_ERROR
            assert describe(kafka, "g").group_state == "Empty"
        assert "broken on purpose" in daemon.log


def test_of_all_topics_those_are_described_whose_states_are_initialized(tmp_path: Path) -> None:
    """The heartbeat is answered before; Kafka's initializedShareGroupPartitions leaves out the others, too."""
    may_end = tmp_path / "end"
    fault = f"""
import asyncio, pathlib
from barnabas.broker.share.coordinator import ShareCoordinator

initialize = ShareCoordinator.initialize

async def late(self, group_id, partitions):
    results = await initialize(self, group_id, partitions)
    while not pathlib.Path({str(may_end)!r}).exists():
        await asyncio.sleep(0.01)
    return results

ShareCoordinator.initialize = late
"""
    answers: list[list[str]] = []
    with start_daemon(tmp_path, environ=with_fault(tmp_path, fault)) as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            create(kafka, "t")
            assert heartbeat(kafka, "g", "m", 0, "t").error_code == ErrorCode.NONE

            def described() -> list[str]:
                answers.append([each.topic_name for each in offsets(kafka, "g").topics])
                may_end.touch()
                return answers[-1]

            assert eventually(described, what="the state of the topic") == ["t"]
            assert answers[0] == []


@pytest.mark.parametrize("begins_again", [False, True], ids=["before the next one", "after the next one began"])
def test_states_that_were_deleted_before_their_initialization_is_recorded_are_initialized_again(
    tmp_path: Path, *, begins_again: bool
) -> None:
    may_end = {number: tmp_path / f"end-{number}" for number in (1, 2)}
    fault = f"""
import asyncio, logging, pathlib
from barnabas.broker.share.coordinator import ShareCoordinator

initialize = ShareCoordinator.initialize
calls = []

async def late(self, group_id, partitions):
    calls.append(group_id)
    number = len(calls)
    results = await initialize(self, group_id, partitions)
    logging.getLogger("barnabas.test").warning("initialization %d is late", number)
    # The second may fail, because the topic of the states is being deleted; it is repeated then.
    while number < 3 and not pathlib.Path({str(tmp_path)!r}, f"end-{{number}}").exists():
        await asyncio.sleep(0.01)
    logging.getLogger("barnabas.test").warning("initialization %d ends", number)
    return results

ShareCoordinator.initialize = late
"""
    with start_daemon(tmp_path, environ=with_fault(tmp_path, fault)) as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            create(kafka, "t")
            answer = heartbeat(kafka, "g", "m", 0, "t")
            eventually(lambda: "initialization 1 is late" in daemon.log, what="the states are initialized")
            kinds = schema("delete_topics", 6, "request")
            entry = kinds.DeleteTopicState(name="__share_group_state", topic_id=None)
            kafka.call("delete_topics", 6, topics=(entry,), timeout=TIMEOUT)

            def is_late_again() -> bool:
                nonlocal answer
                answer = heartbeat(kafka, "g", "m", answer.member_epoch)
                return "initialization 2 is late" in daemon.log

            if begins_again:
                eventually(is_late_again, what="the states are initialized again")
            may_end[1].touch()
            eventually(lambda: "initialization 1 ends" in daemon.log, what="the end of the first initialization")
            if begins_again:
                answer = heartbeat(kafka, "g", "m", answer.member_epoch)
                assert answer.error_code == ErrorCode.NONE
                assert answer.assignment is None, "these states are not initialized yet"
            may_end[2].touch()
            assert settled(kafka, "g", "m", answer.member_epoch)[1] == [0]
            assert daemon.log.count("initialization 2 ends") == 1

"""Groups of the consumer protocol: assignment, fencing, and the state restored from their records."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.groups.consumer.settings import ConsumerGroupSettings
from barnabas.broker.groups.group import GroupState
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.values import GroupMetadataValue, MemberMetadata
from tests.support.groups.consumer_groups import GROUP, REBALANCE_MS, SESSION_MS, ConsumerGroupHost, assigned


@pytest.fixture
def host() -> ConsumerGroupHost:
    host = ConsumerGroupHost()
    host.topic("t", 4)
    return host


def test_the_first_member_gets_everything_with_its_first_heartbeat(host: ConsumerGroupHost) -> None:
    answer = host.join("a", ["t"])
    assert (answer.error, answer.member_id, answer.member_epoch) == (ErrorCode.NONE, "a", 2)
    assert answer.heartbeat_interval_ms == 5000
    assert assigned(answer) == {host.image.topics["t"].topic_id: [0, 1, 2, 3]}
    assert host.state == "Stable"


def test_a_heartbeat_that_changes_nothing_writes_nothing_and_returns_no_partitions(
    host: ConsumerGroupHost,
) -> None:
    host.join("a", ["t"])
    writes = len(host.log.appends)
    assert assigned(host.beat("a")) is None
    assert len(host.log.appends) == writes


def test_a_partition_gets_a_new_owner_only_after_it_was_given_up(host: ConsumerGroupHost) -> None:
    host.join("a", ["t"])
    assert assigned(host.join("b", ["t"])) == {}
    assert host.state == "Reconciling"
    told = host.beat("a")
    kept = assigned(told)
    assert kept is not None
    assert [len(numbers) for numbers in kept.values()] == [2]
    assert assigned(host.beat("b")) is None, "the partitions still belong to a"
    given_up = host.beat("a", owned=kept)
    assert given_up.member_epoch == host.group.epoch
    received = assigned(host.beat("b"))
    assert received is not None
    assert [len(numbers) for numbers in received.values()] == [2]
    assert host.partitions("a") | host.partitions("b") == {("t", number) for number in range(4)}
    assert host.state == "Stable"


def test_the_partitions_of_a_leaving_member_go_to_the_others(host: ConsumerGroupHost) -> None:
    host.join("a", ["t"])
    host.join("b", ["t"])
    host.settle("a", "b")
    assert host.leave("b").member_epoch == -1
    assert host.state == "Assigning"
    host.settle("a")
    assert len(host.partitions("a")) == 4
    host.leave("a")
    assert host.state == "Empty"


def test_a_member_that_is_silent_is_removed_when_its_session_ends(host: ConsumerGroupHost) -> None:
    host.join("a", ["t"])
    host.join("b", ["t"])
    host.settle("a", "b")
    host.clock.pass_time(SESSION_MS - 1)
    host.beat("a")
    assert "b" in host.group.members
    host.clock.pass_time(1)
    assert list(host.group.members) == ["a"]
    assert assigned(host.beat("a")) == {host.image.topics["t"].topic_id: [0, 1, 2, 3]}
    assert host.ask("b", host.epochs["b"]).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_in_its_rebalance_timeout_is_removed(host: ConsumerGroupHost) -> None:
    host.join("a", ["t"])
    host.join("b", ["t"])
    host.beat("a")
    for _ in range(REBALANCE_MS // 20_000 - 1):
        host.clock.pass_time(20_000)
        host.beat("a")
        host.beat("b")
    host.clock.pass_time(19_999)
    host.beat("b")
    assert "a" in host.group.members
    host.clock.pass_time(1)
    assert list(host.group.members) == ["b"]


def test_a_member_whose_removal_cannot_be_written_is_removed_half_a_second_later(host: ConsumerGroupHost) -> None:
    host.join("a", ["t"])
    host.log.fails = True
    host.clock.pass_time(SESSION_MS)
    assert "a" in host.group.members
    host.log.fails = False
    host.clock.pass_time(500)
    assert host.state == "Empty"


def test_a_change_that_cannot_be_written_leaves_the_group_as_it_was(host: ConsumerGroupHost) -> None:
    host.join("a", ["t"])
    before, epoch = dict(host.group.members), host.group.epoch
    host.log.fails = True
    assert host.join("b", ["t"]).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (host.group.members, host.group.epoch) == (before, epoch)
    host.log.fails = False
    assert host.join("b", ["t"]).error == ErrorCode.NONE


@pytest.mark.parametrize(
    ("epoch", "fields", "error"),
    [
        (2, {}, ErrorCode.NONE),
        (3, {}, ErrorCode.FENCED_MEMBER_EPOCH),
        (1, {}, ErrorCode.FENCED_MEMBER_EPOCH),
        (-3, {}, ErrorCode.INVALID_REQUEST),
        (-2, {}, ErrorCode.INVALID_REQUEST),
        (-2, {"instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        (2, {"instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        (2, {"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        (2, {"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        (0, {}, ErrorCode.INVALID_REQUEST),
        (0, {"rebalance_timeout_ms": 1, "owned": {}}, ErrorCode.INVALID_REQUEST),
        (0, {"rebalance_timeout_ms": 1, "owned": {b"x" * 16: [1]}, "topic_names": []}, ErrorCode.INVALID_REQUEST),
        (2, {"assignor": "sticky"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        (2, {"topic_regex": "a("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
    ],
)
def test_invalid_heartbeats_are_refused(
    host: ConsumerGroupHost, epoch: int, fields: dict[str, Any], error: ErrorCode
) -> None:
    host.join("a", ["t"])
    writes = len(host.log.appends)
    answer = host.ask("a", epoch, **fields)
    assert answer.error == error
    assert (answer.message is None) is (error == ErrorCode.NONE)
    assert len(host.log.appends) == writes


def test_a_heartbeat_to_an_unknown_group_creates_none(host: ConsumerGroupHost) -> None:
    assert host.ask("a", 1).error == ErrorCode.GROUP_ID_NOT_FOUND
    assert host.ask("a", -1).error == ErrorCode.GROUP_ID_NOT_FOUND
    assert host.log.appends == []


def test_a_member_that_missed_the_response_with_its_new_epoch_continues(host: ConsumerGroupHost) -> None:
    host.join("a", ["t"])
    host.join("b", ["t"])
    kept = assigned(host.beat("a"))
    assert kept is not None
    old = host.epochs["a"]
    host.beat("a", owned=kept)
    assert host.epochs["a"] == old + 1
    assert host.ask("a", old, owned=kept).error == ErrorCode.NONE
    assert host.ask("a", old).error == ErrorCode.FENCED_MEMBER_EPOCH, "it does not say what it has"


def test_a_group_has_at_most_its_maximum_of_members() -> None:
    host = ConsumerGroupHost(ConsumerGroupSettings(max_size=1))
    host.join("a", ["t"])
    assert host.join("b", ["t"]).error == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert host.beat("a").error == ErrorCode.NONE


def test_a_static_member_that_comes_back_has_its_old_assignment(host: ConsumerGroupHost) -> None:
    host.join("a", ["t"], instance_id="i")
    host.join("b", ["t"])
    host.settle("a", "b")
    had, epoch = host.partitions("a"), host.group.epoch
    assert host.join("a2", ["t"], instance_id="i").error == ErrorCode.UNRELEASED_INSTANCE_ID
    assert host.leave("a", -2, instance_id="i").member_epoch == -2
    answer = host.join("a2", ["t"], instance_id="i")
    assert (answer.error, answer.member_epoch) == (ErrorCode.NONE, epoch)
    assert host.partitions("a2") == had
    assert host.group.epoch == epoch, "nobody else noticed"
    assert host.ask("a", epoch, instance_id="i").error == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_does_not_come_back_in_its_session_is_removed(host: ConsumerGroupHost) -> None:
    host.join("a", ["t"], instance_id="i")
    host.leave("a", -2, instance_id="i")
    host.clock.pass_time(SESSION_MS)
    assert host.state == "Empty"


def test_the_next_heartbeat_notices_a_topic_that_was_created_deleted_or_extended(host: ConsumerGroupHost) -> None:
    host.join("a", ["t", "later"])
    host.topic("t", 6)
    host.settle("a")
    assert len(host.partitions("a")) == 6
    host.topic("later", 1)
    host.settle("a")
    assert ("later", 0) in host.partitions("a")
    host.delete_topic("t")
    host.settle("a")
    assert host.partitions("a") == {("later", 0)}
    host.topic("others", 3)
    epoch = host.group.epoch
    host.beat("a")
    assert host.group.epoch == epoch


def test_an_expression_matches_existing_and_later_topics(host: ConsumerGroupHost) -> None:
    host.join("a", None, topic_regex="t.*|x")
    assert {name for name, _ in host.partitions("a")} == {"t"}
    host.topic("t2", 1)
    host.topic("u", 1)
    host.settle("a")
    assert {name for name, _ in host.partitions("a")} == {"t", "t2"}
    assert list(host.group.regexes["t.*|x"].topics) == ["t", "t2"]
    host.beat("a", topic_regex="u")
    host.settle("a")
    assert host.partitions("a") == {("u", 0)}
    assert list(host.group.regexes) == ["u"]
    host.leave("a")
    assert host.group.regexes == {}


def test_the_assignor_is_the_one_that_most_members_name(host: ConsumerGroupHost) -> None:
    host.topic("t2", 3)
    host.join("a", ["t", "t2"], assignor="range")
    host.join("b", ["t", "t2"], assignor="range")
    host.join("c", ["t", "t2"])
    host.settle("a", "b", "c")
    assert host.partitions("a") == {("t", 0), ("t", 1), ("t2", 0)}


def test_only_the_owner_of_a_partition_may_commit_its_offset(host: ConsumerGroupHost) -> None:
    topic_id = host.image.topics["t"].topic_id

    def commit(member: str, epoch: int, partition: int, *, version: int = 9) -> ErrorCode:
        try:
            check = host.group.validate_offset_commit(member, None, epoch, knows_member_epochs=version >= 9)
            if check is not None:
                check(topic_id, partition)
        except BrokerError as error:
            return error.code
        return ErrorCode.NONE

    host.join("a", ["t"])
    assert commit("a", 2, 0) == ErrorCode.NONE
    assert commit("a", 2, 0, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert commit("a", 3, 0) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit("b", 2, 0) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit("", -1, 0) == ErrorCode.UNKNOWN_MEMBER_ID
    host.join("b", ["t"])
    host.settle("a", "b")
    ((_, kept), *_), ((_, gone), *_) = sorted(host.partitions("a")), sorted(host.partitions("b"))
    assert commit("a", 2, kept) == ErrorCode.NONE, "it has had this partition ever since"
    assert commit("a", 2, gone) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit("b", 2, gone) == ErrorCode.STALE_MEMBER_EPOCH, "it was another's then"
    host.leave("a")
    host.leave("b")
    assert commit("", -1, 0) == ErrorCode.NONE


def test_members_fetch_offsets_in_their_epoch_and_other_clients_without_one(host: ConsumerGroupHost) -> None:
    host.join("a", ["t"])
    host.group.validate_offset_fetch(None, -1)
    host.group.validate_offset_fetch("a", 2)
    for member, epoch, code in (("a", 1, ErrorCode.STALE_MEMBER_EPOCH), ("b", 2, ErrorCode.UNKNOWN_MEMBER_ID)):
        with pytest.raises(BrokerError) as caught:
            host.group.validate_offset_fetch(member, epoch)
        assert caught.value.code == code


def test_a_read_only_broker_never_removes_a_member(host: ConsumerGroupHost) -> None:
    host.topic("t", 2)
    host.join("a", ["t"])
    again = host.restarted(reads_only=True)
    again.log.fails = True
    member = MemberMetadata(
        member_id="m",
        client_id="client",
        client_host="/",
        rebalance_timeout=SESSION_MS,
        session_timeout=SESSION_MS,
        subscription=b"",
        assignment=b"",
    )
    again.classic.load("old", GroupMetadataValue("consumer", 1, "range", "m", members=(member,)))
    again.clock.pass_time(100 * SESSION_MS)
    assert again.state == host.state == "Stable"
    old = again.classic.get("old")
    assert old is not None
    assert old.state is GroupState.STABLE


def test_a_restart_restores_the_group_from_its_records(host: ConsumerGroupHost) -> None:
    host.join("a", ["t"], instance_id="i", rack_id="r", assignor="uniform")
    host.join("b", None, topic_regex="t.*")
    host.beat("a")
    again = host.restarted()
    for attribute in ("members", "target", "owners", "epoch", "assignment_epoch", "regexes", "static_ids", "state"):
        assert getattr(again.group, attribute) == getattr(host.group, attribute), attribute
    again.settle("a", "b")
    assert again.state == "Stable"
    again.clock.pass_time(SESSION_MS)
    assert again.state == "Empty", "each member has its session from the restart on"


def test_a_group_without_members_is_deleted_and_leaves_no_record(host: ConsumerGroupHost) -> None:
    host.join("a", None, topic_regex="t")
    with pytest.raises(BrokerError) as caught:
        host.group.validate_delete()
    assert caught.value.code == ErrorCode.NON_EMPTY_GROUP
    host.leave("a")
    host.group.validate_delete()
    host.log.append(GROUP, host.group.tombstones())
    assert host.groups.get(GROUP) is None
    assert {key for key, value in host.log.values.items() if value is not None} == set()
    assert host.restarted().groups.get(GROUP) is None


def test_the_groups_of_a_broker_are_counted_by_their_states(host: ConsumerGroupHost) -> None:
    host.join("a", ["t"])
    host.join("b", ["t"])
    assert host.probe.states["Reconciling"] == 1
    host.settle("a", "b")
    assert {state: count for state, count in host.probe.states.items() if count} == {"Stable": 1}
    assert host.probe.completed_rebalances >= 1

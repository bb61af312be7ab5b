"""The classic protocol's state machine responds like Kafka's group coordinator."""

from __future__ import annotations

import math

import pytest

from barnabas.broker.groups.classic.settings import GroupSettings
from barnabas.broker.groups.group import GroupState
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.join_group import JoinedMember
from barnabas.protocol.messages.groups.leave_group import LeavingMember
from barnabas.protocol.messages.groups.sync_group import SyncGroupResponse
from tests.support.groups.groups import REBALANCE_MS, SESSION_MS, GroupHost


@pytest.fixture
def host() -> GroupHost:
    return GroupHost()


def test_the_first_join_gets_an_id_and_the_second_one_a_generation(host: GroupHost) -> None:
    first = host.joined(host.join())
    assert first.error == ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id.startswith("client-")
    second = host.join(first.member_id)
    assert second not in host.answers
    host.pass_time(0)
    answer = host.joined(second)
    assert (answer.error, answer.generation, answer.leader) == (ErrorCode.NONE, 1, first.member_id)
    assert (answer.protocol_type, answer.protocol) == ("consumer", "range")
    assert answer.members == [JoinedMember(member_id=first.member_id, metadata=b"topics")]


def test_a_client_before_version_4_joins_without_a_second_request(host: GroupHost) -> None:
    number = host.join(version=3)
    host.pass_time(0)
    assert (host.joined(number).error, host.joined(number).generation) == (ErrorCode.NONE, 1)


def test_the_initial_rebalance_delay_begins_again_with_each_new_member() -> None:
    host = GroupHost(GroupSettings(initial_rebalance_delay_ms=3000))
    first = host.join(version=3)
    host.pass_time(2000)
    second = host.join(version=3)
    host.pass_time(1000)
    assert first not in host.answers
    host.pass_time(3000)
    assert host.joined(first).generation == host.joined(second).generation == 1


def test_members_get_no_assignment_before_it_is_written(host: GroupHost) -> None:
    (leader, first), (follower, _) = host.new_member(), host.new_member()
    host.pass_time(0)
    assert [each.member_id for each in host.joined(first).members] == [leader, follower]
    waiting = host.sync(follower, 1)
    leading = host.sync(leader, 1, {leader: b"0", follower: b"1"})
    assert not host.answers.keys() & {waiting, leading}
    assert host.is_in(GroupState.COMPLETING_REBALANCE)
    value = host.write_done()
    assert [(each.member_id, each.assignment) for each in value.members] == [(leader, b"0"), (follower, b"1")]
    assert (host.synced(leading).assignment, host.synced(waiting).assignment) == (b"0", b"1")
    assert host.is_in(GroupState.STABLE)


def test_a_failed_write_makes_all_members_join_again(host: GroupHost) -> None:
    member, _ = host.new_member()
    host.pass_time(0)
    number = host.sync(member, 1, {member: b"0"})
    host.write_done(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert host.synced(number) == SyncGroupResponse(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert host.heartbeat(member, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_new_member_makes_the_others_join_again_and_all_get_the_next_generation(host: GroupHost) -> None:
    old = host.form(2)
    newcomer, number = host.new_member()
    assert host.heartbeat(old[0], 1) == ErrorCode.REBALANCE_IN_PROGRESS
    rejoined = [host.join(member_id) for member_id in old]
    assert {host.joined(each).generation for each in (number, *rejoined)} == {2}
    assert host.heartbeat(newcomer, 1) == ErrorCode.ILLEGAL_GENERATION
    assert host.heartbeat(newcomer, 2) == ErrorCode.NONE


def test_a_member_that_does_not_rejoin_in_time_is_removed_and_another_one_leads(host: GroupHost) -> None:
    leader, follower = host.form(2)
    newcomer, _ = host.new_member()
    number = host.join(follower)
    for _ in range(REBALANCE_MS // 5000):
        host.heartbeat(leader, 1)
        host.pass_time(5000)
    assert host.joined(number).leader == follower
    assert [each.member_id for each in host.joined(number).members] == [follower, newcomer]
    assert host.heartbeat(leader, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_session_that_ends_begins_a_rebalance_and_the_last_one_leaves_the_group_empty(host: GroupHost) -> None:
    first, second = host.form(2)
    host.pass_time(SESSION_MS - 1)
    assert host.heartbeat(first, 1) == ErrorCode.NONE
    host.pass_time(1)
    assert host.heartbeat(second, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert host.heartbeat(first, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    host.pass_time(SESSION_MS)
    assert (host.group.state, len(host.group.roster), host.group.generation) == (GroupState.EMPTY, 0, 2)
    value = host.write_done()
    assert (value.generation, value.protocol_type, value.protocol, value.members) == (2, "consumer", None, ())
    assert host.group.wake_at == math.inf


def test_a_member_that_does_not_sync_is_removed_after_the_rebalance_timeout(host: GroupHost) -> None:
    (leader, _), (silent, _) = host.new_member(), host.new_member()
    host.pass_time(0)
    host.sync(leader, 1, {leader: b"0"})
    host.write_done()
    for _ in range(REBALANCE_MS // 5000):
        host.heartbeat(leader, 1)
        host.heartbeat(silent, 1)
        host.pass_time(5000)
    assert host.heartbeat(silent, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert host.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_an_unused_member_id_is_forgotten_when_its_session_ends(host: GroupHost) -> None:
    member_id = host.joined(host.join()).member_id
    host.pass_time(SESSION_MS)
    assert host.joined(host.join(member_id)).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_members_vote_for_an_assignor_that_all_support(host: GroupHost) -> None:
    both = (("cooperative-sticky", b"c"), ("range", b"r"))
    joins = [host.new_member(both), host.new_member(both), host.new_member((("range", b"r"), ("other", b"o")))]
    host.pass_time(0)
    assert {host.joined(number).protocol for _, number in joins} == {"range"}
    assert host.joined(host.join(protocols=(("other", b""),))).error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert host.joined(host.join(protocol_type="connect")).error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert host.joined(host.join(protocols=())).error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_most_preferred_assignor_wins(host: GroupHost) -> None:
    sticky, ranged = ("sticky", b"s"), ("range", b"r")
    joins = [host.new_member(each) for each in ((sticky, ranged), (ranged, sticky), (ranged, sticky))]
    host.pass_time(0)
    assert {host.joined(number).protocol for _, number in joins} == {"range"}


def test_a_follower_that_joins_again_unchanged_gets_the_present_generation(host: GroupHost) -> None:
    leader, follower = host.form(2)
    answer = host.joined(host.join(follower))
    assert (answer.generation, answer.leader, answer.members) == (1, leader, ())
    assert host.is_in(GroupState.STABLE)


@pytest.mark.parametrize("who", ["leader", "changed follower"])
def test_a_leader_or_a_changed_member_that_joins_again_begins_a_rebalance(host: GroupHost, who: str) -> None:
    leader, follower = host.form(2)
    if who == "leader":
        host.join(leader)
    else:
        host.join(follower, (("range", b"other topics"),))
    assert host.is_in(GroupState.PREPARING_REBALANCE)


def test_a_static_member_that_comes_back_keeps_its_assignment_and_fences_its_old_self(host: GroupHost) -> None:
    number = host.join(instance="i")
    host.pass_time(0)
    old = host.joined(number).member_id
    assert old.startswith("i-")
    host.sync(old, 1, {old: b"0"})
    host.write_done()
    number = host.join(instance="i")
    assert number not in host.answers, "its new id is not written down yet"
    assert [each.assignment for each in host.write_done().members] == [b"0"]
    answer = host.joined(number)
    assert (answer.generation, answer.leader, answer.skip_assignment) == (1, answer.member_id, True)
    assert [each.member_id for each in answer.members] == [answer.member_id]
    assert host.synced(host.sync(answer.member_id, 1, instance="i")).assignment == b"0"
    assert host.heartbeat(old, 1, "i") == ErrorCode.FENCED_INSTANCE_ID
    assert host.joined(host.join(old, instance="i")).error == ErrorCode.FENCED_INSTANCE_ID
    assert host.synced(host.sync(old, 1, instance="i")).error == ErrorCode.FENCED_INSTANCE_ID
    with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID"):
        host.group.validate_offset_commit(old, "i", 1)


def test_a_returning_leader_that_cannot_skip_the_assignment_is_not_told_that_it_leads(host: GroupHost) -> None:
    number = host.join(instance="i", version=8)
    host.pass_time(0)
    old = host.joined(number).member_id
    host.sync(old, 1, {old: b"0"})
    host.write_done()
    number = host.join(instance="i", version=8)
    host.write_done()
    assert (host.joined(number).leader, host.joined(number).members) == (old, ())


def test_a_static_member_whose_new_id_cannot_be_written_keeps_the_old_one(host: GroupHost) -> None:
    number = host.join(instance="i")
    host.pass_time(0)
    old = host.joined(number).member_id
    host.sync(old, 1, {old: b"0"})
    host.write_done()
    number = host.join(instance="i")
    host.write_done(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert host.joined(number).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert host.heartbeat(old, 1, "i") == ErrorCode.NONE


def test_a_full_group_refuses_new_members() -> None:
    host = GroupHost(GroupSettings(max_size=2))
    host.form(2)
    assert host.joined(host.join()).error == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_members_leave_in_one_rebalance_by_id_or_instance(host: GroupHost) -> None:
    dynamic, _ = host.new_member()
    host.join(instance="i")
    host.join(instance="j")
    host.pass_time(0)
    host.sync(dynamic, 1, {})
    host.write_done()
    left = host.leave(
        LeavingMember(member_id="", group_instance_id="i"),
        *(LeavingMember(member_id=each) for each in ("nobody", dynamic, "")),
    )
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert [each.error for each in left] == [ErrorCode.NONE, unknown, ErrorCode.NONE, unknown]
    assert (len(host.group.roster), host.group.state) == (1, GroupState.PREPARING_REBALANCE)


def test_waiting_requests_are_answered_when_a_member_leaves_or_repeats_them(host: GroupHost) -> None:
    (leader, _), (follower, _) = host.new_member(), host.new_member()
    host.pass_time(0)
    first, second = host.sync(follower, 1), host.sync(follower, 1)
    assert host.synced(first).error == ErrorCode.REBALANCE_IN_PROGRESS
    host.leave(LeavingMember(member_id=follower))
    assert host.synced(second).error == ErrorCode.UNKNOWN_MEMBER_ID
    first, second = host.join(leader), host.join()
    assert host.joined(second).error == ErrorCode.MEMBER_ID_REQUIRED


@pytest.mark.parametrize(
    ("member", "instance", "generation", "code"),
    [
        ("", None, -1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("stranger", None, 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("member", "instance", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("member", None, 0, ErrorCode.ILLEGAL_GENERATION),
        ("member", None, 2, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_only_members_of_the_generation_may_commit(
    host: GroupHost, member: str, instance: str | None, generation: int, code: ErrorCode
) -> None:
    (known,) = host.form(1)
    host.group.validate_offset_commit(known, None, 1)
    with pytest.raises(BrokerError) as raised:
        host.group.validate_offset_commit(known if member == "member" else member, instance, generation)
    assert raised.value.code == code


def test_commits_are_refused_before_the_assignment_and_open_to_all_in_an_empty_group(host: GroupHost) -> None:
    host.group.validate_offset_commit("", None, -1)
    member, _ = host.new_member()
    host.pass_time(0)
    with pytest.raises(BrokerError, match="REBALANCE_IN_PROGRESS"):
        host.group.validate_offset_commit(member, None, 1)


def test_a_restored_group_continues_with_its_generation(host: GroupHost) -> None:
    member, _ = host.new_member()
    host.pass_time(0)
    host.sync(member, 1, {member: b"0"})
    again = GroupHost(restored=host.write_done())
    assert again.is_in(GroupState.STABLE)
    assert again.heartbeat(member, 1) == ErrorCode.NONE
    assert again.synced(again.sync(member, 1)).assignment == b"0"
    again.pass_time(SESSION_MS)
    assert again.is_in(GroupState.EMPTY)


def test_a_dead_group_refuses_every_request(host: GroupHost) -> None:
    (member,) = host.form(1)
    waiting = host.join(member, (("range", b"new"),))
    other, _ = host.new_member()
    host.group.die()
    host.take()
    assert host.heartbeat(member, 1) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert host.joined(host.join(other)).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert host.synced(host.sync(member, 1)).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert waiting in host.answers


def test_a_member_whose_write_took_longer_than_its_session_can_still_time_out(host: GroupHost) -> None:
    joining = host.join(instance="i", version=3)
    host.pass_time(0)
    member_id = host.joined(joining).member_id
    host.sync(member_id, 1, {member_id: b"mine"}, instance="i")
    host.write_done()
    replaced = host.join(instance="i", version=3)
    host.pass_time(SESSION_MS)  # the record of its replacement is being written, so the late member must not be removed
    assert replaced not in host.answers
    assert host.group.wake_at < math.inf
    host.write_done()
    assert (host.joined(replaced).error, len(host.group.roster)) == (ErrorCode.NONE, 1)
    host.pass_time(SESSION_MS)
    assert len(host.group.roster) == 0

"""Upgrades and downgrades of a group, member by member; no partition ever has two owners."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from barnabas.broker.groups.classic.settings import GroupSettings
from barnabas.broker.groups.consumer.settings import ConsumerGroupSettings, MigrationPolicy
from barnabas.broker.groups.group import GroupState
from barnabas.broker.network.deferred import Deferred
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.consumer_protocol import Assignment, decode_assignment, encode_assignment
from barnabas.protocol.messages.groups.join_group import JoinGroupResponse
from tests.support.groups.consumer_groups import GROUP, REBALANCE_MS, SESSION_MS, ConsumerGroupHost, assigned, now


def joined(answer: JoinGroupResponse | Deferred[JoinGroupResponse]) -> JoinGroupResponse:
    assert not isinstance(answer, Deferred)
    return answer


def classic_group(
    host: ConsumerGroupHost, partitions: Sequence[int] = (0, 1, 2, 3), instance: str | None = None
) -> JoinGroupResponse:
    """Form a stable classic group of one member with `partitions`."""
    answer = host.classic_join(instance=instance)
    host.clock.pass_time(0)
    told: JoinGroupResponse = now(answer) if isinstance(answer, Deferred) else answer
    mine = encode_assignment(Assignment({"t": partitions}))
    host.classic_sync(told.member_id, told.generation, {told.member_id: mine}, instance)
    return told


def rejoin(host: ConsumerGroupHost, member: str, *, owned: Sequence[int] = ()) -> tuple[int, Sequence[int]]:
    """Join and sync as a consumer does; return the generation and the partitions."""
    told = joined(host.classic_join(member, owned={"t": owned}))
    assert told.error == ErrorCode.NONE
    synced = host.classic_sync(member, told.generation)
    return told.generation, decode_assignment(synced.assignment).partitions.get("t", ())


@pytest.fixture
def host() -> ConsumerGroupHost:
    host = ConsumerGroupHost()
    host.topic("t", 4)
    return host


def test_a_classic_member_continues_while_a_member_of_the_consumer_protocol_takes_its_share(
    host: ConsumerGroupHost,
) -> None:
    old = classic_group(host)
    told = host.join("new", ["t"])
    assert (told.error, assigned(told)) == (ErrorCode.NONE, {})
    assert host.classic.get(GROUP) is None
    assert host.partitions(old.member_id) == {("t", number) for number in range(4)}
    assert host.classic_beat(old.member_id, old.generation) == ErrorCode.REBALANCE_IN_PROGRESS
    generation, kept = rejoin(host, old.member_id, owned=(0, 1, 2, 3))
    assert len(kept) == 2
    assert assigned(host.beat("new")) is None, "they are still the other's"
    assert host.classic_beat(old.member_id, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    generation, kept = rejoin(host, old.member_id, owned=kept)
    assert host.classic_beat(old.member_id, generation) == ErrorCode.NONE
    assert len(host.partitions("new")) == 0
    host.settle("new")
    assert len(host.partitions("new")) == 2
    assert not host.partitions("new") & {("t", number) for number in kept}
    assert host.state == "Stable"


def test_a_group_is_downgraded_when_its_last_member_of_the_consumer_protocol_leaves(host: ConsumerGroupHost) -> None:
    old = classic_group(host)
    host.join("new", ["t"])
    rejoin(host, old.member_id, owned=(0, 1, 2, 3))
    host.leave("new")
    assert host.groups.get(GROUP) is None
    group = host.classic.get(GROUP)
    assert group is not None
    assert group.state == GroupState.PREPARING_REBALANCE
    assert [member.member_id for member in group.roster] == [old.member_id]
    kinds = [each.kind for each in host.registry.histories.of(GROUP)]
    assert (kinds.count("upgraded"), kinds.count("downgraded")) == (1, 1)
    assert kinds.index("upgraded") < kinds.index("downgraded")
    answer = host.classic_join(old.member_id)
    host.clock.pass_time(0)
    assert (now(answer) if isinstance(answer, Deferred) else answer).error == ErrorCode.NONE


def test_a_group_is_downgraded_when_the_session_of_its_last_member_of_the_consumer_protocol_ends(
    host: ConsumerGroupHost,
) -> None:
    old = classic_group(host)
    host.join("new", ["t"])
    generation, _ = rejoin(host, old.member_id, owned=(0, 1, 2, 3))
    host.clock.pass_time(SESSION_MS // 2)
    host.classic_beat(old.member_id, generation)
    host.clock.pass_time(SESSION_MS // 2)
    assert host.groups.get(GROUP) is None
    assert host.classic.get(GROUP) is not None


def test_a_static_member_upgrades_the_group_by_a_restart_and_leads_after_the_downgrade(
    host: ConsumerGroupHost,
) -> None:
    classic_group(host, instance="i")
    told = host.join("i2", ["t"], instance_id="i")
    assert (told.error, told.member_epoch) == (ErrorCode.NONE, host.group.epoch)
    assert list(host.group.members) == ["i2"]
    assert host.partitions("i2") == {("t", number) for number in range(4)}
    back = joined(host.classic_join(instance="i"))
    assert (back.error, back.protocol) == (ErrorCode.NONE, "range")
    assert host.groups.get(GROUP) is None, "no member of the new protocol is left"
    group = host.classic.get(GROUP)
    assert group is not None
    assert [member.group_instance_id for member in group.roster] == ["i"]
    synced = host.classic_sync(back.member_id, back.generation, instance="i")
    assert synced.error == ErrorCode.REBALANCE_IN_PROGRESS, "nobody would lead, and see that the topic grows"
    again = joined(host.classic_join(back.member_id, instance="i"))
    assert (again.error, again.leader) == (ErrorCode.NONE, back.member_id)


def test_empty_groups_change_the_protocol_whatever_the_policy() -> None:
    host = ConsumerGroupHost(ConsumerGroupSettings(migration=MigrationPolicy.DISABLED))
    host.topic("t", 1)
    old = classic_group(host, (0,))
    assert host.join("new", ["t"]).error == ErrorCode.GROUP_ID_NOT_FOUND
    host.classic_leave(old.member_id)
    assert host.join("new", ["t"]).error == ErrorCode.NONE
    host.leave("new")
    assert host.classic.get(GROUP) is None
    classic_group(host, (0,))
    assert host.groups.get(GROUP) is None


@pytest.mark.parametrize("policy", [MigrationPolicy.UPGRADE, MigrationPolicy.DISABLED])
def test_a_group_is_not_downgraded_against_the_policy(policy: MigrationPolicy) -> None:
    host = ConsumerGroupHost(ConsumerGroupSettings(migration=policy))
    host.topic("t", 1)
    host.join("new", ["t"])
    host.classic_join()
    host.leave("new")
    assert host.group.classic_members == 1


def test_a_group_of_other_clients_than_consumers_is_not_upgraded(host: ConsumerGroupHost) -> None:
    classic_group(host)
    group = host.classic.get(GROUP)
    assert group is not None
    group.protocol_type = "connect"
    assert host.join("new", ["t"]).error == ErrorCode.GROUP_ID_NOT_FOUND
    assert host.classic.get(GROUP) is group


def test_a_member_that_waits_for_its_generation_is_told_to_join_again_when_the_group_changes(
    host: ConsumerGroupHost,
) -> None:
    first = classic_group(host)
    waiting = host.classic_join()
    assert isinstance(waiting, Deferred)
    assert not waiting.done
    assert host.join("new", ["t"]).error == ErrorCode.NONE
    assert now(waiting).error == ErrorCode.REBALANCE_IN_PROGRESS
    assert first.member_id in host.group.members


def test_invalid_requests_of_classic_members_are_refused(host: ConsumerGroupHost) -> None:
    host.join("new", ["t"])
    assert joined(host.classic_join(version=4)).error == ErrorCode.MEMBER_ID_REQUIRED
    told = joined(host.classic_join())
    assert told.error == ErrorCode.NONE
    member = told.member_id
    assert host.classic_beat(member, told.generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert host.classic_beat("nobody", told.generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert host.classic_beat("new", host.epochs["new"]) == ErrorCode.UNKNOWN_MEMBER_ID
    with pytest.raises(BrokerError) as caught:
        host.classic_sync(member, told.generation + 1)
    assert caught.value.code == ErrorCode.ILLEGAL_GENERATION
    with pytest.raises(BrokerError) as caught:
        host.classic_join(session_ms=GroupSettings().min_session_timeout_ms - 1)
    assert caught.value.code == ErrorCode.INVALID_SESSION_TIMEOUT
    with pytest.raises(BrokerError) as caught:
        host.classic_join(instance="i" * 40_000)
    assert caught.value.code == ErrorCode.INVALID_REQUEST
    with pytest.raises(BrokerError) as caught:
        host.classic_join(assignor="other")
    assert caught.value.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    (left,) = host.classic_leave("nobody").members
    assert left.error == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_member_that_does_not_sync_or_join_in_time_is_removed(host: ConsumerGroupHost) -> None:
    host.join("new", ["t"])
    told = joined(host.classic_join())

    def pass_time(milliseconds: int) -> None:
        for _ in range(milliseconds // 20_000):
            host.clock.pass_time(20_000)
            host.beat("new")
            host.classic_beat(told.member_id, host.group.members[told.member_id].member_epoch)

    pass_time(REBALANCE_MS - 20_000)
    assert told.member_id in host.group.members
    host.clock.pass_time(20_000)
    assert told.member_id not in host.group.members


def test_a_restart_in_the_middle_of_an_upgrade_continues_it(host: ConsumerGroupHost) -> None:
    old = classic_group(host)
    host.join("new", ["t"])
    again = host.restarted()
    assert again.group.members == host.group.members
    assert again.classic_beat(old.member_id, old.generation) == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("protocol", ["deleted", "classic"])
def test_a_deleted_empty_group_is_no_longer_counted(host: ConsumerGroupHost, protocol: str) -> None:
    host.join("a", ["t"])
    host.leave("a")
    assert host.probe.states["Empty"] == 1
    if protocol == "classic":
        classic_group(host)
        assert (host.probe.states["Empty"], host.probe.states["Stable"]) == (0, 1)
    else:
        host.log.append(GROUP, host.group.tombstones(), atomic=False)
        assert host.probe.states["Empty"] == 0


def test_a_group_rebalances_after_a_kill_during_its_downgrade(host: ConsumerGroupHost) -> None:
    old = classic_group(host)
    host.join("new", ["t"])
    rejoin(host, old.member_id, owned=(0, 1, 2, 3))
    host.leave("new")
    again = host.restarted()
    group = again.classic.get(GROUP)
    assert group is not None
    assert group.state == GroupState.PREPARING_REBALANCE, "what the other one had would be nobody's"
    (member,) = group.roster
    assert decode_assignment(member.assignment).partitions == {"t": (0, 1, 2, 3)}, "it still reads what it gives up"


def test_a_static_member_that_replaces_another_before_the_first_generation_gets_partitions(
    host: ConsumerGroupHost,
) -> None:
    assert isinstance(host.classic_join(instance="i"), Deferred)
    told = host.join("new", ["t"], instance_id="i")
    assert told.error == ErrorCode.NONE
    assert told.member_epoch > 0
    assert host.partitions("new") == {("t", number) for number in range(4)}


def test_a_classic_group_is_undisturbed_by_a_refused_upgrade(host: ConsumerGroupHost) -> None:
    classic_group(host)
    waiting = host.classic_join()
    assert isinstance(waiting, Deferred)
    assert host.join("new", None, topic_regex="(").error == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not waiting.done
    host.clock.pass_time(REBALANCE_MS)
    assert now(waiting).error == ErrorCode.NONE

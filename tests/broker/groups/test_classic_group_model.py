"""A classic group keeps Kafka's invariants under random requests, lost responses and failing writes.

Joins, leaves, timeouts, late and repeated requests come in any order. The generation number only grows; a partition
belongs to at most one member of a generation; only members of the generation commit; every request gets a response.
"""

from __future__ import annotations

import math

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.broker.groups.classic.settings import GroupSettings
from barnabas.broker.groups.group import GroupState
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.join_group import JoinGroupResponse
from barnabas.protocol.messages.groups.leave_group import LeavingMember
from tests.support.groups.groups import GroupHost

PARTITIONS = 7
PROTOCOLS = st.sampled_from([(("range", b"a"),), (("range", b"b"),), (("sticky", b"a"), ("range", b"a"))])
INSTANCES = st.sampled_from([None, None, "i", "j"])
ERRORS = st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE])


class GroupMachine(RuleBasedStateMachine):
    """Clients that send any request at any time, with any id and generation that a response has contained."""

    def __init__(self) -> None:
        super().__init__()
        self.host = GroupHost(GroupSettings(max_size=4))
        self.generation = 0
        self.told: dict[int, JoinGroupResponse] = {}
        """Responses to joins, by request number."""
        self.instances: dict[int, str | None] = {}
        self.syncs: dict[int, tuple[int, str]] = {}
        """By request number: the generation and the member that syncs, a static one by its instance id."""
        self.owners: dict[int, dict[int, str]] = {}
        """By generation and partition."""

    def known(self, data: st.DataObject) -> tuple[JoinGroupResponse, str | None] | None:
        """Record the ids and generations that clients have received."""
        if not self.told:
            return None
        number = data.draw(st.sampled_from(sorted(self.told)))
        return self.told[number], self.instances[number]

    @rule(protocols=PROTOCOLS, instance=INSTANCES, version=st.sampled_from([3, 5, 9]))
    def a_client_comes(self, protocols: tuple[tuple[str, bytes], ...], instance: str | None, version: int) -> None:
        number = self.host.join(protocols=protocols, instance=instance, version=version)
        self.instances[number] = instance

    @rule(data=st.data(), protocols=PROTOCOLS)
    def a_client_joins_with_an_id(self, data: st.DataObject, protocols: tuple[tuple[str, bytes], ...]) -> None:
        known = self.known(data)
        if known is not None:
            number = self.host.join(known[0].member_id, protocols, instance=known[1])
            self.instances[number] = known[1]

    @rule(data=st.data())
    def a_client_syncs(self, data: st.DataObject) -> None:
        known = self.known(data)
        if known is not None:
            self.sync(*known)

    def sync(self, told: JoinGroupResponse, instance: str | None) -> None:
        members = [each.member_id for each in told.members]
        assignments = {member: bytes(range(at, PARTITIONS, len(members))) for at, member in enumerate(members)}
        number = self.host.sync(told.member_id, told.generation, assignments, instance=instance)
        self.syncs[number] = (told.generation, instance or told.member_id)

    @rule(protocols=PROTOCOLS, writes=ERRORS)
    def all_members_do_as_they_should(self, protocols: tuple[tuple[str, bytes], ...], writes: ErrorCode) -> None:
        """Let all members join and sync; with random requests alone the group would rarely be stable."""
        members = self.host.group.describe().members
        for each in members:
            number = self.host.join(each.member_id, protocols, instance=each.group_instance_id)
            self.instances[number] = each.group_instance_id
        self.host.pass_time(0)
        self.a_partition_has_at_most_one_owner_in_a_generation()
        newest = {told.member_id: (told, self.instances[number]) for number, told in sorted(self.told.items())}
        for told, instance in newest.values():
            if told.error == ErrorCode.NONE:
                self.sync(told, instance)
        while self.host.writes:
            self.host.write_done(writes)

    @rule(data=st.data())
    def a_client_sends_a_heartbeat(self, data: st.DataObject) -> None:
        known = self.known(data)
        if known is not None:
            code = self.host.heartbeat(known[0].member_id, known[0].generation, known[1])
            if code == ErrorCode.NONE:
                assert known[0].generation == self.host.group.generation

    @rule(data=st.data())
    def a_client_leaves(self, data: st.DataObject) -> None:
        known = self.known(data)
        if known is not None:
            self.host.leave(LeavingMember(member_id=known[0].member_id, group_instance_id=known[1]))

    @rule(data=st.data())
    def a_client_commits(self, data: st.DataObject) -> None:
        known = self.known(data)
        if known is None or known[0].generation < 0:
            return
        told, instance = known
        current = {each.member_id: each.group_instance_id for each in self.host.group.describe().members}
        may = (
            told.member_id in current
            and instance in (None, current[told.member_id])
            and told.generation == self.host.group.generation
            and self.host.group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE)
        )
        try:
            self.host.group.validate_offset_commit(told.member_id, instance, told.generation)
        except BrokerError:
            assert not may
        else:
            assert may

    @rule(milliseconds=st.sampled_from([0, 0, 100, 5_000, 10_000, 60_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.host.pass_time(milliseconds)

    @precondition(lambda self: self.host.writes)
    @rule(error=ERRORS)
    def a_write_ends(self, error: ErrorCode) -> None:
        self.host.write_done(error)

    @invariant()
    def the_generation_only_grows(self) -> None:
        assert self.host.group.generation >= self.generation
        self.generation = self.host.group.generation

    @invariant()
    def a_partition_has_at_most_one_owner_in_a_generation(self) -> None:
        for number, answer in self.host.answers.items():
            if isinstance(answer, JoinGroupResponse):
                if answer.member_id:
                    self.told[number] = answer
                if answer.error == ErrorCode.NONE:
                    assert 0 < answer.generation <= self.host.group.generation
            elif answer.error == ErrorCode.NONE:
                generation, syncing = self.syncs[number]
                owners = self.owners.setdefault(generation, {})
                for partition in answer.assignment:
                    assert owners.setdefault(partition, syncing) == syncing

    @invariant()
    def an_empty_group_has_no_member_to_wait_for(self) -> None:
        group = self.host.group
        if group.state == GroupState.EMPTY:
            assert not len(group.roster)
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            assert group.describe().state == group.state.value
            assert group.wake_at < math.inf

    def teardown(self) -> None:
        for _ in range(200):
            while self.host.writes:
                self.host.write_done()
            if self.host.group.wake_at == math.inf:
                break
            self.host.pass_time(max(0, math.ceil((self.host.group.wake_at - self.host.now) * 1000)))
        assert len(self.host.group.roster) == 0
        assert self.host.group.state is GroupState.EMPTY
        assert not self.host.group.roster.pending_join
        assert set(self.host.answers) == set(range(1, self.host.asked + 1)), "somebody waits for ever"


TestGroup = GroupMachine.TestCase
TestGroup.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

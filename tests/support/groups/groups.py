"""A classic group without a broker: tests control the clock, and whether writes succeed. Responses are kept by request.

host = GroupHost()
host.join("a"); host.run()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.broker.groups.classic import joining, leaving, rebalance, restoring, syncing
from barnabas.broker.groups.classic.actions import Respond, WriteGroup
from barnabas.broker.groups.classic.group import ClassicGroup
from barnabas.broker.groups.classic.settings import GroupSettings
from barnabas.broker.groups.client import JoiningClient
from barnabas.broker.groups.group import GroupState
from barnabas.broker.groups.timers import GroupClock
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.groups.values import GroupMetadataValue
from barnabas.protocol.messages.groups.join_group import GroupProtocol, JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.leave_group import LeavingMember, LeftMember
from barnabas.protocol.messages.groups.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse

SESSION_MS = 10_000
REBALANCE_MS = 60_000
CLIENT = JoiningClient("client", "/127.0.0.1")
RANGE = (("range", b"topics"),)


def assignment_rows(assignments: Mapping[str, bytes]) -> list[MemberAssignment]:
    """Return the leader's assignments, given by member id, as a request has them."""
    return [MemberAssignment(member_id=each, assignment=data) for each, data in assignments.items()]


class GroupHost:
    """Executes the group's actions. `answers` are by request number, `writes` in order."""

    def __init__(self, settings: GroupSettings | None = None, restored: GroupMetadataValue | None = None) -> None:
        self.now = 1000.0
        settings = settings or GroupSettings()
        clock = GroupClock(lambda: self.now, lambda: int(self.now * 1000))
        self.group = (
            ClassicGroup("g", settings, clock)
            if restored is None
            else restoring.restored("g", restored, settings, clock)
        )
        self.answers: dict[int, JoinGroupResponse | SyncGroupResponse] = {}
        self.writes: list[WriteGroup] = []
        self.asked = 0
        self.take()

    def join(
        self,
        member_id: str = "",
        protocols: Sequence[tuple[str, bytes]] = RANGE,
        *,
        instance: str | None = None,
        version: int = 9,
        protocol_type: str = "consumer",
        rebalance_ms: int = REBALANCE_MS,
    ) -> int:
        """Send the request, and return its number."""
        self.asked += 1
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=SESSION_MS,
            sent_rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[GroupProtocol(name=name, metadata=metadata) for name, metadata in protocols],
            version=version,
        )
        joining.join(self.group, request, CLIENT, self.asked)
        self.take()
        return self.asked

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol: str | None = None,
    ) -> int:
        """Send the request, and return its number."""
        self.asked += 1
        request = SyncGroupRequest(
            group_id="g",
            generation=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol=protocol,
            assignments=assignment_rows(assignments or {}),
        )
        syncing.sync(self.group, request, self.asked)
        self.take()
        return self.asked

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> ErrorCode:
        """Send a heartbeat, and return the error code."""
        return self.group.heartbeat(member_id, instance, generation)

    def leave(self, *members: LeavingMember) -> list[LeftMember]:
        """Leave, and return the result for each."""
        left = leaving.leave(self.group, members)
        self.take()
        return left

    def is_in(self, state: GroupState) -> bool:
        """Return whether the group is in that state."""
        return self.group.state == state

    def take(self) -> None:
        """Execute the group's pending actions."""
        for action in self.group.take_actions():
            if isinstance(action, Respond):
                assert action.waiter not in self.answers, "a request was answered twice"
                self.answers[action.waiter] = action.response
            else:
                self.writes.append(action)

    def pass_time(self, milliseconds: int) -> None:
        """Advance the clock, and handle due deadlines."""
        self.now += milliseconds / 1000
        rebalance.tick(self.group)
        self.take()

    def write_done(self, error: ErrorCode = ErrorCode.NONE) -> GroupMetadataValue:
        """Report the outcome of the oldest write, and return its record."""
        write = self.writes.pop(0)
        self.group.written(write.write_id, error)
        self.take()
        return write.value

    def joined(self, number: int) -> JoinGroupResponse:
        """Return the response to a join."""
        answer = self.answers[number]
        assert isinstance(answer, JoinGroupResponse)
        return answer

    def synced(self, number: int) -> SyncGroupResponse:
        """Return the response to a sync."""
        answer = self.answers[number]
        assert isinstance(answer, SyncGroupResponse)
        return answer

    def new_member(self, protocols: Sequence[tuple[str, bytes]] = RANGE) -> tuple[str, int]:
        """Join as a new member; return its id, and the number of the join request with that id."""
        member_id = self.joined(self.join(protocols=protocols)).member_id
        return member_id, self.join(member_id, protocols)

    def form(self, count: int) -> list[str]:
        """Form a stable group of `count` dynamic members; the first leads. A member's assignment is its id."""
        joins = [self.new_member() for _ in range(count)]
        self.pass_time(0)
        generation = self.group.generation
        for member_id, number in joins:
            assert self.joined(number).generation == generation
            self.sync(member_id, generation, {each: each.encode() for each, _ in joins})
        while self.writes:
            self.write_done()
        return [member_id for member_id, _ in joins]

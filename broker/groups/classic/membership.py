"""The classic groups of this broker: their requests, their deadlines in the event loop, their records in the log.

A group decides (`classic_group`), this carries out: it answers who waited, appends the group's record to
`__consumer_offsets`, and tells the group when it is durable. Only a generation or a change of a static member writes a
record; heartbeats and what leads to a generation write none. After a restart a group is what its record says, and each
member has its session from then on to be heard of.

Actions are carried out in the order in which they were asked for, even when an answer lets the next request of its
connection in at once. Source: Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from barnabas.broker.groups.alarms import GroupAlarms
from barnabas.broker.groups.classic.actions import Action, Answer
from barnabas.broker.groups.classic.core import GroupClock, GroupSettings
from barnabas.broker.groups.classic.group import ClassicGroup
from barnabas.broker.groups.classic.joining import JoiningClient
from barnabas.broker.groups.classic.state import GroupState
from barnabas.broker.groups.group_records import GroupRecord
from barnabas.broker.groups.join_limits import ensure_session_timeout, ensure_storable
from barnabas.broker.groups.members import SINCE_COMMIT, GroupSummary, OffsetExpiry
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.keys import GroupMetadataKey
from barnabas.protocol.groups.subscription import CONSUMER
from barnabas.protocol.messages.groups.describe_groups import DescribedGroup
from barnabas.protocol.messages.groups.join_group import NO_MEMBER_ID, JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeftMember
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.groups.group_log import GroupLog
    from barnabas.broker.probes import GroupProbe
    from barnabas.protocol.groups.metadata import GroupMetadataValue

logger = logging.getLogger(__name__)

_STATES_WITH_MEMBERS = (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE, GroupState.STABLE)

JoinAnswer = Deferred[JoinGroupResponse]
SyncAnswer = Deferred[SyncGroupResponse]


class GroupMembership:
    """All groups that have, or had, members. In the event loop only; nothing in here blocks."""

    def __init__(
        self,
        *,
        group_log: GroupLog,
        settings: GroupSettings,
        loop: asyncio.AbstractEventLoop,
        wall_ms: Callable[[], int],
        probe: GroupProbe,
        reads_only: bool = False,
    ) -> None:
        """`reads_only`: nobody's session ends, because nothing that follows from it could be written."""
        self._log = group_log
        self._settings = settings
        self._loop = loop
        self._clock = GroupClock(loop.time, wall_ms)
        self._probe = probe
        self._groups: dict[str, ClassicGroup] = {}
        self._alarms: GroupAlarms[ClassicGroup] = GroupAlarms(loop, self._wake, is_silent=reads_only)
        self._to_do: deque[tuple[ClassicGroup, Action]] = deque()
        self._working = False
        self._stopping = False

    # --- requests

    def join(self, request: JoinGroupRequest, client: JoiningClient) -> JoinAnswer:
        """The answer comes with the group's next generation. Raises BrokerError."""
        self._ensure_serving(request.group_id)
        self.ensure_within_limits(request, client)
        group = self._groups.get(request.group_id)
        is_new = group is None
        if group is None:
            if request.member_id != NO_MEMBER_ID:
                raise _unknown_group(request.group_id)
            group = ClassicGroup(request.group_id, self._settings, self._clock)
            self._groups[request.group_id] = group
            self._probe.entered(group.state.value)
        answer: JoinAnswer = Deferred()
        before = group.state
        group.join(request, client, answer)
        if is_new:
            group.write_existence()
        self._carry_out(group, before)
        return answer

    def ensure_within_limits(self, request: JoinGroupRequest, client: JoiningClient) -> None:
        """What is asked of a join whatever the group is. Raises BrokerError."""
        ensure_session_timeout(request, self._settings)
        ensure_storable(request, client)

    def sync(self, request: SyncGroupRequest) -> SyncAnswer:
        """The answer comes with the leader's assignment. Raises BrokerError."""
        group = self._existing(request.group_id)
        answer: SyncAnswer = Deferred()
        before = group.state
        group.sync(request, answer)
        self._carry_out(group, before)
        return answer

    def heartbeat(self, group_id: str, member_id: str, group_instance_id: str | None, generation: int) -> ErrorCode:
        """What the member is told. Raises BrokerError."""
        try:
            group = self._existing(group_id)
        except BrokerError as error:
            if error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return ErrorCode.NONE  # as Kafka does: nothing is known against it
            raise
        error_code = group.heartbeat(member_id, group_instance_id, generation)
        self._carry_out(group, group.state)
        return error_code

    def leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """What became of each. Raises BrokerError."""
        self._ensure_serving(request.group_id)
        group = self._groups.get(request.group_id)
        if group is None:
            unknown = ErrorCode.UNKNOWN_MEMBER_ID
            return LeaveGroupResponse(
                members=[LeftMember(each.member_id, each.group_instance_id, unknown) for each in request.members]
            )
        before = group.state
        members = group.leave(list(request.members))
        self._carry_out(group, before)
        return LeaveGroupResponse(members=members)

    def describe(self, group_id: str) -> DescribedGroup | None:
        """None: there is no such group. Raises BrokerError while the group's records are being loaded."""
        self._log.ensure_loaded(group_id)
        group = self._groups.get(group_id)
        return None if group is None else group.describe()

    def get(self, group_id: str) -> ClassicGroup | None:
        """None: there is no such group."""
        return self._groups.get(group_id)

    def ask_to_join_again(self, group_id: str) -> None:
        """Whoever waits in the group is told that it rebalances; does nothing where there is no such group."""
        group = self._groups.get(group_id)
        if group is not None:
            group.answer_all(ErrorCode.REBALANCE_IN_PROGRESS)
            self._carry_out(group, group.state)

    # --- what offsets ask

    def group_ids(self) -> Iterable[str]:
        """All groups that there are."""
        return self._groups

    def summary(self, group_id: str) -> GroupSummary | None:
        """None for a group that there is not."""
        group = self._groups.get(group_id)
        return None if group is None else GroupSummary(group.state.value, group.protocol_type)

    def validate_offset_commit(
        self, group_id: str, *, member_id: str, group_instance_id: str | None, generation: int
    ) -> None:
        """A member's commit counts as a heartbeat. Raises BrokerError where it is not one of this generation."""
        group = self._groups.get(group_id)
        if group is not None:
            group.validate_commit(member_id, group_instance_id, generation)

    def validate_offset_delete(self, group_id: str) -> None:
        """Raises BrokerError NON_EMPTY_GROUP for a group with members that is not one of consumers."""
        group = self._groups.get(group_id)
        if group is not None and group.state in _STATES_WITH_MEMBERS and group.protocol_type != CONSUMER:
            raise _not_empty(group)

    def validate_delete(self, group_id: str) -> None:
        """Raises BrokerError NON_EMPTY_GROUP."""
        group = self._groups.get(group_id)
        if group is not None and group.state in _STATES_WITH_MEMBERS:
            raise _not_empty(group)

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Whether a member reads the topic, or may."""
        group = self._groups.get(group_id)
        return group is not None and group.is_subscribed(topic)

    def offset_expiry(self, group_id: str) -> OffsetExpiry | None:
        """Since when the group's offsets age; None: not while it has the members that it has."""
        group = self._groups.get(group_id)
        if group is None or not group.protocol_type:
            return SINCE_COMMIT
        if group.state == GroupState.EMPTY:
            return OffsetExpiry(group.state_since_ms)
        return SINCE_COMMIT if group.state == GroupState.STABLE and group.protocol_type == CONSUMER else None

    def load(self, group_id: str, value: GroupMetadataValue) -> None:
        """At start: the group as the log has it."""
        self.unload(group_id)
        group = ClassicGroup.restored(group_id, value, self._settings, self._clock)
        self._groups[group_id] = group
        self._probe.entered(group.state.value)
        self._alarms.set(group.group_id, group)

    def unload(self, group_id: str) -> None:
        """The group is deleted, or its log has gone: forget it, and refuse whoever waits."""
        group = self._groups.pop(group_id, None)
        if group is None:
            return
        before = group.state
        group.die()
        self._probe.left(before.value)
        self._alarms.forget(group_id)
        self._work_off(group)

    # --- the broker's stop

    def stop(self) -> None:
        """Send everybody who waits, and who comes from now on, to ask for the coordinator again."""
        self._stopping = True
        for group in list(self._groups.values()):
            group.answer_all(ErrorCode.NOT_COORDINATOR)
            self._work_off(group)
            self._alarms.forget(group.group_id)

    # --- steps

    def _ensure_serving(self, group_id: str) -> None:
        if not group_id:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        if self._stopping:
            raise BrokerError(ErrorCode.NOT_COORDINATOR, "the broker stops")
        self._log.ensure_loaded(group_id)

    def _existing(self, group_id: str) -> ClassicGroup:
        self._ensure_serving(group_id)
        group = self._groups.get(group_id)
        if group is None:
            raise _unknown_group(group_id)
        return group

    def _carry_out(self, group: ClassicGroup, before: GroupState) -> None:
        """Do what `group` asks for, after a call that found it in the state `before`."""
        self._count(group, before)
        if not self._stopping:
            self._alarms.set(group.group_id, group)
        self._work_off(group)

    def _count(self, group: ClassicGroup, before: GroupState) -> None:
        if group.state != before:
            self._probe.left(before.value)
            self._probe.entered(group.state.value)
            if group.state == GroupState.STABLE:
                self._probe.completed_rebalances += 1

    def _work_off(self, group: ClassicGroup) -> None:
        self._to_do.extend((group, action) for action in group.take_actions())
        if self._working:
            return  # an answer let the next request in: the loop below goes on with what that one asks for
        self._working = True
        try:
            while self._to_do:
                self._do(*self._to_do.popleft())
        finally:
            self._working = False

    def _do(self, group: ClassicGroup, action: Action) -> None:
        if isinstance(action, Answer):
            action.waiter.resolve(action.response)
            return
        record = GroupRecord(GroupMetadataKey(group.group_id), action.value)
        write_id = action.write_id
        self._log.append(group.group_id, [record]).then(lambda error: self._written(group, write_id, error))

    def _written(self, group: ClassicGroup, write_id: int, error: BrokerError | None) -> None:
        if error is not None:
            logger.warning("the record of group %s could not be written: %s", printable(group.group_id), error)
        before = group.state
        group.written(write_id, ErrorCode.NONE if error is None else _answered_code(error))
        if before != GroupState.DEAD:
            self._carry_out(group, before)

    def _wake(self, group: ClassicGroup) -> None:
        before = group.state
        group.tick()
        self._carry_out(group, before)


def _answered_code(error: BrokerError) -> ErrorCode:
    """What a member is told of a record that could not be written, as Kafka does."""
    too_large = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE)
    return ErrorCode.UNKNOWN_SERVER_ERROR if error.code in too_large else error.code


def _unknown_group(group_id: str) -> BrokerError:
    return BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no group {printable(group_id)}")


def _not_empty(group: ClassicGroup) -> BrokerError:
    return BrokerError(
        ErrorCode.NON_EMPTY_GROUP,
        f"group {printable(group.group_id)} has {group.members} members ({group.state.value})",
    )

"""The classic groups of this broker: their requests, their deadlines in the event loop, their records in the log.

A `ClassicGroup` decides and returns actions. This service carries them out: it answers waiting requests, appends the
group's record to `__consumer_offsets`, and reports to the group when the record is durable. A new group, a generation
and a change of a static member write a record; heartbeats and joins do not. After a restart a group is what its record
contains, and each member's session begins again.

Resolving a response may handle the next request of its connection before it returns, and that request may be about the
same group. So a group only collects its actions, and they are carried out in order from a queue once the group is in a
consistent state. Source: Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.broker.groups.alarms import GroupAlarms
from barnabas.broker.groups.classic.actions import Action, Respond
from barnabas.broker.groups.classic.group import ClassicGroup
from barnabas.broker.groups.classic.joining import join
from barnabas.broker.groups.classic.leaving import leave
from barnabas.broker.groups.classic.rebalance import tick
from barnabas.broker.groups.classic.restoring import restored
from barnabas.broker.groups.classic.syncing import sync
from barnabas.broker.groups.group import GroupState
from barnabas.broker.groups.join_limits import ensure_join_is_storable
from barnabas.broker.groups.log.records import GroupRecord
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.keys import GroupMetadataKey
from barnabas.protocol.messages.groups.describe_groups import DescribedGroup
from barnabas.protocol.messages.groups.join_group import NO_MEMBER_ID, JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeftMember
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.settings import GroupSettings
    from barnabas.broker.groups.client import JoiningClient
    from barnabas.broker.groups.log.group_log import GroupLog
    from barnabas.broker.groups.registry import GroupRegistry
    from barnabas.broker.groups.timers import GroupClock
    from barnabas.protocol.groups.values import GroupMetadataValue


class ClassicGroups:
    """Serves the classic groups of the registry. In the event loop only; no method blocks."""

    def __init__(
        self,
        *,
        group_log: GroupLog,
        registry: GroupRegistry,
        settings: GroupSettings,
        clock: GroupClock,
        loop: asyncio.AbstractEventLoop,
        reads_only: bool = False,
    ) -> None:
        """Create it without groups. `reads_only`: no session ends, because a new generation could not be written."""
        self._log = group_log
        self._registry = registry
        self._settings = settings
        self._clock = clock
        self._alarms: GroupAlarms[ClassicGroup] = GroupAlarms(loop, self._wake, is_silent=reads_only)
        self._to_do: deque[tuple[ClassicGroup, Action]] = deque()
        self._working = False
        self._stopping = False
        group_log.add_replay(self._replay)

    def __iter__(self) -> Iterator[ClassicGroup]:
        return (group for group in self._registry if isinstance(group, ClassicGroup))

    def get(self, group_id: str) -> ClassicGroup | None:
        """Return the classic group of that id; None if there is no group or a consumer group."""
        group = self._registry.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    # --- requests

    def join(self, request: JoinGroupRequest, client: JoiningClient) -> Deferred[JoinGroupResponse]:
        """Join; the response comes with the group's next generation. Raises BrokerError."""
        self.ensure_serving(request.group_id)
        self.ensure_within_limits(request, client)
        group = self.get(request.group_id)
        is_new = group is None
        if group is None:
            if request.member_id != NO_MEMBER_ID:
                raise _unknown_group(request.group_id)
            group = ClassicGroup(request.group_id, self._settings, self._clock, self._registry.histories)
            self._registry.put(group)
            self._registry.count(request.group_id)
        answer: Deferred[JoinGroupResponse] = Deferred()
        join(group, request, client, answer)
        if is_new:
            group.write_existence()
        self._carry_out(group)
        return answer

    def ensure_serving(self, group_id: str) -> None:
        """Raise BrokerError for an empty id, while the group's log is loaded, and once the broker stops."""
        if not group_id:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        if self._stopping:
            raise BrokerError(ErrorCode.NOT_COORDINATOR, "the broker stops")
        self._log.ensure_loaded(group_id)

    def ensure_within_limits(self, request: JoinGroupRequest, client: JoiningClient) -> None:
        """Validate a join as far as no group is needed for it. Raises BrokerError."""
        self._settings.ensure_session_timeout(request)
        ensure_join_is_storable(request, client)

    def sync(self, request: SyncGroupRequest) -> Deferred[SyncGroupResponse]:
        """Sync; the response comes with the leader's assignment. Raises BrokerError."""
        group = self._existing(request.group_id)
        answer: Deferred[SyncGroupResponse] = Deferred()
        sync(group, request, answer)
        self._carry_out(group)
        return answer

    def heartbeat(self, group_id: str, member_id: str, group_instance_id: str | None, generation: int) -> ErrorCode:
        """Return the answer to a member's heartbeat. Raises BrokerError."""
        try:
            group = self._existing(group_id)
        except BrokerError as error:
            if error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return ErrorCode.NONE  # as Kafka does: the member may well be in the group
            raise
        error_code = group.heartbeat(member_id, group_instance_id, generation)
        self._carry_out(group)
        return error_code

    def leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """Remove members, and return the result for each. Raises BrokerError."""
        self.ensure_serving(request.group_id)
        group = self.get(request.group_id)
        if group is None:
            unknown = ErrorCode.UNKNOWN_MEMBER_ID
            members = [
                LeftMember(member_id=each.member_id, group_instance_id=each.group_instance_id, error=unknown)
                for each in request.leaving
            ]
            return LeaveGroupResponse(members=members)
        members = leave(group, request.leaving)
        self._carry_out(group)
        return LeaveGroupResponse(members=members)

    def describe(self, group_id: str) -> DescribedGroup | None:
        """Return the group, None if it does not exist. Raises BrokerError while the group's records are loaded."""
        self._log.ensure_loaded(group_id)
        group = self.get(group_id)
        return None if group is None else group.describe()

    def ask_to_join_again(self, group_id: str) -> None:
        """Answer the group's waiting requests REBALANCE_IN_PROGRESS, if there is a classic group of that id."""
        group = self.get(group_id)
        if group is not None:
            group.answer_all(ErrorCode.REBALANCE_IN_PROGRESS)
            self._carry_out(group)

    # --- start, deletion and stop

    def load(self, group_id: str, value: GroupMetadataValue) -> None:
        """Add the group of a record, at a start or after a downgrade."""
        self.unload(group_id)
        group = restored(group_id, value, self._settings, self._clock, self._registry.histories)
        self._registry.put(group)
        self._registry.count(group_id)
        self._alarms.set(group)

    def unload(self, group_id: str) -> None:
        """Remove a classic group whose record or log is deleted, and refuse its waiting requests."""
        group = self.get(group_id)
        if group is None:
            return
        self._registry.remove(group_id)
        group.die()
        self._alarms.forget(group_id)
        self._work_off(group)

    def stop(self) -> None:
        """Answer NOT_COORDINATOR to waiting and to later requests: their clients look for the coordinator again."""
        self._stopping = True
        for group in self:
            group.answer_all(ErrorCode.NOT_COORDINATOR)
            self._work_off(group)
            self._alarms.forget(group.group_id)

    def _replay(self, record: GroupRecord) -> None:
        if isinstance(record.key, GroupMetadataKey) and record.value is None:
            self.unload(record.key.group)

    # --- steps

    def _existing(self, group_id: str) -> ClassicGroup:
        self.ensure_serving(group_id)
        group = self.get(group_id)
        if group is None:
            raise _unknown_group(group_id)
        return group

    def _carry_out(self, group: ClassicGroup) -> None:
        """Carry out the group's actions after a call that may have changed it."""
        self._registry.count(group.group_id)
        if not self._stopping:
            self._alarms.set(group)
        self._work_off(group)

    def _work_off(self, group: ClassicGroup) -> None:
        self._to_do.extend((group, action) for action in group.take_actions())
        if self._working:
            return  # a response let in the next request: the loop below carries out its actions
        self._working = True
        try:
            while self._to_do:
                self._do(*self._to_do.popleft())
        finally:
            self._working = False

    def _do(self, group: ClassicGroup, action: Action) -> None:
        if isinstance(action, Respond):
            action.waiter.resolve(action.response)
            return
        record = GroupRecord(GroupMetadataKey(group.group_id), action.value)
        write_id = action.write_id
        self._log.append(group.group_id, [record]).then(lambda error: self._written(group, write_id, error))

    def _written(self, group: ClassicGroup, write_id: int, error: BrokerError | None) -> None:
        if error is not None:
            self._log.warn_of_refusal(group.group_id, error)
        was_dead = group.state is GroupState.DEAD
        group.written(write_id, ErrorCode.NONE if error is None else _answered_code(error))
        if not was_dead:
            self._carry_out(group)

    def _wake(self, group: ClassicGroup) -> None:
        tick(group)
        self._carry_out(group)


def _answered_code(error: BrokerError) -> ErrorCode:
    """Return the error code that members get when a record could not be written, as in Kafka."""
    too_large = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE)
    return ErrorCode.UNKNOWN_SERVER_ERROR if error.code in too_large else error.code


def _unknown_group(group_id: str) -> BrokerError:
    return BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no group {printable(group_id)}")

"""The consumer groups of this broker: requests of members of either protocol, and their deadlines.

A request becomes a `GroupChange`: records, and the response that is valid once they are written (`log`). A heartbeat
that changes nothing writes nothing. Source: Kafka's GroupCoordinatorService, GroupMetadataManager.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.groups.consumer import classic_members
from barnabas.broker.groups.consumer.change import GroupChange
from barnabas.broker.groups.consumer.group import JOIN, REBALANCE, SYNC, ConsumerGroup
from barnabas.broker.groups.consumer.heartbeat import heartbeat, leaving, validate_heartbeat
from barnabas.broker.groups.consumer.log import ConsumerGroupLog, Outcome
from barnabas.broker.groups.consumer.migration import can_downgrade, downgraded, replayed, upgraded
from barnabas.broker.groups.group import GroupState
from barnabas.broker.groups.log.records import GroupRecord
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.keys import GroupMetadataKey
from barnabas.protocol.messages.groups.consumer_group_heartbeat import (
    JOIN_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.groups.explain_group import GroupEventKind
from barnabas.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.groups import ClassicGroups
    from barnabas.broker.groups.client import JoiningClient
    from barnabas.broker.groups.consumer.member import ConsumerGroupMember
    from barnabas.broker.groups.consumer.settings import GroupContext
    from barnabas.broker.groups.log.group_log import GroupLog
    from barnabas.broker.groups.registry import GroupRegistry
    from barnabas.broker.groups.timers import TimerKey
    from barnabas.broker.probes import ApiProbe

logger = logging.getLogger(__name__)

Response = TypeVar("Response")

RETRY_MS: Final = 500
"""Delay until a late member's removal is tried again after a failed append. As in Kafka."""

_NO_CAUSES: Final[Mapping[str, GroupEventKind]] = MappingProxyType({})

_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)

_TIMED_OUT: Final = {
    "session": GroupEventKind.SESSION_ENDED,
    REBALANCE: GroupEventKind.REVOCATION_TIMED_OUT,
    JOIN: GroupEventKind.JOIN_TIMED_OUT,
    SYNC: GroupEventKind.SYNC_TIMED_OUT,
}
"""What a deadline's end means, by the kind of the timer."""


class ConsumerGroups:
    """Serves the consumer groups of the registry. In the event loop only; no method blocks."""

    def __init__(
        self,
        *,
        group_log: GroupLog,
        registry: GroupRegistry,
        classic: ClassicGroups,
        context: GroupContext,
        loop: asyncio.AbstractEventLoop,
        reads_only: bool = False,
    ) -> None:
        """Create it without groups. `reads_only`: no session ends, because the change could not be written."""
        self._group_log = group_log
        self._registry = registry
        self._classic = classic
        self._context = context
        self._log = ConsumerGroupLog(
            group_log=group_log, registry=registry, context=context, loop=loop, wake=self._wake, reads_only=reads_only
        )
        self._stopping = False

    def get(self, group_id: str) -> ConsumerGroup | None:
        """Return the consumer group of that id; None if there is no group or a classic one."""
        return self._log.get(group_id)

    @property
    def is_enabled(self) -> bool:
        """Whether group.coordinator.rebalance.protocols includes the protocol."""
        return self._context.settings.is_enabled

    @property
    def default_assignor(self) -> str:
        """The assignor of groups whose members name none."""
        return self._context.settings.assignors[0]

    def ensure_serving(self, group_id: str) -> None:
        """Raise BrokerError while the group's log is loaded, and once the broker stops."""
        if self._stopping:
            raise BrokerError(ErrorCode.NOT_COORDINATOR, "the broker stops")
        self._group_log.ensure_loaded(group_id)

    # --- start, deletion and stop

    def load(self, records: Sequence[GroupRecord]) -> None:
        """Add the groups of a start's records, the newest value of each key in the order of `replay_rank`."""
        self._log.load(records)

    def forget(self, group_id: str) -> None:
        """Remove a group whose log is deleted."""
        self._log.forget(group_id)

    def stop(self) -> None:
        """Answer NOT_COORDINATOR from now on: clients look for the coordinator again."""
        self._stopping = True
        self._log.stop()

    # --- members of the consumer protocol

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: JoiningClient, api: ApiProbe
    ) -> Deferred[ConsumerGroupHeartbeatResponse]:
        """Handle a heartbeat; the response comes once its changes are durable. Raises BrokerError."""
        validate_heartbeat(request, self._context.settings.assignors)
        self.ensure_serving(request.group_id)
        answer: Deferred[ConsumerGroupHeartbeatResponse] = Deferred()

        def ready(error: BrokerError | None) -> None:
            try:
                if error is not None:
                    raise error
                self._heartbeat(request, client, answer)
            except BrokerError as refused:
                api.count_error(refused.code.name.lower())
                answer.resolve(_refused_heartbeat(refused))

        if request.member_epoch == JOIN_EPOCH:  # before the topic exists, two joins would not see each other
            self._group_log.when_ready(request.group_id, ready)
        else:
            ready(None)
        return answer

    def _heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        client: JoiningClient,
        answer: Deferred[ConsumerGroupHeartbeatResponse],
    ) -> None:
        change = self._change(request)
        if request.member_epoch < JOIN_EPOCH:
            left = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
            gone = leaving(change, request)
            outcome = Outcome(answer, lambda: left, _refused_heartbeat)
            if gone is None:
                self._log.write(change, outcome)
            else:
                self._fence(change.group, [gone], outcome)
            return
        response = heartbeat(change, request, client)
        self._classic.ask_to_join_again(request.group_id)  # if it is a classic group, it is upgraded now

        def written() -> ConsumerGroupHeartbeatResponse:
            group = self.get(request.group_id)
            if group is not None and response.member_id in group.members:
                self._mark_topics_checked(group, change)
                group.extend_session(response.member_id, self._context.settings_of(group.group_id).session_timeout_ms)
                self._begin_classic_sessions(group)
            return response

        self._log.write(change, Outcome(answer, written, _refused_heartbeat))

    # --- members of the classic protocol, in a consumer group

    def join(
        self, group: ConsumerGroup, request: JoinGroupRequest, client: JoiningClient
    ) -> Deferred[JoinGroupResponse]:
        """Handle a JoinGroup in a group with members. Raises BrokerError."""
        change = GroupChange(group, self._context)
        response, replaced = classic_members.join(change, request, client)
        answer: Deferred[JoinGroupResponse] = Deferred()

        def written() -> JoinGroupResponse:
            if response.error == ErrorCode.NONE and self.get(request.group_id) is group:
                group.timers.cancel((JOIN, response.member_id))
                group.timers.schedule((SYNC, response.member_id), request.rebalance_timeout_ms)
                group.extend_session(response.member_id, request.session_timeout_ms)
                self._mark_topics_checked(group, change)
            return response

        outcome = Outcome(answer, written, lambda error: request.refused(error.code, error.message))
        if replaced is not None and can_downgrade(group, [replaced], self._context, coming=1):
            self._downgrade(change, [], outcome)
        else:
            self._log.write(change, outcome)
        return answer

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> SyncGroupResponse:
        """Handle a SyncGroup. Raises BrokerError."""
        try:
            response = classic_members.sync(group, request, self._context.image())
            group.timers.cancel((SYNC, request.member_id))
            return response
        finally:
            self._log.set_alarm(group.group_id)

    def classic_heartbeat(
        self, group: ConsumerGroup, member_id: str, group_instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Handle a Heartbeat: return NONE or REBALANCE_IN_PROGRESS. Raises BrokerError."""
        try:
            return classic_members.heartbeat(group, member_id, group_instance_id, generation)
        finally:
            self._log.set_alarm(group.group_id)

    def leave(self, group: ConsumerGroup, request: LeaveGroupRequest) -> Deferred[LeaveGroupResponse]:
        """Handle a LeaveGroup: remove the members, and return the result for each."""
        gone, results = classic_members.leaving(group, request)
        answer: Deferred[LeaveGroupResponse] = Deferred()
        response = LeaveGroupResponse(members=results)
        if gone:
            self._fence(
                group, gone, Outcome(answer, lambda: response, lambda error: LeaveGroupResponse(error=error.code))
            )
        else:
            answer.resolve(response)
        return answer

    # --- events

    def topics_changed(self, names: Iterable[str], *, are_new: bool) -> None:
        """Make the groups that read these topics look at them at their next heartbeat.

        `names` were created, deleted or given partitions; `are_new`: at least one was created.
        """
        for group in self._log:
            if are_new and group.regexes:
                group.is_resolved = group.is_checked = False
            elif any(map(group.is_subscribed, names)):
                group.is_checked = False

    def _wake(self, group: ConsumerGroup) -> None:
        """Remove the members whose deadlines have passed."""
        late: dict[str, TimerKey] = {}
        for key in group.timers.pop_all_due():
            if key[1] in group.members:
                late.setdefault(key[1], key)
                logger.info(
                    "member %s of group %s is removed: its %s time is over",
                    printable(key[1]),
                    printable(group.group_id),
                    key[0],
                )
        if late:
            self._remove_late(group, list(late.values()))
        else:
            self._log.set_alarm(group.group_id)

    def _remove_late(self, group: ConsumerGroup, late: Sequence[TimerKey]) -> None:
        """Remove members by one change, in halves if its records do not fit a batch.

        `late`: a deadline that has passed of each. If the change cannot be written, it is that deadline that passes
        again later: a session alone would be extended by heartbeats.
        """
        members = {key[1]: group.members[key[1]] for key in late}

        def refused(error: BrokerError) -> None:
            # none of them if only the flush failed: they are removed
            kept = [key for key in late if group.members.get(key[1]) is members[key[1]]]
            if len(kept) > 1 and error.code in _TOO_LARGE:
                middle = len(kept) // 2
                self._remove_late(group, kept[:middle])
                rest = [key for key in kept[middle:] if key[1] in group.members]
                if rest:  # the group may have become a classic one
                    self._remove_late(group, rest)
                return
            for key in kept:
                group.timers.schedule(key, RETRY_MS)

        causes = {key[1]: _TIMED_OUT[key[0]] for key in late}
        self._fence(group, list(members.values()), Outcome(Deferred[None](), lambda: None, refused), causes)

    # --- steps

    def _change(self, request: ConsumerGroupHeartbeatRequest) -> GroupChange:
        """Open a change of the existing consumer group, of an upgraded classic one, or of a new group.

        Raises BrokerError GROUP_ID_NOT_FOUND.
        """
        group_id = request.group_id
        group = self.get(group_id)
        if group is not None:
            return GroupChange(group, self._context)
        classic = self._classic.get(group_id)
        is_other = classic is None and group_id in self._registry  # of a protocol that it never leaves
        if request.member_epoch != JOIN_EPOCH or is_other:
            what = "not a consumer group:" if is_other or classic is not None else "there is no group"
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"{what} {printable(group_id)}")
        if classic is None or classic.state is GroupState.EMPTY:
            change = GroupChange(ConsumerGroup(group_id, self._context.clock), self._context)
            if classic is not None:
                change.records += classic.tombstones()
                change.report(GroupEventKind.UPGRADED)
            return change
        upgraded_group, records = upgraded(classic, self._context)
        change = GroupChange(upgraded_group, self._context)
        change.records += records
        change.report(GroupEventKind.UPGRADED)
        return change

    def _mark_topics_checked(self, group: ConsumerGroup, change: GroupChange) -> None:
        """Mark the group's topics as checked, unless they changed while the records of `change` became durable."""
        if change.image.topics is self._context.image().topics:
            group.is_checked = group.is_resolved = True

    def _begin_classic_sessions(self, group: ConsumerGroup) -> None:
        """Start the sessions of classic members that were in the group before its upgrade."""
        for member in group.members.values():
            if member.classic is not None:
                group.begin_session(member.member_id, member.classic.session_timeout_ms)

    def _fence(
        self,
        group: ConsumerGroup,
        gone: Sequence[ConsumerGroupMember],
        outcome: Outcome[Response],
        causes: Mapping[str, GroupEventKind] = _NO_CAUSES,
    ) -> None:
        """Remove members; a group that only classic members remain in is downgraded.

        `causes`: by member id, of those that did not leave by themselves.
        """
        change = GroupChange(group, self._context)
        for member in gone:
            change.report(causes.get(member.member_id, GroupEventKind.LEFT), member)
        if can_downgrade(group, gone, self._context):
            self._downgrade(change, gone, outcome)
        else:
            change.fence(gone)
            self._log.write(change, outcome)

    def _downgrade(self, change: GroupChange, gone: Sequence[ConsumerGroupMember], outcome: Outcome[Response]) -> None:
        """Make the group without the members `gone` a classic group, which rebalances."""
        group_id = change.group.group_id
        after = ConsumerGroup(group_id, self._context.clock)
        replayed(after, [*change.group.records(), *change.records])
        ids = {member.member_id for member in gone}
        left = [member for member in after.members.values() if member.member_id not in ids]
        value = downgraded(after, left, self._context)
        change.records += after.tombstones()
        change.records.append(GroupRecord(GroupMetadataKey(group_id), value))
        change.report(GroupEventKind.DOWNGRADED)

        def load_classic() -> None:
            logger.info("group %s becomes a classic group, members=%d", printable(group_id), len(left))
            self._classic.load(group_id, value)

        self._log.write(change, outcome, then=load_classic)


def _refused_heartbeat(error: BrokerError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error=error.code, message=error.message)

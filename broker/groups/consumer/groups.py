"""The consumer groups of this broker: requests of members of either protocol, and what their deadlines ask for.

A request becomes a `GroupChange`: records, and the answer that holds once these are written (`consumer_group_log`).
Heartbeats that change nothing write nothing. Source: Kafka's GroupCoordinatorService, GroupMetadataManager.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.groups.classic.state import GroupState
from barnabas.broker.groups.consumer import classic_members as consumer_group_classic
from barnabas.broker.groups.consumer.change import GroupChange
from barnabas.broker.groups.consumer.group import JOIN, SYNC, ConsumerGroup
from barnabas.broker.groups.consumer.heartbeat import heartbeat, leaving, validate_heartbeat
from barnabas.broker.groups.consumer.log import ConsumerGroupLog, Outcome
from barnabas.broker.groups.consumer.migration import can_downgrade, downgraded, replayed, upgraded
from barnabas.broker.groups.consumer.records import group_records, group_tombstones
from barnabas.broker.groups.group_records import GroupRecord
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.keys import GroupMetadataKey
from barnabas.protocol.messages.groups.consumer_group_heartbeat import (
    JOIN_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.joining import JoiningClient
    from barnabas.broker.groups.classic.membership import GroupMembership
    from barnabas.broker.groups.consumer.member import ConsumerGroupMember
    from barnabas.broker.groups.consumer.settings import Surroundings
    from barnabas.broker.groups.group_log import GroupLog
    from barnabas.broker.probes import ApiProbe, GroupProbe

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

RETRY_MS: Final = 500
"""Until a member whose time is over is removed again, where the log did not take it. As in Kafka."""


class ConsumerGroups:
    """In the event loop only; nothing in here blocks."""

    def __init__(
        self,
        *,
        group_log: GroupLog,
        classic: GroupMembership,
        around: Surroundings,
        loop: asyncio.AbstractEventLoop,
        probe: GroupProbe,
        reads_only: bool = False,
    ) -> None:
        """`reads_only`: nobody's session ends, because nothing that follows from it could be written."""
        self._group_log = group_log
        self._classic = classic
        self._around = around
        self.log = ConsumerGroupLog(
            group_log=group_log, around=around, loop=loop, probe=probe, wake=self._wake, reads_only=reads_only
        )
        self._groups = self.log.groups
        self._stopping = False

    def get(self, group_id: str) -> ConsumerGroup | None:
        """None: there is no such consumer group."""
        return self._groups.get(group_id)

    @property
    def is_enabled(self) -> bool:
        """Whether the protocol is served."""
        return self._around.settings.is_enabled

    def ensure_serving(self, group_id: str) -> None:
        """Raises BrokerError while the group's log is being loaded, and when the broker stops."""
        if self._stopping:
            raise BrokerError(ErrorCode.NOT_COORDINATOR, "the broker stops")
        self._group_log.ensure_loaded(group_id)

    def tombstones(self, group_id: str) -> list[GroupRecord]:
        """What takes a group back."""
        return group_tombstones(self._groups[group_id])

    @property
    def default_assignor(self) -> str:
        """Of groups that ask for none."""
        return self._around.settings.assignors[0]

    # --- members of the consumer protocol

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: JoiningClient, api: ApiProbe
    ) -> Deferred[ConsumerGroupHeartbeatResponse]:
        """The answer, once what changed is durable. Raises BrokerError."""
        validate_heartbeat(request, self._around.settings.assignors)
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

        if request.member_epoch == JOIN_EPOCH:  # before the topic is there, one join would not see the other
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
                self.log.write(change, outcome)
            else:
                self._fence(change.group, [gone], outcome)
            return
        response = heartbeat(change, request, client)
        if request.group_id not in self._groups:
            self._classic.ask_to_join_again(request.group_id)  # where it is to become a consumer group

        def written() -> ConsumerGroupHeartbeatResponse:
            group = self._groups.get(request.group_id)
            if group is not None and response.member_id in group.members:
                self._topics_are_known(group, change)
                group.extend_session(response.member_id, self._around.settings_of(group.group_id).session_timeout_ms)
                self._begin_sessions(group)
            return response

        self.log.write(change, Outcome(answer, written, _refused_heartbeat))

    # --- members of the classic protocol, in a group that has members

    def join(self, request: JoinGroupRequest, client: JoiningClient) -> Deferred[JoinGroupResponse]:
        """Raises BrokerError."""
        group = self._groups[request.group_id]
        change = GroupChange(group, self._around)
        response, replaced = consumer_group_classic.join(change, request, client)
        answer: Deferred[JoinGroupResponse] = Deferred()

        def written() -> JoinGroupResponse:
            if response.error == ErrorCode.NONE and self._groups.get(request.group_id) is group:
                group.timers.cancel((JOIN, response.member_id))
                group.timers.schedule((SYNC, response.member_id), request.rebalance_timeout_ms)
                group.extend_session(response.member_id, request.session_timeout_ms)
                self._topics_are_known(group, change)
            return response

        outcome = Outcome(answer, written, lambda error: JoinGroupResponse(error.code, request.member_id))
        if replaced is not None and can_downgrade(group, [replaced], self._around, coming=1):
            self._downgrade(change, [], outcome)
        else:
            self.log.write(change, outcome)
        return answer

    def sync(self, request: SyncGroupRequest) -> SyncGroupResponse:
        """Raises BrokerError."""
        group = self._groups[request.group_id]
        try:
            response = consumer_group_classic.sync(group, request, self._around.image())
            group.timers.cancel((SYNC, request.member_id))
            return response
        finally:
            self.log.set_alarm(group.group_id)

    def classic_heartbeat(
        self, group_id: str, member_id: str, group_instance_id: str | None, generation: int
    ) -> ErrorCode:
        """NONE or REBALANCE_IN_PROGRESS. Raises BrokerError."""
        try:
            return consumer_group_classic.heartbeat(self._groups[group_id], member_id, group_instance_id, generation)
        finally:
            self.log.set_alarm(group_id)

    def leave(self, request: LeaveGroupRequest) -> Deferred[LeaveGroupResponse]:
        """What became of each."""
        group = self._groups[request.group_id]
        gone, results = consumer_group_classic.leaving(group, request)
        answer: Deferred[LeaveGroupResponse] = Deferred()
        response = LeaveGroupResponse(members=results)
        if gone:
            self._fence(group, gone, Outcome(answer, lambda: response, lambda error: LeaveGroupResponse(error.code)))
        else:
            answer.resolve(response)
        return answer

    # --- events

    def topics_changed(self, names: frozenset[str], *, are_new: bool) -> None:
        """Topics were made, deleted or given partitions: the groups that read them look at their next heartbeat."""
        for group in self._groups.values():
            if are_new and group.regexes:
                group.is_resolved = group.is_checked = False
            elif any(map(group.is_subscribed, names)):
                group.is_checked = False

    def stop(self) -> None:
        """Send everybody who comes from now on to ask for the coordinator again."""
        self._stopping = True
        self.log.stop()

    def _wake(self, group: ConsumerGroup) -> None:
        """Members whose time is over are removed."""
        late: dict[str, ConsumerGroupMember] = {}
        key = group.timers.pop_due()
        while key is not None:
            member = group.members.get(key[1])
            if member is not None:
                late[member.member_id] = member
                logger.info("member %r of group %r is removed: its %s time is over", key[1], group.group_id, key[0])
            key = group.timers.pop_due()
        if not late:
            self.log.set_alarm(group.group_id)
            return

        def refused(error: BrokerError) -> None:
            for member_id in late:
                group.extend_session(member_id, RETRY_MS)

        self._fence(group, list(late.values()), Outcome(Deferred[None](), lambda: None, refused))

    # --- steps

    def _change(self, request: ConsumerGroupHeartbeatRequest) -> GroupChange:
        """Of the group that there is, that a classic one becomes, or of a new one. Raises BrokerError."""
        group_id = request.group_id
        group = self._groups.get(group_id)
        if group is not None:
            return GroupChange(group, self._around)
        classic = self._classic.get(group_id)
        if request.member_epoch != JOIN_EPOCH:
            what = "there is no group" if classic is None else "this is no consumer group:"
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"{what} {printable(group_id)}")
        if classic is None or classic.state == GroupState.EMPTY:
            change = GroupChange(ConsumerGroup(group_id, self._around.clock), self._around)
            if classic is not None:
                change.records.append(GroupRecord(GroupMetadataKey(group_id), None))
            return change
        upgraded_group, records = upgraded(classic, self._around)
        change = GroupChange(upgraded_group, self._around)
        change.records += records
        return change

    def _topics_are_known(self, group: ConsumerGroup, change: GroupChange) -> None:
        """Unless topics changed while the records of `change` became durable: the next heartbeat looks at those."""
        if change.image.topics is self._around.image().topics:
            group.is_checked = group.is_resolved = True

    def _begin_sessions(self, group: ConsumerGroup) -> None:
        """Of classic members that were in the group before it was a consumer group."""
        for member in group.members.values():
            if member.classic is not None:
                group.begin_session(member.member_id, member.classic.session_timeout_ms)

    def _fence(self, group: ConsumerGroup, gone: Sequence[ConsumerGroupMember], outcome: Outcome[Answer]) -> None:
        change = GroupChange(group, self._around)
        if can_downgrade(group, gone, self._around):
            self._downgrade(change, gone, outcome)
        else:
            change.fence(gone)
            self.log.write(change, outcome)

    def _downgrade(self, change: GroupChange, gone: Sequence[ConsumerGroupMember], outcome: Outcome[Answer]) -> None:
        """Those that are left are a classic group, which rebalances."""
        group_id = change.group.group_id
        after = ConsumerGroup(group_id, self._around.clock)
        replayed(after, [*group_records(change.group), *change.records])
        ids = {member.member_id for member in gone}
        left = [member for member in after.members.values() if member.member_id not in ids]
        value = downgraded(after, left, self._around)
        change.records += group_tombstones(after)
        change.records.append(GroupRecord(GroupMetadataKey(group_id), value))

        def is_classic() -> None:
            logger.info("group %s becomes a classic group, members=%d", printable(group_id), len(left))
            self._classic.load(group_id, value)

        self.log.write(change, outcome, then=is_classic)


def _refused_heartbeat(error: BrokerError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error.code, error.message)

"""The streams groups of this broker: requests of their members, and their deadlines.

A request becomes a `StreamsChange`: records, and the response that is valid once they are written (`log`). A heartbeat
that changes nothing writes nothing. Source: Kafka's GroupCoordinatorService, GroupMetadataManager.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from barnabas.broker.groups.consumer.log import Outcome
from barnabas.broker.groups.group import GroupState
from barnabas.broker.groups.streams.change import StreamsChange
from barnabas.broker.groups.streams.group import INITIAL_DELAY, REBALANCE, StreamsGroup
from barnabas.broker.groups.streams.heartbeat import heartbeat, validate_heartbeat
from barnabas.broker.groups.streams.log import StreamsGroupLog
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.explain_group import GroupEventKind
from barnabas.protocol.messages.groups.streams_group_heartbeat import (
    JOIN_EPOCH,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.groups import ClassicGroups
    from barnabas.broker.groups.client import JoiningClient
    from barnabas.broker.groups.log.group_log import GroupLog
    from barnabas.broker.groups.log.records import GroupRecord
    from barnabas.broker.groups.registry import GroupRegistry
    from barnabas.broker.groups.streams.member import StreamsGroupMember
    from barnabas.broker.groups.streams.settings import StreamsContext
    from barnabas.broker.groups.timers import TimerKey
    from barnabas.broker.probes import ApiProbe
    from barnabas.protocol.messages.topics.topics import NewTopic

logger = logging.getLogger(__name__)

Response = TypeVar("Response")

RETRY_MS: Final = 500
"""Delay until a late member's removal is tried again after a failed append. As in Kafka."""

_TIMED_OUT: Final = {"session": GroupEventKind.SESSION_ENDED, REBALANCE: GroupEventKind.REVOCATION_TIMED_OUT}
"""What a deadline's end means, by the kind of the timer."""


class StreamsHeartbeatResult(NamedTuple):
    """The response, and the internal topics to be created."""

    response: StreamsGroupHeartbeatResponse
    missing_topics: Sequence[NewTopic] = ()


class StreamsGroups:
    """Serves the streams groups of the registry. In the event loop only; no method blocks."""

    def __init__(
        self,
        *,
        group_log: GroupLog,
        registry: GroupRegistry,
        classic: ClassicGroups,
        context: StreamsContext,
        loop: asyncio.AbstractEventLoop,
        reads_only: bool = False,
    ) -> None:
        """Create it without groups. `reads_only`: no session ends, because the change could not be written."""
        self._group_log = group_log
        self._registry = registry
        self._classic = classic
        self._context = context
        self._log = StreamsGroupLog(
            group_log=group_log, registry=registry, context=context, loop=loop, wake=self._wake, reads_only=reads_only
        )
        self._stopping = False

    def get(self, group_id: str) -> StreamsGroup | None:
        """Return the streams group of that id; None if there is no group or one of another type."""
        return self._log.get(group_id)

    @property
    def is_enabled(self) -> bool:
        """Whether the protocol is served."""
        return self._context.is_enabled

    def session_timeout_ms(self, group_id: str) -> int:
        """Return the session timeout of the group's members."""
        return self._context.settings_of(group_id).session_timeout_ms

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

    # --- requests

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client: JoiningClient, api: ApiProbe
    ) -> Deferred[StreamsHeartbeatResult]:
        """Handle a heartbeat; the response comes once its changes are durable. Raises BrokerError."""
        validate_heartbeat(request)
        self.ensure_serving(request.group_id)
        answer: Deferred[StreamsHeartbeatResult] = Deferred()

        def ready(error: BrokerError | None) -> None:
            try:
                if error is not None:
                    raise error
                if request.member_epoch < JOIN_EPOCH:
                    self._leave(request, answer)
                else:
                    self._heartbeat(request, client, answer)
            except BrokerError as refused:
                api.count_error(refused.code.name.lower())
                answer.resolve(_refused(refused))

        if request.member_epoch == JOIN_EPOCH:  # before the topic exists, two joins would not see each other
            self._group_log.when_ready(request.group_id, ready)
        else:
            ready(None)
        return answer

    def _leave(self, request: StreamsGroupHeartbeatRequest, answer: Deferred[StreamsHeartbeatResult]) -> None:
        group = self._existing(request.group_id, unknown="Group {} not found.")
        if request.shutdown_application:
            group.shutdown_member = group.shutdown_member or request.member_id
        left = StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        outcome = Outcome(answer, lambda: StreamsHeartbeatResult(left), _refused)
        self._fence(group, group.member(request.member_id), outcome)

    def _heartbeat(
        self,
        request: StreamsGroupHeartbeatRequest,
        client: JoiningClient,
        answer: Deferred[StreamsHeartbeatResult],
    ) -> None:
        change = self._change(request)
        response = heartbeat(change, request, client)
        configured = change.configured
        assert configured is not None
        if self.get(request.group_id) is None:
            response.endpoint_epoch = 0  # of a new group it begins with the next heartbeat, as in Kafka
        member_id, settings = response.member_id, change.settings

        def replayed(group: StreamsGroup) -> None:
            group.endpoint_epoch = max(group.endpoint_epoch, response.endpoint_epoch)
            group.configured = configured
            group.is_checked = change.image.topics is self._context.image().topics
            if request.shutdown_application:
                group.shutdown_member = group.shutdown_member or member_id
            if change.is_delayed and not group.is_delayed:
                group.timers.schedule(INITIAL_DELAY, settings.initial_delay_ms)
                self._log.set_alarm(group.group_id)

        def written() -> StreamsHeartbeatResult:
            group = self.get(request.group_id)
            if group is not None and member_id in group.members:
                group.extend_session(member_id, settings.session_timeout_ms)
            return StreamsHeartbeatResult(response, configured.missing)

        self._log.write(change, Outcome(answer, written, _refused), replayed=replayed)

    # --- events

    def topics_changed(self, names: Iterable[str]) -> None:
        """Make the groups that need these topics look at them at their next heartbeat."""
        changed = frozenset(names)
        for group in self._log:
            if group.topology is not None and not changed.isdisjoint(group.topology.required_topics):
                group.is_checked = False

    def _wake(self, group: StreamsGroup) -> None:
        """Remove the members whose deadlines have passed; make the first assignment after its delay."""
        due = group.timers.pop_all_due()
        late = [key for key in due if key[1] in group.members]
        for key in late:
            member = group.members.get(key[1])
            if member is not None:  # not removed by its other deadline
                self._remove_late(group, member, key)
        if INITIAL_DELAY in due and not late:
            self._assign_first(group)
        else:
            self._log.set_alarm(group.group_id)

    def _remove_late(self, group: StreamsGroup, member: StreamsGroupMember, key: TimerKey) -> None:
        """Remove a member by itself: the records of thousands might not fit a batch."""
        logger.info(
            "member %s of group %s is removed: its %s time is over",
            printable(member.member_id),
            printable(group.group_id),
            key[0],
        )

        def refused(error: BrokerError) -> None:
            if group.members.get(member.member_id) is member:  # not if only the flush failed
                group.timers.schedule(key, RETRY_MS)

        self._fence(group, member, Outcome(Deferred[None](), lambda: None, refused), _TIMED_OUT[key[0]])

    def _assign_first(self, group: StreamsGroup) -> None:
        """Assign the tasks of a group whose initial delay is over. If that fails, the next heartbeat does it."""
        change = StreamsChange(group, self._context)
        if group.members and group.configured is not None:
            change.target(group.members, group.configured)
        outcome = Outcome(Deferred[None](), lambda: None, lambda error: None)
        self._log.write(change, outcome, replayed=_nothing)

    # --- steps

    def _existing(self, group_id: str, unknown: str = "Streams group {} not found.") -> StreamsGroup:
        """Return the group. Raises BrokerError GROUP_ID_NOT_FOUND."""
        group = self.get(group_id)
        if group is None:
            exists = self._registry.get(group_id) is not None
            message = f"Group {group_id} is not a streams group." if exists else unknown.format(group_id)
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, message)
        return group

    def _change(self, request: StreamsGroupHeartbeatRequest) -> StreamsChange:
        """Open a change of the existing group, or of a new one, which may replace an empty classic group.

        Raises BrokerError GROUP_ID_NOT_FOUND.
        """
        group_id = request.group_id
        classic = self._classic.get(group_id)
        is_free = self._registry.get(group_id) is None or (classic is not None and classic.state is GroupState.EMPTY)
        if request.member_epoch != JOIN_EPOCH or not is_free:
            return StreamsChange(self._existing(group_id), self._context)
        change = StreamsChange(StreamsGroup(group_id, self._context.clock, self._context.image), self._context)
        if classic is not None:
            change.records += classic.tombstones()
        return change

    def _fence(
        self,
        group: StreamsGroup,
        member: StreamsGroupMember,
        outcome: Outcome[Response],
        cause: GroupEventKind = GroupEventKind.LEFT,
    ) -> None:
        """Remove a member."""
        change = StreamsChange(group, self._context)
        change.report(cause, member)
        change.fence(member)
        self._log.write(change, outcome, replayed=_nothing)


def _nothing(group: StreamsGroup) -> None:
    """Change nothing but what the records change."""


def _refused(error: BrokerError) -> StreamsHeartbeatResult:
    return StreamsHeartbeatResult(StreamsGroupHeartbeatResponse(error=error.code, message=error.message))

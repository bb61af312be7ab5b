"""The share groups of this broker: heartbeats of their members, and the ends of their sessions.

A request becomes a `ShareGroupChange`: records, and the response that is valid once they are written (`log`). A
heartbeat that changes nothing writes nothing. Source: Kafka's GroupCoordinatorService, GroupMetadataManager.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.assignors import simple_assignor
from barnabas.broker.groups.share import states as share_states
from barnabas.broker.groups.share.change import ShareGroupChange
from barnabas.broker.groups.share.group import ShareGroup
from barnabas.broker.groups.share.heartbeat import heartbeat, validate_heartbeat
from barnabas.broker.groups.share.initialization import ShareStates
from barnabas.broker.groups.share.log import ShareGroupLog
from barnabas.broker.groups.share.offsets import ShareGroupOffsets
from barnabas.broker.groups.share.records import states_record
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.explain_group import GroupEventKind
from barnabas.protocol.messages.groups.share_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from barnabas.protocol.topic_name import SHARE_STATE_TOPIC

if TYPE_CHECKING:
    from barnabas.broker.coordinator_log.log import Appended
    from barnabas.broker.groups.client import JoiningClient
    from barnabas.broker.groups.log.group_log import GroupLog
    from barnabas.broker.groups.log.records import GroupRecord
    from barnabas.broker.groups.offsets.service import GroupOffsets
    from barnabas.broker.groups.registry import GroupRegistry
    from barnabas.broker.groups.share.context import ShareContext
    from barnabas.broker.groups.share.member import ShareGroupMember
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.share.coordinator import ShareCoordinator

logger = logging.getLogger(__name__)

RETRY_MS: Final = 500
"""Delay until a late member's removal is tried again after a failed append. As in Kafka."""


class ShareGroups:
    """Serves the share groups of the registry. In the event loop only; no method blocks."""

    def __init__(
        self,
        *,
        group_log: GroupLog,
        registry: GroupRegistry,
        offsets: GroupOffsets,
        context: ShareContext,
        coordinator: Callable[[], ShareCoordinator],
        loop: asyncio.AbstractEventLoop,
        reads_only: bool = False,
    ) -> None:
        """Create it without groups.

        `offsets`: the committed offsets of groups of other protocols. `coordinator` returns the share coordinator.
        `reads_only`: no session ends, because the change could not be written.
        """
        self._group_log = group_log
        self._registry = registry
        self._committed = offsets
        self._context = context
        self._log = ShareGroupLog(
            group_log=group_log, registry=registry, context=context, loop=loop, wake=self._wake, reads_only=reads_only
        )
        self._states = ShareStates(self._log, context, coordinator, loop)
        self.offsets = ShareGroupOffsets(self, self._log, self._states, context)
        """What administrators see and change."""
        self._stopping = False

    assignor: Final = simple_assignor.NAME

    def get(self, group_id: str) -> ShareGroup | None:
        """Return the share group of that id; None if there is no group or one of another protocol."""
        return self._log.get(group_id)

    def ensure_serving(self, group_id: str) -> None:
        """Raise BrokerError while the group's log is loaded, and once the broker stops."""
        if self._stopping:
            raise BrokerError(ErrorCode.NOT_COORDINATOR, "the broker stops")
        self._group_log.ensure_loaded(group_id)

    def existing(self, group_id: str) -> ShareGroup:
        """Return the share group. Raises BrokerError GROUP_ID_NOT_FOUND."""
        group = self.get(group_id)
        if group is None:
            what = "is not a share group" if self._is_taken(group_id) else "not found"
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {printable(group_id)} {what}.")
        return group

    def existing_or_new(self, group_id: str) -> ShareGroup:
        """Return the share group, or one that its first record creates. Raises BrokerError GROUP_ID_NOT_FOUND."""
        if self.get(group_id) is None and not self._is_taken(group_id):
            return ShareGroup(group_id, self._context.clock)
        return self.existing(group_id)

    def delete(self, group_id: str) -> Appended:
        """Delete a group without members, with its states. Raises BrokerError, or the answer carries the error."""
        self.existing(group_id).ensure_empty()
        answer: Appended = Deferred()

        async def delete() -> None:
            try:
                await self.offsets.delete_states(group_id)
                self.existing(group_id).ensure_empty()  # a member may have joined meanwhile
                removed = self._committed.remove_group(group_id)
            except BrokerError as error:
                answer.resolve(error)
            except Exception:
                # The task's own exception would be nobody's, and the client would wait for its answer in vain.
                logger.exception("share group %s is not deleted", printable(group_id))
                answer.resolve(BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "an error inside the broker"))
            else:
                removed.then(answer.resolve)

        self._states.spawn(delete())
        return answer

    # --- start, deletion and stop

    def load(self, records: Sequence[GroupRecord]) -> None:
        """Add the groups of a start's records, the newest value of each key in the order of `share_replay_rank`."""
        self._log.load(records)

    def loaded(self) -> None:
        """Forget the states of topics that were deleted before a kill, or all if the topic of the states was."""
        image = self._context.image()
        gone = self._topics_with_states()
        if SHARE_STATE_TOPIC in image.topics:
            gone -= image.names.keys()
        self.topics_deleted(gone)

    def forget(self, group_id: str) -> None:
        """Remove a group whose log is deleted."""
        self._log.forget(group_id)

    def stop(self) -> None:
        """Answer NOT_COORDINATOR from now on: clients look for the coordinator again."""
        self._stopping = True
        self._log.stop()
        self._states.stop()

    # --- heartbeats

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, client: JoiningClient, api: ApiProbe
    ) -> Deferred[ShareGroupHeartbeatResponse]:
        """Handle a heartbeat; the response comes once its changes are durable. Raises BrokerError."""
        validate_heartbeat(request)
        self.ensure_serving(request.group_id)
        answer: Deferred[ShareGroupHeartbeatResponse] = Deferred()

        def ready(error: BrokerError | None) -> None:
            try:
                if error is not None:
                    raise error
                self._heartbeat(request, client, answer)
            except BrokerError as refused:
                api.count_error(refused.code.name.lower())
                answer.resolve(request.refused(refused.code, refused.message))

        if request.member_epoch == JOIN_EPOCH:  # before the topic exists, two joins would not see each other
            self._group_log.when_ready(request.group_id, ready)
        else:
            ready(None)
        return answer

    def _heartbeat(
        self,
        request: ShareGroupHeartbeatRequest,
        client: JoiningClient,
        answer: Deferred[ShareGroupHeartbeatResponse],
    ) -> None:
        group_id, member_id = request.group_id, request.member_id
        joins = request.member_epoch == JOIN_EPOCH
        group = self.existing_or_new(group_id) if joins else self.existing(group_id)
        change = ShareGroupChange(group, self._context)
        if request.member_epoch == LEAVE_EPOCH:
            member = group.member(member_id)
            change.report(GroupEventKind.LEFT, member)
            change.fence(member)
            response = ShareGroupHeartbeatResponse(member_id=member_id, member_epoch=LEAVE_EPOCH)
        else:
            response = heartbeat(change, request, client)

        def written(error: BrokerError | None) -> None:
            if error is not None:
                answer.resolve(request.refused(error.code, error.message))
                return
            if change.initializes and not self._stopping:
                self._states.begin(group_id, change.initializes, change.epoch)
            group = self.get(group_id)
            if group is not None and member_id in group.members:
                if change.image.topics is self._context.image().topics:
                    group.is_checked = True
                group.extend_session(member_id, change.settings.session_timeout_ms)
                self._log.set_alarm(group_id)
            answer.resolve(response)

        self._log.write(change).then(written)

    # --- events

    def topics_changed(self, names: Iterable[str]) -> None:
        """Make the groups that read these topics look at them at their next heartbeat."""
        changed = list(names)
        for group in self._log:
            if any(map(group.is_subscribed, changed)):
                group.is_checked = False

    def topics_deleted(self, topic_ids: Collection[bytes]) -> None:
        """Forget the states of deleted topics; the share coordinator deletes them by itself."""
        image = self._context.image()
        for group in self._log:
            states = share_states.without_topics(group.states, topic_ids, image) if topic_ids else None
            if states is not None:
                change = ShareGroupChange(group, self._context)
                change.records.append(states_record(group.group_id, states))
                self._log.write(change)

    def states_deleted(self) -> None:
        """Forget all states, after their topic was deleted: the next heartbeats let them begin again."""
        self._states.lost()
        self.topics_deleted(self._topics_with_states())

    def _topics_with_states(self) -> set[bytes]:
        return {
            topic_id
            for group in self._log
            for topics in (group.states.initializing, group.states.initialized, group.states.deleting)
            for topic_id in topics
        }

    def _wake(self, group: ShareGroup) -> None:
        """Remove the members whose sessions have ended."""
        for _, member_id in group.timers.pop_all_due():
            member = group.members.get(member_id)
            if member is not None:
                self._remove_late(group, member)
        self._log.set_alarm(group.group_id)

    def _remove_late(self, group: ShareGroup, member: ShareGroupMember) -> None:
        logger.info(
            "member %s of share group %s is removed: its session is over",
            printable(member.member_id),
            printable(group.group_id),
        )
        change = ShareGroupChange(group, self._context)
        change.report(GroupEventKind.SESSION_ENDED, member)
        change.fence(member)

        def done(error: BrokerError | None) -> None:
            if error is not None and group.members.get(member.member_id) is member:  # not if only the flush failed
                group.extend_session(member.member_id, RETRY_MS)
                self._log.set_alarm(group.group_id)

        self._log.write(change).then(done)

    def _is_taken(self, group_id: str) -> bool:
        """Return whether a group of another protocol has the id, if no share group has it."""
        return self._registry.get(group_id) is not None or group_id in self._committed

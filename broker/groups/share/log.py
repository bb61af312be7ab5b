"""The records of share groups: a change is appended and replayed into its group.

The groups are what the log contains: only replay changes them, at a start and at run time alike. If a change cannot be
written, its group stays as it was. Source: Kafka's CoordinatorRuntime.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.groups.alarms import GroupAlarms
from barnabas.broker.groups.share.group import ShareGroup
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.protocol.groups.keys import ShareGroupKey, ShareGroupMemberMetadataKey, ShareGroupMetadataKey
from barnabas.protocol.groups.share_group_values import ShareGroupValue
from barnabas.protocol.messages.groups.explain_group import GroupEventKind

if TYPE_CHECKING:
    from barnabas.broker.coordinator_log.log import Appended
    from barnabas.broker.groups.log.group_log import GroupLog
    from barnabas.broker.groups.log.records import GroupRecord
    from barnabas.broker.groups.registry import GroupRegistry
    from barnabas.broker.groups.share.change import ShareGroupChange
    from barnabas.broker.groups.share.context import ShareContext
    from barnabas.protocol.errors import BrokerError

logger = logging.getLogger(__name__)


class ShareGroupLog:
    """Writes and replays the share groups of the registry. In the event loop only."""

    def __init__(
        self,
        *,
        group_log: GroupLog,
        registry: GroupRegistry,
        context: ShareContext,
        loop: asyncio.AbstractEventLoop,
        wake: Callable[[ShareGroup], None],
        reads_only: bool,
    ) -> None:
        self._log = group_log
        self._registry = registry
        self._context = context
        self._alarms: GroupAlarms[ShareGroup] = GroupAlarms(loop, wake, is_silent=reads_only)
        self._stopping = False
        group_log.add_replay(self._replay)

    def __iter__(self) -> Iterator[ShareGroup]:
        return (group for group in self._registry if isinstance(group, ShareGroup))

    def get(self, group_id: str) -> ShareGroup | None:
        """Return the share group of that id; None if there is no group or one of another protocol."""
        group = self._registry.get(group_id)
        return group if isinstance(group, ShareGroup) else None

    def ready(self, group_id: str) -> Appended:
        """Return an answer that comes once the group's partition exists."""
        ready: Appended = Deferred()
        self._log.when_ready(group_id, ready.resolve)
        return ready

    def write(self, change: ShareGroupChange) -> Appended:
        """Append the records of a change as one batch; the answer comes once they are durable."""
        group_id = change.group.group_id
        answer: Appended = Deferred()

        def done(error: BrokerError | None) -> None:
            if error is not None:
                self._log.warn_of_refusal(group_id, error)
                # if only the flush failed, the records are replayed and members joined
                self._begin_sessions(group_id, _members_of(change.records))
            self.set_alarm(group_id)
            answer.resolve(error)

        if not change.records:
            self._log.settled(group_id).then(done)
            return answer

        def replayed() -> None:
            for event in change.events:
                self._registry.histories.add(group_id, *event)
                if event[0] is GroupEventKind.REBALANCE_BEGAN:
                    self._registry.count_share_rebalance()

        appended = self._log.append(group_id, change.records, replayed=replayed)
        self._registry.count(group_id)
        appended.then(done)
        return answer

    def synced(self, group_id: str) -> Appended:
        """Return an answer that comes once the group's records are on the disk, whatever the flush settings."""
        return self._log.coordinator_log.synced(self._log.partition_of(group_id))

    def load(self, records: Sequence[GroupRecord]) -> None:
        """Replay records of a start, the newest value of each key. Each member's session begins."""
        for record in records:
            self._replay(record)
        for group_id in dict.fromkeys(record.key.group for record in records):
            group = self.get(group_id)
            if group is not None:
                group.states_since = -math.inf  # nobody waits for the share coordinator's answer any more
            self._begin_sessions(group_id, () if group is None else group.members)
            self._registry.count(group_id)
            self.set_alarm(group_id)

    def forget(self, group_id: str) -> None:
        """Remove a group whose log is deleted, if it is a share group."""
        if self.get(group_id) is not None:
            self._registry.remove(group_id)
        self._alarms.forget(group_id)

    def set_alarm(self, group_id: str) -> None:
        """Set the group's alarm after its deadlines may have changed."""
        group = self.get(group_id)
        if group is None:
            self._alarms.forget(group_id)
        elif not self._stopping:
            self._alarms.set(group)

    def stop(self) -> None:
        """Cancel all alarms."""
        self._stopping = True
        for group in self:
            self._alarms.forget(group.group_id)

    def _begin_sessions(self, group_id: str, member_ids: Iterable[str]) -> None:
        """Start the sessions of those of these members that exist and have none yet."""
        group = self.get(group_id)
        if group is not None:
            timeout_ms = self._context.settings_of(group_id).session_timeout_ms
            for member_id in member_ids:
                if member_id in group.members:
                    group.begin_session(member_id, timeout_ms)

    def _replay(self, record: GroupRecord) -> None:
        key, value = record
        if not isinstance(key, ShareGroupKey):
            return
        group = self.get(key.group)
        if group is None:
            if value is None:
                return  # a tombstone of a deleted group
            if key.group in self._registry:
                logger.warning("%s has records of a share group, but is a group of another type", printable(key.group))
                return
            group = ShareGroup(key.group, self._context.clock)
            self._registry.put(group)
        assert value is None or isinstance(value, ShareGroupValue)
        group.replay(key, value)
        if isinstance(key, ShareGroupMetadataKey) and value is None:
            self._registry.remove(key.group)
            self._alarms.forget(key.group)


def _members_of(records: Iterable[GroupRecord]) -> list[str]:
    return [record.key.member_id for record in records if isinstance(record.key, ShareGroupMemberMetadataKey)]

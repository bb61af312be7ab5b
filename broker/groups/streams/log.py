"""The records of streams groups: a change is appended, replayed into its group, and then answered.

The groups are what the log contains: only replay changes their records' state, at a start and at run time alike. If a
change cannot be written, its group stays as it was and the response carries the error. Source: Kafka's
CoordinatorRuntime.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.groups.alarms import GroupAlarms
from barnabas.broker.groups.log.records import GroupRecord
from barnabas.broker.groups.streams.group import StreamsGroup
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.groups.keys import (
    StreamsGroupKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
)
from barnabas.protocol.groups.streams_group_values import StreamsGroupValue

if TYPE_CHECKING:
    from barnabas.broker.groups.consumer.log import Outcome
    from barnabas.broker.groups.log.group_log import GroupLog
    from barnabas.broker.groups.registry import GroupRegistry
    from barnabas.broker.groups.streams.change import StreamsChange
    from barnabas.broker.groups.streams.settings import StreamsContext

Response = TypeVar("Response")


class StreamsGroupLog:
    """Writes and replays the streams groups of the registry. In the event loop only."""

    def __init__(
        self,
        *,
        group_log: GroupLog,
        registry: GroupRegistry,
        context: StreamsContext,
        loop: asyncio.AbstractEventLoop,
        wake: Callable[[StreamsGroup], None],
        reads_only: bool,
    ) -> None:
        self._log = group_log
        self._registry = registry
        self._context = context
        self._alarms: GroupAlarms[StreamsGroup] = GroupAlarms(loop, wake, is_silent=reads_only)
        self._stopping = False
        group_log.add_replay(self._replay)

    def __iter__(self) -> Iterator[StreamsGroup]:
        return (group for group in self._registry if isinstance(group, StreamsGroup))

    def get(self, group_id: str) -> StreamsGroup | None:
        """Return the streams group of that id; None if there is no group or one of another type."""
        group = self._registry.get(group_id)
        return group if isinstance(group, StreamsGroup) else None

    def write(
        self, change: StreamsChange, outcome: Outcome[Response], *, replayed: Callable[[StreamsGroup], None]
    ) -> None:
        """Append the records of a change as one batch, then answer.

        `replayed` is called with the group as soon as the records are in it: the next request may arrive before they
        are durable.
        """
        group_id = change.group.group_id

        def done(error: BrokerError | None) -> None:
            if error is None:
                response = outcome.result()
            else:
                self._log.warn_of_refusal(group_id, error)
                # if only the flush failed, the records are replayed and members joined
                self._begin_sessions(group_id, _members_of(change.records))
                response = outcome.refused(error)
            self.set_alarm(group_id)
            outcome.answer.resolve(response)

        def applied() -> None:
            group = self.get(group_id)
            if group is not None:
                for event in change.events:
                    self._registry.histories.add(group_id, *event)
                replayed(group)

        if not change.records:
            applied()
            appended = self._log.settled(group_id)
        else:
            appended = self._log.append(group_id, change.records, replayed=applied)
        self._registry.count(group_id)
        appended.then(done)

    def load(self, records: Sequence[GroupRecord]) -> None:
        """Replay records of a start, the newest value of each key. Each member's session begins."""
        for record in records:
            self._replay(record)
        for group_id in dict.fromkeys(record.key.group for record in records):
            group = self.get(group_id)
            self._begin_sessions(group_id, () if group is None else group.members)
            self._registry.count(group_id)
            self.set_alarm(group_id)

    def forget(self, group_id: str) -> None:
        """Remove a group whose log is deleted, if it is a streams group."""
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
        if group is None:
            return
        timeout_ms = self._context.settings_of(group_id).session_timeout_ms
        for member_id in member_ids:
            if member_id in group.members:
                group.begin_session(member_id, timeout_ms)

    def _replay(self, record: GroupRecord) -> None:
        key = record.key
        if not isinstance(key, StreamsGroupKey):
            return
        value = record.value
        assert value is None or isinstance(value, StreamsGroupValue)
        group = self.get(key.group)
        if group is None:
            if value is None:
                return  # a tombstone of a deleted group
            group = StreamsGroup(key.group, self._context.clock, self._context.image)
            self._registry.put(group)
        group.replay(key, value)
        if isinstance(key, StreamsGroupMetadataKey) and value is None:
            self._registry.remove(key.group)
            self._alarms.forget(key.group)


def _members_of(records: Iterable[GroupRecord]) -> list[str]:
    return [record.key.member_id for record in records if isinstance(record.key, StreamsGroupMemberMetadataKey)]

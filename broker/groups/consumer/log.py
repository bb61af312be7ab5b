"""The records of consumer groups: a change is appended, replayed into its group, and then answered.

The groups are what the log contains: only replay changes them, at a start and at run time alike. If a change cannot be
written, its group stays as it was and the response carries the error. Source: Kafka's CoordinatorRuntime.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from barnabas.broker.groups.alarms import GroupAlarms
from barnabas.broker.groups.consumer.group import ConsumerGroup
from barnabas.broker.groups.log.records import GroupRecord
from barnabas.broker.network.deferred import Deferred
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.groups.consumer_group_values import ConsumerGroupValue
from barnabas.protocol.groups.keys import (
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
)

if TYPE_CHECKING:
    from barnabas.broker.groups.consumer.change import GroupChange
    from barnabas.broker.groups.consumer.settings import GroupContext
    from barnabas.broker.groups.log.group_log import GroupLog
    from barnabas.broker.groups.registry import GroupRegistry

Response = TypeVar("Response")


class Outcome(NamedTuple, Generic[Response]):
    """The response to a change: `result` makes it once the records are written, `refused` if they could not be."""

    answer: Deferred[Response]
    result: Callable[[], Response]
    refused: Callable[[BrokerError], Response]


class ConsumerGroupLog:
    """Writes and replays the consumer groups of the registry. In the event loop only."""

    def __init__(
        self,
        *,
        group_log: GroupLog,
        registry: GroupRegistry,
        context: GroupContext,
        loop: asyncio.AbstractEventLoop,
        wake: Callable[[ConsumerGroup], None],
        reads_only: bool,
    ) -> None:
        self._log = group_log
        self._registry = registry
        self._context = context
        self._alarms: GroupAlarms[ConsumerGroup] = GroupAlarms(loop, wake, is_silent=reads_only)
        self._stopping = False
        group_log.add_replay(self._replay)

    def __iter__(self) -> Iterator[ConsumerGroup]:
        return (group for group in self._registry if isinstance(group, ConsumerGroup))

    def get(self, group_id: str) -> ConsumerGroup | None:
        """Return the consumer group of that id; None if there is no group or a classic one."""
        group = self._registry.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def write(self, change: GroupChange, outcome: Outcome[Response], *, then: Callable[[], None] | None = None) -> None:
        """Append the records of a change as one batch, then answer.

        If the change deletes the group, `then` is called as soon as it is replayed: the group that takes its place has
        to exist before the next request, which may arrive before the records are durable.
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

        if not change.records:
            self._log.settled(group_id).then(done)
            return

        def replayed() -> None:
            for event in change.events:
                self._registry.histories.add(group_id, *event)

        appended = self._log.append(group_id, change.records, replayed=replayed)
        self._registry.count(group_id)
        if then is not None and self.get(group_id) is None:
            then()
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
        """Remove a group whose log is deleted, if it is a consumer group."""
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
        own_ms = self._context.settings_of(group_id).session_timeout_ms
        for member_id in member_ids:
            member = group.members.get(member_id)
            if member is None:
                continue
            timeout_ms = own_ms if member.classic is None else member.classic.session_timeout_ms
            group.begin_session(member_id, timeout_ms)

    def _replay(self, record: GroupRecord) -> None:
        key, value = record
        if not isinstance(key, ConsumerGroupKey):
            return
        group = self.get(key.group)
        if group is None:
            if value is None:
                return  # a tombstone of a deleted group
            group = ConsumerGroup(key.group, self._context.clock)
            self._registry.put(group)
        assert value is None or isinstance(value, ConsumerGroupValue)
        group.replay(key, value)
        if isinstance(key, ConsumerGroupMetadataKey) and value is None:
            self._registry.remove(key.group)
            self._alarms.forget(key.group)


def _members_of(records: Iterable[GroupRecord]) -> list[str]:
    return [record.key.member_id for record in records if isinstance(record.key, ConsumerGroupMemberMetadataKey)]

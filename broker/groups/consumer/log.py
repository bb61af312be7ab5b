"""Consumer groups and their records: what a change asks for is appended, replayed into the group, and then answered.

`groups` is what the log says, and replay alone changes it, at a start and at run time alike. A change that cannot be
written leaves its group as it was, and the answer says why. Source: Kafka's CoordinatorRuntime.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from barnabas.broker.groups.alarms import GroupAlarms
from barnabas.broker.groups.consumer.group import ConsumerGroup, ConsumerGroupState
from barnabas.broker.groups.group_records import GroupRecord
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.groups.consumer_group_keys import ConsumerGroupKey, ConsumerGroupMetadataKey
from barnabas.protocol.groups.metadata import GroupMetadataValue
from barnabas.protocol.groups.offsets import OffsetCommitValue

if TYPE_CHECKING:
    from barnabas.broker.groups.consumer.change import GroupChange
    from barnabas.broker.groups.consumer.settings import Surroundings
    from barnabas.broker.groups.group_log import GroupLog
    from barnabas.broker.probes import GroupProbe

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class Outcome(NamedTuple, Generic[Answer]):
    """What is to be answered: `result` makes it once the records are written, `refused` where they are not."""

    answer: Deferred[Answer]
    result: Callable[[], Answer]
    refused: Callable[[BrokerError], Answer]


class ConsumerGroupLog:
    """The groups by id. In the event loop only."""

    def __init__(
        self,
        *,
        group_log: GroupLog,
        around: Surroundings,
        loop: asyncio.AbstractEventLoop,
        probe: GroupProbe,
        wake: Callable[[ConsumerGroup], None],
        reads_only: bool,
    ) -> None:
        self.groups: dict[str, ConsumerGroup] = {}
        self._log = group_log
        self._around = around
        self._probe = probe
        self._alarms: GroupAlarms[ConsumerGroup] = GroupAlarms(loop, wake, is_silent=reads_only)
        self._stopping = False
        self._counted: dict[str, ConsumerGroupState] = {}
        """What the metrics have of each group."""
        group_log.add_replay(self._replay)

    def write(self, change: GroupChange, outcome: Outcome[Answer], *, then: Callable[[], None] | None = None) -> None:
        """Append what changed, as one batch; then answer.

        `then` is called for a change that takes the group away, as soon as it is state: what takes the group's place
        has to be there before the next request, which may come before the records are durable.
        """
        group_id = change.group.group_id

        def done(error: BrokerError | None) -> None:
            if error is None:
                response = outcome.result()
            else:
                logger.warning("the records of group %s could not be written: %s", printable(group_id), error)
                self._begin_sessions(group_id)  # of who is in all the same: the records are there, the flush failed
                response = outcome.refused(error)
            self.set_alarm(group_id)
            outcome.answer.resolve(response)

        if not change.records:
            self._log.settled(group_id).then(done)
            return
        appended = self._log.append(group_id, change.records)
        self._count(group_id)
        if then is not None and group_id not in self.groups:
            then()
        appended.then(done)

    def load(self, records: Sequence[GroupRecord]) -> None:
        """At start: what the log says of some groups, the newest value of each key. Each member's session begins."""
        for record in records:
            self._replay(record)
        for group_id in dict.fromkeys(record.key.group for record in records):
            self._begin_sessions(group_id)
            self._count(group_id)
            self.set_alarm(group_id)

    def forget(self, group_id: str) -> None:
        """Its log has gone."""
        self.groups.pop(group_id, None)
        self._count(group_id)
        self._alarms.forget(group_id)

    def set_alarm(self, group_id: str) -> None:
        """The group's deadlines may have changed."""
        group = self.groups.get(group_id)
        if group is None:
            self._alarms.forget(group_id)
        elif not self._stopping:
            self._alarms.set(group_id, group)

    def stop(self) -> None:
        """No deadline matters any more."""
        self._stopping = True
        for group_id in self.groups:
            self._alarms.forget(group_id)

    def _begin_sessions(self, group_id: str) -> None:
        """Of members that have none yet."""
        group = self.groups.get(group_id)
        if group is None:
            return
        own_ms = self._around.settings_of(group_id).session_timeout_ms
        for member in group.members.values():
            timeout_ms = own_ms if member.classic is None else member.classic.session_timeout_ms
            group.begin_session(member.member_id, timeout_ms)

    def _replay(self, record: GroupRecord) -> None:
        key, value = record
        if not isinstance(key, ConsumerGroupKey):
            return
        group = self.groups.get(key.group)
        if group is None:
            if value is None:
                return  # a tombstone of what is gone
            group = self.groups[key.group] = ConsumerGroup(key.group, self._around.clock)
        assert not isinstance(value, OffsetCommitValue | GroupMetadataValue)
        group.replay(key, value)
        if isinstance(key, ConsumerGroupMetadataKey) and value is None:
            del self.groups[key.group]
            self._count(key.group)
            self._alarms.forget(key.group)

    def _count(self, group_id: str) -> None:
        group = self.groups.get(group_id)
        after = None if group is None else group.state
        before = self._counted.pop(group_id, None)
        if after is not None:
            self._counted[group_id] = after
        if before == after:
            return
        if before is not None:
            self._probe.left(before.value)
        if after is not None:
            self._probe.entered(after.value)
        if before is not None and after == ConsumerGroupState.STABLE:
            self._probe.completed_rebalances += 1

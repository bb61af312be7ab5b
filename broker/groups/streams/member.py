"""One member of a streams group, as the group's records describe it: a value that every change replaces.

    Stable            it has its target, or has not been told of a newer one
    UnrevokedTasks    it has to give up tasks before it may enter the next epoch
    UnreleasedTasks   it is in the target's epoch, and waits for tasks that other members still have

Source: Kafka's StreamsGroupMember, MemberState.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from barnabas.broker.groups.streams.tasks import HOLDS_NONE, HeldTasks
from barnabas.protocol.groups.streams_group_values import (
    HeldTaskIds,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
)
from barnabas.protocol.messages.groups.streams_topology import by_key, tasks_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.protocol.messages.groups.streams_topology import Endpoint, KeyValue


class MemberState(IntEnum):
    """An int8 in the records. UNKNOWN stands for a state of a newer Kafka."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127

    @classmethod
    def of(cls, value: int) -> MemberState:
        """Return the state of a record's value."""
        return cls(value) if value in cls._value2member_map_ else cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class StreamsGroupMember:
    """One member. Members with the same `process_id` are threads of one process, with one copy of the state."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: Sequence[KeyValue] = ()
    state: MemberState = MemberState.STABLE
    assigned: HeldTasks = HOLDS_NONE
    pending_revocation: HeldTasks = HOLDS_NONE

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether it has all of its target of that epoch."""
        return self.state == MemberState.STABLE and self.member_epoch == assignment_epoch

    def assignment_epoch(self, subtopology_id: str, partition: int) -> int | None:
        """Return the epoch in which it was assigned an active task; None if it does not have the task."""
        for held in (self.assigned, self.pending_revocation):
            epoch = held.active.get(subtopology_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def with_metadata(self, value: StreamsGroupMemberMetadataValue) -> StreamsGroupMember:
        """Return the member with this metadata."""
        return replace(self, **value.as_dict())

    def with_current(self, value: StreamsGroupCurrentMemberAssignmentValue) -> StreamsGroupMember:
        """Return the member with this current assignment."""
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            assigned=HeldTasks(
                value.epochs_of(value.active_tasks), tasks_of(value.standby_tasks), tasks_of(value.warmup_tasks)
            ),
            pending_revocation=HeldTasks(
                value.epochs_of(value.active_tasks_pending_revocation),
                tasks_of(value.standby_tasks_pending_revocation),
                tasks_of(value.warmup_tasks_pending_revocation),
            ),
        )

    def metadata_record(self) -> StreamsGroupMemberMetadataValue:
        """Return its metadata as a record's value."""
        return StreamsGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            topology_epoch=self.topology_epoch,
            process_id=self.process_id,
            user_endpoint=self.user_endpoint,
            client_tags=by_key(self.client_tags),
        )

    def current_record(self) -> StreamsGroupCurrentMemberAssignmentValue:
        """Return its current assignment as a record's value."""
        return StreamsGroupCurrentMemberAssignmentValue(
            self.member_epoch,
            self.previous_member_epoch,
            int(self.state),
            *_rows(self.assigned),
            *_rows(self.pending_revocation),
        )


def _rows(held: HeldTasks) -> tuple[tuple[HeldTaskIds, ...], ...]:
    """Return the tasks of the three kinds as a record has them."""
    active = tuple(
        [
            HeldTaskIds(each, tuple(numbers := sorted(epochs)), tuple([epochs[number] for number in numbers]))
            for each, epochs in sorted(held.active.items())
        ]
    )
    others = [
        tuple([HeldTaskIds(each, tuple(sorted(numbers))) for each, numbers in sorted(tasks.items())])
        for tasks in (held.standby, held.warmup)
    ]
    return (active, *others)

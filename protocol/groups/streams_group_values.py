"""Values of the records of streams groups (KIP-1071).

Source: Kafka's messages of these names, StreamsCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final, TypeAlias

from barnabas.protocol.groups.keys import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
)
from barnabas.protocol.messages.groups.streams_topology import Endpoint, KeyValue, TaskIds, Topology
from barnabas.protocol.wire.fields import tagged
from barnabas.protocol.wire.records import RecordValue
from barnabas.protocol.wire.types import Int8, Int32, Int64, Nullable, NullableString, String

NOT_VALIDATED: Final = -1
"""No topology of the group was found valid yet."""

TaskEpochs: TypeAlias = Mapping[str, Mapping[int, int]]
"""Active tasks by subtopology id and partition: the member epoch in which each was assigned."""


class HeldTaskIds(TaskIds, frozen=True, kw_only=False):
    """Tasks of one subtopology that a member has. `assignment_epochs`: of active ones; none from Kafka before 4.2."""

    assignment_epochs: Annotated[tuple[Int32, ...] | None, Nullable()] = tagged(0, default=())


class StreamsGroupMetadataValue(RecordValue, flexible=0, frozen=True, kw_only=False):
    """`epoch` grows with every change that needs a new assignment. `metadata_hash`: of the group's topics, signed.

    validated_topology_epoch   of the topology whose topics all existed with the right partition counts
    last_assignment_configs    the configs that the assignor last used; none in records of Kafka before 4.2
    """

    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Int32 = tagged(0, default=NOT_VALIDATED)
    last_assignment_configs: Annotated[tuple[KeyValue, ...] | None, Nullable()] = tagged(1, default=())


class StreamsGroupMemberMetadataValue(RecordValue, flexible=0, frozen=True):
    """A member's metadata, with tags in the order of their keys."""

    instance_id: NullableString
    rack_id: NullableString
    client_id: String
    client_host: String
    rebalance_timeout_ms: Int32
    topology_epoch: Int32
    process_id: String
    user_endpoint: Annotated[Endpoint | None, Nullable()]
    client_tags: tuple[KeyValue, ...]


class StreamsGroupTargetAssignmentMetadataValue(RecordValue, flexible=0, frozen=True, kw_only=False):
    """The group epoch of the target assignment, and when it was computed, in ms of wall time."""

    assignment_epoch: Int32
    assignment_timestamp: Int64 = tagged(0, default=0)


class StreamsGroupTargetAssignmentMemberValue(RecordValue, flexible=0, frozen=True, kw_only=False):
    """A member's target assignment."""

    active_tasks: tuple[TaskIds, ...]
    standby_tasks: tuple[TaskIds, ...]
    warmup_tasks: tuple[TaskIds, ...]


class StreamsGroupCurrentMemberAssignmentValue(RecordValue, flexible=0, frozen=True, kw_only=False):
    """A member's current assignment. `state`: 1 stable, 2 has tasks to give up, 3 waits for others' tasks."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    active_tasks: tuple[HeldTaskIds, ...]
    standby_tasks: tuple[HeldTaskIds, ...]
    warmup_tasks: tuple[HeldTaskIds, ...]
    active_tasks_pending_revocation: tuple[HeldTaskIds, ...]
    standby_tasks_pending_revocation: tuple[HeldTaskIds, ...]
    warmup_tasks_pending_revocation: tuple[HeldTaskIds, ...]

    def epochs_of(self, rows: Iterable[HeldTaskIds]) -> TaskEpochs:
        """Return the epochs of its active tasks; those without (Kafka before 4.2) get the member epoch."""
        tasks = {}
        for each in rows:
            epochs = each.assignment_epochs
            if epochs is None or len(epochs) != len(each.partitions):
                epochs = (self.member_epoch,) * len(each.partitions)
            tasks[each.subtopology_id] = dict(zip(each.partitions, epochs, strict=True))
        return tasks


StreamsGroupTopologyValue = Topology

StreamsGroupValue: TypeAlias = (
    StreamsGroupMetadataValue
    | StreamsGroupMemberMetadataValue
    | StreamsGroupTargetAssignmentMetadataValue
    | StreamsGroupTargetAssignmentMemberValue
    | StreamsGroupCurrentMemberAssignmentValue
    | Topology
)

VALUES: Final[dict[type[StreamsGroupKey], type[StreamsGroupValue]]] = {
    StreamsGroupMetadataKey: StreamsGroupMetadataValue,
    StreamsGroupTopologyKey: StreamsGroupTopologyValue,
    StreamsGroupMemberMetadataKey: StreamsGroupMemberMetadataValue,
    StreamsGroupTargetAssignmentMemberKey: StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey: StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupCurrentMemberAssignmentKey: StreamsGroupCurrentMemberAssignmentValue,
}
"""The value of each key, in the order in which a start replays the records of a group.

A member's current assignment follows the member, whose process then has its tasks.
"""

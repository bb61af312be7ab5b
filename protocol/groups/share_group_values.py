"""Values of the records of share groups (KIP-932). Unknown tags are skipped.

Source: Kafka's messages of these names, GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from typing import Final, Self, TypeAlias

from barnabas.protocol.groups.consumer_group_values import Partitions, TopicPartitions, partitions_of, rows_of
from barnabas.protocol.groups.keys import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from barnabas.protocol.wire.fields import tagged
from barnabas.protocol.wire.records import RecordValue
from barnabas.protocol.wire.structures import Struct
from barnabas.protocol.wire.types import Int8, Int32, Int64, NullableString, String, Uuid


class TopicPartitionsInfo(Struct, frozen=True, kw_only=False):
    """Partitions of a topic, and the topic's name when they were recorded."""

    topic_id: Uuid
    topic_name: String
    partitions: tuple[Int32, ...]


class TopicInfo(Struct, frozen=True, kw_only=False):
    """A topic, and its name when it was recorded."""

    topic_id: Uuid
    topic_name: String


class ShareGroupMetadataValue(RecordValue, flexible=0, frozen=True, kw_only=False):
    """`epoch` grows with every change that needs a new assignment. `metadata_hash`: of the group's topics, signed."""

    epoch: Int32
    metadata_hash: Int64 = 0


class ShareGroupMemberMetadataValue(RecordValue, flexible=0, frozen=True):
    """A member's metadata, with sorted topics."""

    rack_id: NullableString
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[String, ...]


class ShareGroupTargetAssignmentMetadataValue(RecordValue, flexible=0, frozen=True, kw_only=False):
    """The group epoch of the target assignment, and when it was computed, in ms of wall time."""

    assignment_epoch: Int32
    assignment_timestamp: Int64 = tagged(0, default=0)


class ShareGroupTargetAssignmentMemberValue(RecordValue, flexible=0, frozen=True, kw_only=False):
    """A member's target assignment."""

    topic_partitions: tuple[TopicPartitions, ...]

    @classmethod
    def of(cls, partitions: Partitions) -> Self:
        """Return the value of partitions by topic."""
        return cls(rows_of(partitions))

    @property
    def partitions(self) -> Partitions:
        """The partitions by topic."""
        return partitions_of(self.topic_partitions)


class ShareGroupCurrentMemberAssignmentValue(RecordValue, flexible=0, frozen=True, kw_only=False):
    """A member's current assignment. `state` is always 0, stable: partitions are shared, so none is revoked first."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[TopicPartitions, ...]


class ShareGroupStatePartitionMetadataValue(RecordValue, flexible=0, frozen=True, kw_only=False):
    """The state of which partitions is being initialized or is initialized, and of which topics it is being deleted."""

    initializing_topics: tuple[TopicPartitionsInfo, ...] = ()
    initialized_topics: tuple[TopicPartitionsInfo, ...] = ()
    deleting_topics: tuple[TopicInfo, ...] = ()


ShareGroupValue: TypeAlias = (
    ShareGroupMetadataValue
    | ShareGroupMemberMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMemberValue
    | ShareGroupCurrentMemberAssignmentValue
    | ShareGroupStatePartitionMetadataValue
)

VALUES: Final[dict[type[ShareGroupKey], type[ShareGroupValue]]] = {
    ShareGroupMetadataKey: ShareGroupMetadataValue,
    ShareGroupMemberMetadataKey: ShareGroupMemberMetadataValue,
    ShareGroupTargetAssignmentMemberKey: ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey: ShareGroupTargetAssignmentMetadataValue,
    ShareGroupCurrentMemberAssignmentKey: ShareGroupCurrentMemberAssignmentValue,
    ShareGroupStatePartitionMetadataKey: ShareGroupStatePartitionMetadataValue,
}
"""The value of each key, in the order in which a start replays the records of a group."""

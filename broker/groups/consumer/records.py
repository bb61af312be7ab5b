"""The records of the parts of a consumer group, in the order that Kafka's replay needs.

A member is removed by three tombstones: its current assignment, its target assignment, then its metadata. Kafka accepts
the tombstone of a group once no member and no target is left. Source: Kafka's GroupCoordinatorRecordHelpers,
ConsumerGroup.createGroupTombstoneRecords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.log.records import GroupRecord
from barnabas.protocol.groups.consumer_group_values import (
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    Partitions,
)
from barnabas.protocol.groups.keys import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)

if TYPE_CHECKING:
    from barnabas.broker.groups.consumer.member import ConsumerGroupMember


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    """Return the record of the group's epoch."""
    return GroupRecord(ConsumerGroupMetadataKey(group_id), ConsumerGroupMetadataValue(epoch, metadata_hash))


def member_record(group_id: str, member: ConsumerGroupMember) -> GroupRecord:
    """Return the record of the member's metadata."""
    return GroupRecord(ConsumerGroupMemberMetadataKey(group_id, member.member_id), member.metadata_record())


def current_record(group_id: str, member: ConsumerGroupMember) -> GroupRecord:
    """Return the record of the member's current assignment."""
    return GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id), member.current_record())


def target_record(group_id: str, member_id: str, target: Partitions) -> GroupRecord:
    """Return the record of the member's target assignment."""
    return GroupRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), ConsumerGroupTargetAssignmentMemberValue.of(target)
    )


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """Return the record of the epoch that the target assignments belong to."""
    return GroupRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group_id),
        ConsumerGroupTargetAssignmentMetadataValue(epoch, timestamp_ms),
    )


def regex_record(group_id: str, regex: str, value: ConsumerGroupRegularExpressionValue | None) -> GroupRecord:
    """Return the record of the topics that an expression matches, or its tombstone."""
    return GroupRecord(ConsumerGroupRegularExpressionKey(group_id, regex), value)


def partition_metadata_tombstone(group_id: str) -> GroupRecord:
    """Return the tombstone of the topics' partition counts, which Kafka before 4.1 stored."""
    return GroupRecord(ConsumerGroupPartitionMetadataKey(group_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    """Return the records that remove a member."""
    return [
        GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        GroupRecord(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None),
        GroupRecord(ConsumerGroupMemberMetadataKey(group_id, member_id), None),
    ]


def replacement_records(group_id: str, old_id: str, new: ConsumerGroupMember, target: Partitions) -> list[GroupRecord]:
    """Return the records that give a static member's place to its new id, with its target assignment."""
    return [
        *member_tombstones(group_id, old_id),
        member_record(group_id, new),
        target_record(group_id, new.member_id, target),
        current_record(group_id, new),
    ]

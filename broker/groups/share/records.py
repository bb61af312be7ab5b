"""The records of the parts of a share group, in the order that Kafka's replay needs.

A member is removed by three tombstones: its current assignment, its target assignment, then its metadata. Source:
Kafka's GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.log.records import GroupRecord
from barnabas.protocol.groups.keys import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from barnabas.protocol.groups.share_group_values import (
    ShareGroupMetadataValue,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from barnabas.broker.groups.share.member import ShareGroupMember
    from barnabas.broker.groups.share.states import StatePartitions
    from barnabas.protocol.groups.consumer_group_values import Partitions


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    """Return the record of the group's epoch."""
    return GroupRecord(ShareGroupMetadataKey(group_id), ShareGroupMetadataValue(epoch, metadata_hash))


def member_record(group_id: str, member: ShareGroupMember) -> GroupRecord:
    """Return the record of the member's metadata."""
    return GroupRecord(ShareGroupMemberMetadataKey(group_id, member.member_id), member.metadata_record())


def current_record(group_id: str, member: ShareGroupMember) -> GroupRecord:
    """Return the record of the member's current assignment."""
    return GroupRecord(ShareGroupCurrentMemberAssignmentKey(group_id, member.member_id), member.current_record())


def target_record(group_id: str, member_id: str, target: Partitions) -> GroupRecord:
    """Return the record of the member's target assignment."""
    return GroupRecord(
        ShareGroupTargetAssignmentMemberKey(group_id, member_id), ShareGroupTargetAssignmentMemberValue.of(target)
    )


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """Return the record of the epoch that the target assignments belong to."""
    return GroupRecord(
        ShareGroupTargetAssignmentMetadataKey(group_id), ShareGroupTargetAssignmentMetadataValue(epoch, timestamp_ms)
    )


def states_record(group_id: str, states: StatePartitions) -> GroupRecord:
    """Return the record of the partitions with state."""
    return GroupRecord(ShareGroupStatePartitionMetadataKey(group_id), states.record())


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    """Return the records that remove a member."""
    return [
        GroupRecord(ShareGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        GroupRecord(ShareGroupTargetAssignmentMemberKey(group_id, member_id), None),
        GroupRecord(ShareGroupMemberMetadataKey(group_id, member_id), None),
    ]

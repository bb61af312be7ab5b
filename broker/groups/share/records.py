"""The records of the parts of a share group, in the order that Kafka's replay needs.

A member is removed by three tombstones: its current assignment, its target assignment, then its metadata. Source:
Kafka's GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.log.records import GroupRecord
from barnabas.protocol.groups.share_group_keys import (
    ShareCurrentAssignmentKey,
    ShareGroupMetadataKey,
    ShareMemberMetadataKey,
    ShareStatePartitionsKey,
    ShareTargetMemberKey,
    ShareTargetMetadataKey,
)
from barnabas.protocol.groups.share_group_values import (
    ShareGroupMetadataValue,
    ShareStatePartitionsValue,
    ShareTargetMemberValue,
    ShareTargetMetadataValue,
)

if TYPE_CHECKING:
    from barnabas.broker.groups.share.member import ShareGroupMember
    from barnabas.protocol.groups.consumer_group_values import Partitions


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    """Return the record of the group's epoch."""
    return GroupRecord(ShareGroupMetadataKey(group_id), ShareGroupMetadataValue(epoch, metadata_hash))


def member_record(group_id: str, member: ShareGroupMember) -> GroupRecord:
    """Return the record of the member's metadata."""
    return GroupRecord(ShareMemberMetadataKey(group_id, member.member_id), member.metadata_record())


def current_record(group_id: str, member: ShareGroupMember) -> GroupRecord:
    """Return the record of the member's current assignment."""
    return GroupRecord(ShareCurrentAssignmentKey(group_id, member.member_id), member.current_record())


def target_record(group_id: str, member_id: str, target: Partitions) -> GroupRecord:
    """Return the record of the member's target assignment."""
    return GroupRecord(ShareTargetMemberKey(group_id, member_id), ShareTargetMemberValue(target))


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """Return the record of the epoch that the target assignments belong to."""
    return GroupRecord(ShareTargetMetadataKey(group_id), ShareTargetMetadataValue(epoch, timestamp_ms))


def states_record(group_id: str, states: ShareStatePartitionsValue) -> GroupRecord:
    """Return the record of the partitions with state."""
    return GroupRecord(ShareStatePartitionsKey(group_id), states)


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    """Return the records that remove a member."""
    return [
        GroupRecord(ShareCurrentAssignmentKey(group_id, member_id), None),
        GroupRecord(ShareTargetMemberKey(group_id, member_id), None),
        GroupRecord(ShareMemberMetadataKey(group_id, member_id), None),
    ]

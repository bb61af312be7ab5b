"""The records that make and unmake parts of a consumer group, in the order that Kafka's replay asks for.

A member goes by three tombstones: what it has, what it shall have, then itself. A group goes when none of its members
and no target is left. Source: Kafka's GroupCoordinatorRecordHelpers, ConsumerGroup.createGroupTombstoneRecords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.group_records import GroupRecord
from barnabas.protocol.groups.consumer_group_keys import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    CurrentMemberAssignmentKey,
    RegularExpressionKey,
    TargetAssignmentMemberKey,
    TargetAssignmentMetadataKey,
)
from barnabas.protocol.groups.consumer_group_values import (
    ConsumerGroupMetadataValue,
    Partitions,
    RegularExpressionValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from barnabas.broker.groups.consumer.group import ConsumerGroup
    from barnabas.broker.groups.consumer.member import ConsumerGroupMember


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    """The group is in that epoch."""
    return GroupRecord(ConsumerGroupMetadataKey(group_id), ConsumerGroupMetadataValue(epoch, metadata_hash))


def member_record(group_id: str, member: ConsumerGroupMember) -> GroupRecord:
    """What the member says of itself."""
    return GroupRecord(ConsumerGroupMemberMetadataKey(group_id, member.member_id), member.metadata_record())


def current_record(group_id: str, member: ConsumerGroupMember) -> GroupRecord:
    """What the member has."""
    return GroupRecord(CurrentMemberAssignmentKey(group_id, member.member_id), member.current_record())


def target_record(group_id: str, member_id: str, target: Partitions) -> GroupRecord:
    """What the member shall have."""
    return GroupRecord(TargetAssignmentMemberKey(group_id, member_id), TargetAssignmentMemberValue(target))


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """The targets are those of that epoch."""
    return GroupRecord(TargetAssignmentMetadataKey(group_id), TargetAssignmentMetadataValue(epoch, timestamp_ms))


def regex_record(group_id: str, regex: str, value: RegularExpressionValue | None) -> GroupRecord:
    """The topics of an expression; None: nobody subscribes with it any more."""
    return GroupRecord(RegularExpressionKey(group_id, regex), value)


def partition_metadata_tombstone(group_id: str) -> GroupRecord:
    """What Kafka before 4.1 kept of the topics is not needed."""
    return GroupRecord(ConsumerGroupPartitionMetadataKey(group_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    """The member is gone."""
    return [
        GroupRecord(CurrentMemberAssignmentKey(group_id, member_id), None),
        GroupRecord(TargetAssignmentMemberKey(group_id, member_id), None),
        GroupRecord(ConsumerGroupMemberMetadataKey(group_id, member_id), None),
    ]


def replacement_records(group: ConsumerGroup, old: ConsumerGroupMember, new: ConsumerGroupMember) -> list[GroupRecord]:
    """A static member came back under another id, and has what the old one had."""
    group_id = group.group_id
    return [
        *member_tombstones(group_id, old.member_id),
        member_record(group_id, new),
        target_record(group_id, new.member_id, group.target.get(old.member_id, {})),
        current_record(group_id, new),
    ]


def group_records(group: ConsumerGroup) -> list[GroupRecord]:
    """All of a group."""
    group_id, members = group.group_id, group.members.values()
    return [
        *(member_record(group_id, member) for member in members),
        epoch_record(group_id, group.epoch, group.metadata_hash),
        *(target_record(group_id, each.member_id, group.target.get(each.member_id, {})) for each in members),
        target_epoch_record(group_id, group.assignment_epoch, group.assignment_ms),
        *(current_record(group_id, member) for member in members),
        *(regex_record(group_id, regex, value) for regex, value in group.regexes.items()),
    ]


def group_tombstones(group: ConsumerGroup) -> list[GroupRecord]:
    """The group is gone, with whoever is in it."""
    group_id = group.group_id
    ids = list(dict.fromkeys((*group.members, *group.target)))
    return [
        *(GroupRecord(CurrentMemberAssignmentKey(group_id, each), None) for each in ids),
        *(GroupRecord(TargetAssignmentMemberKey(group_id, each), None) for each in ids),
        GroupRecord(TargetAssignmentMetadataKey(group_id), None),
        *(GroupRecord(ConsumerGroupMemberMetadataKey(group_id, each), None) for each in ids),
        *(regex_record(group_id, regex, None) for regex in group.regexes),
        partition_metadata_tombstone(group_id),
        GroupRecord(ConsumerGroupMetadataKey(group_id), None),
    ]

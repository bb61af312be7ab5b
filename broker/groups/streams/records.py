"""The records of the parts of a streams group, in the order that Kafka's replay needs.

A member is removed by three tombstones: its current assignment, its target assignment, then its metadata. Kafka accepts
the tombstone of a group once no member and no target is left. Source: Kafka's StreamsCoordinatorRecordHelpers,
StreamsGroup.createGroupTombstoneRecords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.log.records import GroupRecord
from barnabas.protocol.groups.keys import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
)
from barnabas.protocol.groups.streams_group_values import (
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataValue,
)
from barnabas.protocol.messages.groups.streams_topology import task_ids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from barnabas.broker.groups.streams.member import StreamsGroupMember
    from barnabas.broker.groups.streams.tasks import TaskSet
    from barnabas.protocol.messages.groups.streams_topology import Topology


def epoch_record(group_id: str, value: StreamsGroupMetadataValue) -> GroupRecord:
    """Return the record of the group's epoch."""
    return GroupRecord(StreamsGroupMetadataKey(group_id), value)


def topology_record(group_id: str, topology: Topology) -> GroupRecord:
    """Return the record of the group's topology."""
    return GroupRecord(StreamsGroupTopologyKey(group_id), topology)


def member_record(group_id: str, member: StreamsGroupMember) -> GroupRecord:
    """Return the record of the member's metadata."""
    return GroupRecord(StreamsGroupMemberMetadataKey(group_id, member.member_id), member.metadata_record())


def current_record(group_id: str, member: StreamsGroupMember) -> GroupRecord:
    """Return the record of the member's current assignment."""
    return GroupRecord(StreamsGroupCurrentMemberAssignmentKey(group_id, member.member_id), member.current_record())


def target_record(group_id: str, member_id: str, target: TaskSet) -> GroupRecord:
    """Return the record of the member's target assignment."""
    return GroupRecord(
        StreamsGroupTargetAssignmentMemberKey(group_id, member_id),
        StreamsGroupTargetAssignmentMemberValue(*map(task_ids, target)),
    )


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """Return the record of the epoch that the target assignments belong to."""
    return GroupRecord(
        StreamsGroupTargetAssignmentMetadataKey(group_id),
        StreamsGroupTargetAssignmentMetadataValue(epoch, timestamp_ms),
    )


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    """Return the records that remove a member."""
    return [
        GroupRecord(StreamsGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        GroupRecord(StreamsGroupTargetAssignmentMemberKey(group_id, member_id), None),
        GroupRecord(StreamsGroupMemberMetadataKey(group_id, member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[GroupRecord]:
    """Return the records that remove a group with its members."""
    ids = list(member_ids)
    return [
        *(GroupRecord(StreamsGroupCurrentMemberAssignmentKey(group_id, each), None) for each in ids),
        *(GroupRecord(StreamsGroupTargetAssignmentMemberKey(group_id, each), None) for each in ids),
        GroupRecord(StreamsGroupTargetAssignmentMetadataKey(group_id), None),
        *(GroupRecord(StreamsGroupMemberMetadataKey(group_id, each), None) for each in ids),
        GroupRecord(StreamsGroupMetadataKey(group_id), None),
        GroupRecord(StreamsGroupTopologyKey(group_id), None),
    ]

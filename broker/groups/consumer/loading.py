"""The order in which a start replays the records of consumer groups, of which it has the newest value of each key.

    group, members, target assignments, their epoch, current assignments, expressions

A member's current assignment follows the member and sets its epoch. A log that was written in order cannot give one
partition to several members; if one does, the member that got it last owns it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.log.records import GroupRecord
from barnabas.protocol.groups.consumer_group_keys import (
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    CurrentMemberAssignmentKey,
    RegularExpressionKey,
    TargetAssignmentMemberKey,
    TargetAssignmentMetadataKey,
)
from barnabas.protocol.groups.consumer_group_values import (
    CurrentMemberAssignmentValue,
    PartitionMetadataValue,
    decode_consumer_group_metadata,
    decode_current_member_assignment,
    decode_member_metadata,
    decode_regular_expression,
    decode_target_assignment_member,
    decode_target_assignment_metadata,
)

if TYPE_CHECKING:
    from barnabas.protocol.groups.consumer_group_values import ConsumerGroupValue

_ORDER: Final = (
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupMemberMetadataKey,
    TargetAssignmentMemberKey,
    TargetAssignmentMetadataKey,
    CurrentMemberAssignmentKey,
    RegularExpressionKey,
)


def consumer_group_record(key: ConsumerGroupKey, data: bytes) -> GroupRecord:
    """Decode the value of a key. Raises DecodeError."""
    return GroupRecord(key, _decode(key, data))


def replay_rank(record: GroupRecord) -> tuple[int, int]:
    """Return the sort key of a start's records."""
    epoch = record.value.member_epoch if isinstance(record.value, CurrentMemberAssignmentValue) else 0
    return _ORDER.index(type(record.key)), epoch


def _decode(key: ConsumerGroupKey, data: bytes) -> ConsumerGroupValue:
    match key:
        case ConsumerGroupMetadataKey():
            return decode_consumer_group_metadata(data)
        case ConsumerGroupPartitionMetadataKey():
            return PartitionMetadataValue()
        case ConsumerGroupMemberMetadataKey():
            return decode_member_metadata(data)
        case TargetAssignmentMetadataKey():
            return decode_target_assignment_metadata(data)
        case TargetAssignmentMemberKey():
            return decode_target_assignment_member(data)
        case CurrentMemberAssignmentKey():
            return decode_current_member_assignment(data)
        case RegularExpressionKey():
            return decode_regular_expression(data)

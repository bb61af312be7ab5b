"""The order in which a start replays the records of share groups, of which it has the newest value of each key.

group, members, target assignments, their epoch, current assignments, partitions with state
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.log.records import GroupRecord
from barnabas.protocol.groups.share_group_keys import (
    ShareCurrentAssignmentKey,
    ShareGroupKey,
    ShareGroupMetadataKey,
    ShareMemberMetadataKey,
    ShareStatePartitionsKey,
    ShareTargetMemberKey,
    ShareTargetMetadataKey,
)
from barnabas.protocol.groups.share_group_values import (
    decode_share_current_assignment,
    decode_share_group_metadata,
    decode_share_member_metadata,
    decode_share_state_partitions,
    decode_share_target_member,
    decode_share_target_metadata,
)

if TYPE_CHECKING:
    from barnabas.protocol.groups.share_group_values import ShareGroupValue

_ORDER: Final = (
    ShareGroupMetadataKey,
    ShareMemberMetadataKey,
    ShareTargetMemberKey,
    ShareTargetMetadataKey,
    ShareCurrentAssignmentKey,
    ShareStatePartitionsKey,
)


def share_group_record(key: ShareGroupKey, data: bytes) -> GroupRecord:
    """Decode the value of a key. Raises DecodeError."""
    return GroupRecord(key, _decode(key, data))


def share_replay_rank(record: GroupRecord) -> int:
    """Return the sort key of a start's records."""
    return _ORDER.index(type(record.key))


def _decode(key: ShareGroupKey, data: bytes) -> ShareGroupValue:
    match key:
        case ShareGroupMetadataKey():
            return decode_share_group_metadata(data)
        case ShareMemberMetadataKey():
            return decode_share_member_metadata(data)
        case ShareTargetMetadataKey():
            return decode_share_target_metadata(data)
        case ShareTargetMemberKey():
            return decode_share_target_member(data)
        case ShareCurrentAssignmentKey():
            return decode_share_current_assignment(data)
        case ShareStatePartitionsKey():
            return decode_share_state_partitions(data)

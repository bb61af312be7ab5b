"""The order in which a start replays the records of streams groups, of which it has the newest value of each key.

    group, topology, members, target assignments, their epoch, current assignments

A member's current assignment follows the member, whose process then has its tasks.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.groups.log.records import GroupRecord
from barnabas.protocol.groups.streams_group_keys import (
    StreamsCurrentMemberAssignmentKey,
    StreamsGroupKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTopologyKey,
    StreamsTargetAssignmentMemberKey,
    StreamsTargetAssignmentMetadataKey,
)
from barnabas.protocol.groups.streams_group_values import (
    StreamsCurrentMemberAssignmentValue,
    decode_streams_group_value,
)

_ORDER: Final = (
    StreamsGroupMetadataKey,
    StreamsGroupTopologyKey,
    StreamsGroupMemberMetadataKey,
    StreamsTargetAssignmentMemberKey,
    StreamsTargetAssignmentMetadataKey,
    StreamsCurrentMemberAssignmentKey,
)


def streams_group_record(key: StreamsGroupKey, data: bytes) -> GroupRecord:
    """Decode the value of a key. Raises DecodeError."""
    return GroupRecord(key, decode_streams_group_value(key, data))


def replay_rank(record: GroupRecord) -> tuple[int, int]:
    """Return the sort key of a start's records."""
    epoch = record.value.member_epoch if isinstance(record.value, StreamsCurrentMemberAssignmentValue) else 0
    return _ORDER.index(type(record.key)), epoch

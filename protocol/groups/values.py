"""Values of the records of committed offsets and of classic groups.

Kafka 4.3 writes version 4 of an offset (1 with an expire timestamp), which Kafka 3.7 and later read, and version 3 of a
classic group. Unknown tagged fields are skipped. Source: Kafka's OffsetCommitValue.json, GroupMetadataValue.json,
GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from barnabas.protocol.groups.keys import (
    ConsumerGroupKey,
    GroupMetadataKey,
    KnownKey,
    OffsetCommitKey,
    ShareGroupKey,
    StreamsGroupKey,
)
from barnabas.protocol.uuids import ZERO_UUID
from barnabas.protocol.wire.fields import since, tagged
from barnabas.protocol.wire.records import RecordValue
from barnabas.protocol.wire.structures import Struct
from barnabas.protocol.wire.types import Bytes, Int32, Int64, NullableString, String, Uuid

if TYPE_CHECKING:
    from barnabas.protocol.groups.consumer_group_values import ConsumerGroupValue
    from barnabas.protocol.groups.share_group_values import ShareGroupValue
    from barnabas.protocol.groups.streams_group_values import StreamsGroupValue

GroupValue: TypeAlias = (
    "OffsetCommitValue | GroupMetadataValue | ConsumerGroupValue | ShareGroupValue | StreamsGroupValue"
)

NO_LEADER_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1


class OffsetCommitValue(RecordValue, newest=4, flexible=4, frozen=True, kw_only=False):
    """The next offset that the group will read in a partition. Timestamps in ms.

    leader_epoch       of the last record read, -1 if the client did not send it
    expire_timestamp   -1: after offsets.retention.minutes
    topic_id           zero if unknown
    """

    offset: Int64
    leader_epoch: Int32 = since(3, default=NO_LEADER_EPOCH)
    metadata: String = ""
    commit_timestamp: Int64 = NO_TIMESTAMP
    expire_timestamp: Int64 = since(1, until=1, default=NO_TIMESTAMP)
    topic_id: Uuid = tagged(0, default=ZERO_UUID, since=4)

    @property
    def usual_version(self) -> int:
        """The version that Kafka 4.3 writes."""
        return 4 if self.expire_timestamp == NO_TIMESTAMP else 1


class MemberMetadata(Struct, frozen=True):
    """One member. Timeouts in ms; of version 0, which has one for both, the rebalance timeout is -1."""

    member_id: String
    group_instance_id: NullableString = since(3, default=None)
    client_id: String
    client_host: String
    rebalance_timeout: Int32 = since(1, default=-1)
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes


class GroupMetadataValue(RecordValue, newest=4, flexible=4, frozen=True, kw_only=False):
    """A classic group with its members after its last completed rebalance.

    `protocol` and `leader` are None without members. `current_state_timestamp` in ms, -1 if unknown. Subscriptions and
    assignments are the clients' bytes.
    """

    protocol_type: String
    generation: Int32
    protocol: NullableString
    leader: NullableString
    current_state_timestamp: Int64 = since(2, default=NO_TIMESTAMP)
    members: tuple[MemberMetadata, ...] = ()

    @property
    def usual_version(self) -> int:
        """The version that Kafka 3.7 to 4.3 write."""
        return 3


_VALUES: Final[dict[type[KnownKey], type[GroupValue]]] = {
    OffsetCommitKey: OffsetCommitValue,
    GroupMetadataKey: GroupMetadataValue,
}


def values_of(key: KnownKey) -> Mapping[Any, type[GroupValue]]:
    """Return the keys and values of the kind of groups of a key, in the order in which a start replays them."""
    if isinstance(key, ConsumerGroupKey):
        from barnabas.protocol.groups import consumer_group_values  # only if there are any

        return consumer_group_values.VALUES
    if isinstance(key, ShareGroupKey):
        from barnabas.protocol.groups import share_group_values

        return share_group_values.VALUES
    if isinstance(key, StreamsGroupKey):
        from barnabas.protocol.groups import streams_group_values

        return streams_group_values.VALUES
    return _VALUES


def decode_value(key: KnownKey, data: bytes) -> GroupValue:
    """Return the value of a key. Raises DecodeError, also for a version that is not known."""
    return values_of(key)[type(key)].from_bytes(data)

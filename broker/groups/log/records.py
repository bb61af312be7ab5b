"""Decoded records of `__consumer_offsets`, and their encoding into batches.

A value of None is a tombstone: it deletes what the key names. A change is one batch, so that after a crash all of it
exists or nothing. Tombstones of many groups or offsets may be several batches, because they do not depend on each
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from barnabas.protocol.compression import Codec
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.consumer_group_keys import ConsumerGroupKey
from barnabas.protocol.groups.keys import GroupMetadataKey, OffsetCommitKey, encode_key
from barnabas.protocol.groups.metadata import GroupMetadataValue, encode_group_metadata
from barnabas.protocol.groups.offsets import OffsetCommitValue, encode_offset_commit
from barnabas.protocol.groups.share_group_keys import ShareGroupKey
from barnabas.protocol.records.builder import RecordBatchBuilder

if TYPE_CHECKING:
    from barnabas.protocol.groups.consumer_group_values import ConsumerGroupValue
    from barnabas.protocol.groups.share_group_values import ShareGroupValue
    from barnabas.protocol.groups.streams_group_keys import StreamsGroupKey
    from barnabas.protocol.groups.streams_group_values import StreamsGroupValue

GroupValue: TypeAlias = (
    "OffsetCommitValue | GroupMetadataValue | ConsumerGroupValue | ShareGroupValue | StreamsGroupValue | None"
)


class TransactionWriter(NamedTuple):
    """The producer of a transactional batch. The group coordinator of Kafka writes each with sequence 0, too."""

    producer_id: int
    producer_epoch: int


class GroupRecord(NamedTuple):
    """One record: an OffsetCommitKey with an OffsetCommitValue, and so on."""

    key: OffsetCommitKey | GroupMetadataKey | ConsumerGroupKey | ShareGroupKey | StreamsGroupKey
    value: GroupValue


def encode_batches(
    records: Sequence[GroupRecord],
    *,
    codec: Codec,
    timestamp_ms: int,
    max_bytes: int,
    atomic: bool,
    writer: TransactionWriter | None = None,
) -> bytearray:
    """Encode into batches of at most `max_bytes`, into a single one if `atomic`; with `writer`, transactional ones.

    Raises BrokerError MESSAGE_TOO_LARGE if a single batch does not suffice, INVALID_REQUEST for a string above 32,767
    bytes.
    """

    def new_batch() -> RecordBatchBuilder:
        if writer is None:
            return RecordBatchBuilder(codec, max_bytes=max_bytes)
        return RecordBatchBuilder(
            codec,
            max_bytes=max_bytes,
            producer_id=writer.producer_id,
            producer_epoch=writer.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )

    batches = bytearray()
    builder = new_batch()
    for record in records:
        try:
            key, value = encode_key(record.key), _encode_value(record)
        except ValueError as error:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"{error}") from error
        if builder.append(timestamp_ms, key, value):
            continue
        if atomic:
            raise BrokerError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{len(records)} records of group {record.key.group!r} do not fit one batch of {max_bytes} bytes",
            )
        batches += builder.build()
        builder = new_batch()
        builder.append(timestamp_ms, key, value)
    batches += builder.build()
    return batches


def _encode_value(record: GroupRecord) -> bytes | None:
    key, value = record
    if value is None:
        return None
    if isinstance(value, OffsetCommitValue):
        return encode_offset_commit(value)
    if isinstance(value, GroupMetadataValue):
        return encode_group_metadata(value)
    if isinstance(key, ShareGroupKey):
        from barnabas.protocol.groups.share_group_values import encode_share_group_value  # only for share groups

        return encode_share_group_value(cast("ShareGroupValue", value))
    if isinstance(key, ConsumerGroupKey):
        from barnabas.protocol.groups.consumer_group_values import encode_consumer_group_value  # only if there are any

        return encode_consumer_group_value(cast("ConsumerGroupValue", value))
    from barnabas.protocol.groups.streams_group_values import encode_streams_group_value  # only if there are any

    return encode_streams_group_value(cast("StreamsGroupValue", value))

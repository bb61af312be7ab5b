"""Decoded records of `__consumer_offsets`, and their encoding into batches.

A value of None is a tombstone: it deletes what the key names. A change is one batch, so that after a crash all of it
exists or nothing. Tombstones of many groups or offsets may be several batches, because they do not depend on each
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.protocol.compression import Codec
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.keys import KnownKey
from barnabas.protocol.groups.values import GroupValue, values_of
from barnabas.protocol.records.builder import RecordBatchBuilder


class TransactionWriter(NamedTuple):
    """The producer of a transactional batch. The group coordinator of Kafka writes each with sequence 0, too."""

    producer_id: int
    producer_epoch: int


class GroupRecord(NamedTuple):
    """One record: an OffsetCommitKey with an OffsetCommitValue, and so on."""

    key: KnownKey
    value: GroupValue | None


def replay_rank(record: GroupRecord) -> tuple[int, int]:
    """Return the sort key by which a start replays the records of one kind of groups.

    A log that was written in order cannot give one partition to several members; if one does, the member that got it
    last owns it.
    """
    return list(values_of(record.key)).index(type(record.key)), getattr(record.value, "member_epoch", 0)


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
            key = record.key.to_bytes()
            value = None if record.value is None else record.value.to_bytes()
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

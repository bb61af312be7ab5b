"""Encoding and decoding of metadata and control records in record batches, by the rules of Kafka's readers.

No compression; no key and no headers on a metadata record; one timestamp for a whole batch; the leader epoch in every
batch. A change that does not fit one batch is written between BeginTransaction and EndTransaction, so that it applies
as a whole after a crash too. Source: Kafka's BatchAccumulator and RecordsIterator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from barnabas.broker.metadata.errors import MetadataError
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.control import ControlRecord, decode_control, encode_control
from barnabas.protocol.metadata.frame import decode_frame, encode_frame
from barnabas.protocol.metadata.levels import has_transactions
from barnabas.protocol.metadata.records import BeginTransactionRecord, EndTransactionRecord, MetadataRecord
from barnabas.protocol.records import Codec, RecordBatchBuilder, iter_batches, read_records

MAX_BATCH_BYTES = 4 * 1024 * 1024
"""Half of the 8 MiB that Kafka's raft client accepts, so that one large record still fits."""

_BATCH_OVERHEAD_PER_RECORD = 32


def encode_change(
    records: Sequence[MetadataRecord],
    *,
    level: int,
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    max_batch_bytes: int = MAX_BATCH_BYTES,
) -> tuple[bytes, int]:
    """Return the batches of one change, to be appended together, and the offset after them."""
    frames = [encode_frame(record, level) for record in records]
    if sum(map(len, frames)) + _BATCH_OVERHEAD_PER_RECORD * len(frames) > max_batch_bytes:
        if not has_transactions(level):
            raise MetadataError(f"a change of {len(frames)} records does not fit one batch of metadata.version {level}")
        begin, end = BeginTransactionRecord("a change of several batches"), EndTransactionRecord()
        frames = [encode_frame(begin, level), *frames, encode_frame(end, level)]
    batches = bytearray()
    for batch, next_offset in _pack(frames, base_offset, leader_epoch, timestamp_ms, max_batch_bytes):
        batches += batch
        base_offset = next_offset
    return bytes(batches), base_offset


def encode_records(
    records: Sequence[MetadataRecord], *, level: int, base_offset: int, leader_epoch: int, timestamp_ms: int
) -> tuple[bytes, int]:
    """Return the batches of a snapshot. It needs no transaction however large: its footer proves it complete."""
    frames = [encode_frame(record, level) for record in records]
    batches = bytearray()
    for batch, next_offset in _pack(frames, base_offset, leader_epoch, timestamp_ms, MAX_BATCH_BYTES):
        batches += batch
        base_offset = next_offset
    return bytes(batches), base_offset


def encode_control_batch(
    records: Sequence[ControlRecord], *, base_offset: int, leader_epoch: int, timestamp_ms: int
) -> bytes:
    """Return one control batch."""
    builder = _builder(base_offset, leader_epoch, MAX_BATCH_BYTES, is_control=True)
    for record in records:
        key, value = encode_control(record)
        if not builder.append(timestamp_ms, key, value):
            raise ValueError(f"{len(records)} control records do not fit one batch")
    return builder.build()


def decode_batches(buffer: bytes | memoryview) -> Iterator[MetadataRecord | ControlRecord]:
    """Yield all records of the complete batches in `buffer`. A torn tail is skipped. Raises DecodeError."""
    for batch in iter_batches(buffer):
        batch.ensure_valid()
        for record in read_records(batch):
            if batch.is_control:
                yield decode_control(record.key, record.value)
            elif record.value is None:
                raise DecodeError(f"the metadata record at offset {record.offset} has no value")
            else:
                yield decode_frame(record.value)


def _pack(
    frames: Sequence[bytes], base_offset: int, leader_epoch: int, timestamp_ms: int, max_batch_bytes: int
) -> Iterator[tuple[bytes, int]]:
    builder = _builder(base_offset, leader_epoch, max_batch_bytes)
    for frame in frames:
        if not builder.append(timestamp_ms, None, frame):
            base_offset += builder.count
            yield builder.build(), base_offset
            builder = _builder(base_offset, leader_epoch, max_batch_bytes)
            builder.append(timestamp_ms, None, frame)
    yield builder.build(), base_offset + builder.count


def _builder(
    base_offset: int, leader_epoch: int, max_batch_bytes: int, *, is_control: bool = False
) -> RecordBatchBuilder:
    return RecordBatchBuilder(
        Codec.NONE,
        max_bytes=max_batch_bytes,
        base_offset=base_offset,
        partition_leader_epoch=leader_epoch,
        is_control=is_control,
    )

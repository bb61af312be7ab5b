"""Reads the records of a batch: all of them, the deep check of a received batch, and lookups by timestamp.

No function here checks the CRC: `RecordBatch.ensure_valid` does so once, where the bytes arrive. All raise DecodeErrors
only: InvalidRecordError for records that break the format's rules, DecompressionError for bytes that do not decompress
or exceed the limit.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from barnabas.protocol.compression import borrow_decompressed
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.errors import InvalidRecordError
from barnabas.protocol.records.kernels.kernel import check_payload, decode_fetched, decode_payload, find_timestamp
from barnabas.protocol.records.layout import CODEC_MASK, NO_TIMESTAMP, TIMESTAMP_TYPE_MASK
from barnabas.protocol.records.record import Record, RecordsSummary

Row = TypeVar("Row", bound=tuple[Any, ...])

MAX_DECOMPRESSED_BYTES: Final = 128 * 1024 * 1024
"""Default limit of one batch's decompressed records: 128 times the default message.max.bytes."""


def check_records(
    batch: RecordBatch,
    *,
    contiguous: bool = True,
    as_kafka: bool = False,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> RecordsSummary:
    """Check every record of a batch and return their summary.

    Sizes must be exact to the byte, varints within their types, and the count as in the header. `contiguous`: at least
    one record, with offset deltas exactly 0, 1, 2, ... up to the header's, as required of a client's batch; False for a
    batch that may have been compacted. `as_kafka`: Kafka's decoders must read it. Raises InvalidRecordError or
    DecompressionError.
    """
    if contiguous and (batch.record_count <= 0 or batch.last_offset_delta != batch.record_count - 1):
        raise InvalidRecordError(
            InvalidRecordError.BATCH,
            f"the header counts {batch.record_count} records, but its last offset delta is {batch.last_offset_delta}",
        )
    summary = check_payload(
        borrow_payload(batch, max_decompressed_bytes, as_kafka=as_kafka),
        batch.record_count,
        batch.last_offset_delta,
        batch.base_timestamp,
        contiguous,
    )
    if batch.attributes & TIMESTAMP_TYPE_MASK and batch.record_count:
        time = batch.max_timestamp
        return summary._replace(
            max_timestamp=time, offset_of_max_timestamp_delta=0 if time > NO_TIMESTAMP else -1, min_timestamp=time
        )
    return summary


def read_records(batch: RecordBatch, *, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES) -> list[Record]:
    """Return all records, with control records, absolute offsets and timestamps; keys and values are copies."""
    return decode_payload(*_payload_and_header(batch, max_decompressed_bytes))


def read_fetched(
    batch: RecordBatch, kind: type[Row], topic: str, partition: int, *, max_decompressed_bytes: int
) -> list[Row]:
    """Return what `read_records` does as rows of a named tuple.

    `kind` has the fields topic, partition, offset, timestamp, timestamp_type, key, value, headers.
    """
    header = _payload_and_header(batch, max_decompressed_bytes)
    return decode_fetched(*header, kind, topic, partition, int(batch.timestamp_type))


def _payload_and_header(
    batch: RecordBatch, max_decompressed_bytes: int
) -> tuple[memoryview, int, int, int, int, int | None]:
    """Return what decoding needs: the records, their number, base offset, last delta, base and append timestamp."""
    return (
        borrow_payload(batch, max_decompressed_bytes),
        batch.record_count,
        batch.base_offset,
        batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp if batch.attributes & TIMESTAMP_TYPE_MASK else None,
    )


def find_record_by_timestamp(
    batch: RecordBatch, target: int, *, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> tuple[int, int] | None:
    """Return (offset, timestamp) of the first record whose timestamp is `target` or later, or None."""
    if batch.attributes & TIMESTAMP_TYPE_MASK:
        if batch.max_timestamp < target or not batch.record_count:
            return None
        target = -(2**63)  # all records have the batch's timestamp, so the first one matches
    found = find_timestamp(
        borrow_payload(batch, max_decompressed_bytes),
        batch.record_count,
        batch.last_offset_delta,
        batch.base_timestamp,
        target,
    )
    if found is None:
        return None
    timestamp = batch.max_timestamp if batch.attributes & TIMESTAMP_TYPE_MASK else found[1]
    return batch.base_offset + found[0], timestamp


def first_record_with_max_timestamp(
    batch: RecordBatch, *, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> tuple[int, int] | None:
    """Return (offset, timestamp) of the first record with the batch's largest timestamp; None without timestamps."""
    if batch.attributes & TIMESTAMP_TYPE_MASK:
        return find_record_by_timestamp(batch, NO_TIMESTAMP + 1, max_decompressed_bytes=max_decompressed_bytes)
    summary = check_records(batch, contiguous=False, max_decompressed_bytes=max_decompressed_bytes)
    if summary.offset_of_max_timestamp_delta < 0:
        return None
    return batch.base_offset + summary.offset_of_max_timestamp_delta, summary.max_timestamp


def borrow_payload(batch: RecordBatch, max_decompressed_bytes: int, *, as_kafka: bool = False) -> memoryview:
    """Return the decompressed records, borrowed: valid only until this thread decompresses again.

    `as_kafka` as in `borrow_decompressed`.
    """
    if not batch.attributes & CODEC_MASK:
        return batch.payload
    return borrow_decompressed(batch.codec, batch.payload, max_decompressed_bytes, as_kafka=as_kafka)

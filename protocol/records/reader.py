"""What is inside of a batch: its records, the deep check of a received one, and look-ups by timestamp.

None of these checks the CRC: that is `RecordBatch.ensure_valid`, once, where the bytes come in. All raise DecodeErrors
only: InvalidRecordError for records that break the format's rules, DecompressionError for compressed bytes that are
none or that grow beyond the limit.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.compression import borrow_decompressed
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.errors import InvalidRecordError
from barnabas.protocol.records.kernels.kernel import check_payload, decode_payload, find_timestamp
from barnabas.protocol.records.layout import CODEC_MASK, NO_TIMESTAMP, TIMESTAMP_TYPE_MASK
from barnabas.protocol.records.record import Record, RecordsSummary

MAX_DECOMPRESSED_BYTES: Final = 128 * 1024 * 1024
"""What the records of one batch may grow to unless a caller says otherwise: 128 times the default message.max.bytes."""


def check_records(
    batch: RecordBatch, *, contiguous: bool = True, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> RecordsSummary:
    """Checks every record of a batch and returns what storage needs to know of them.

    Sizes exact to the byte, varints within their types, as many records as the header counts. `contiguous`: at least
    one record, offset deltas exactly 0, 1, 2, ... up to the header's, as a client's batch must be; False for a batch
    that compaction may have thinned out. Raises InvalidRecordError or DecompressionError.
    """
    if contiguous and (batch.record_count <= 0 or batch.last_offset_delta != batch.record_count - 1):
        raise InvalidRecordError(
            InvalidRecordError.BATCH,
            f"the header counts {batch.record_count} records, but its last offset delta is {batch.last_offset_delta}",
        )
    summary = check_payload(
        borrow_payload(batch, max_decompressed_bytes),
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
    """All records, control records included, with absolute offsets and timestamps; keys and values are copies."""
    return decode_payload(
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
    """(offset, timestamp) of the first record whose timestamp is `target` or later, or None."""
    if batch.attributes & TIMESTAMP_TYPE_MASK:
        if batch.max_timestamp < target or not batch.record_count:
            return None
        target = -(2**63)  # all records have the batch's timestamp: the first one is it
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
    """(offset, timestamp) of the first record that carries the batch's largest timestamp; None if no record has one."""
    if batch.attributes & TIMESTAMP_TYPE_MASK:
        return find_record_by_timestamp(batch, NO_TIMESTAMP + 1, max_decompressed_bytes=max_decompressed_bytes)
    summary = check_records(batch, contiguous=False, max_decompressed_bytes=max_decompressed_bytes)
    if summary.offset_of_max_timestamp_delta < 0:
        return None
    return batch.base_offset + summary.offset_of_max_timestamp_delta, summary.max_timestamp


def borrow_payload(batch: RecordBatch, max_decompressed_bytes: int) -> memoryview:
    """The records without compression, borrowed: valid until this thread decompresses again."""
    if not batch.attributes & CODEC_MASK:
        return batch.payload
    return borrow_decompressed(batch.codec, batch.payload, max_decompressed_bytes)

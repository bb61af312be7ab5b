"""Appends of this broker's own writers: of the metadata log, and of the coordinators, which may end transactions.

Their batches have valid CRCs; one append may have several, control batches too. A transaction's end marker is appended
alone: the row of an aborted transaction must be in the segment's index if, and only if, its marker is in the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.broker.storage.index.transaction_index import AbortedTxn
from barnabas.broker.storage.log.append import AppendOrigin
from barnabas.broker.storage.producers.state import ProducerState
from barnabas.broker.storage.segment.log_segment import AppendedBatch, LogSegment
from barnabas.config.log_config import LogConfig
from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.records.batch import RecordBatch, iter_batches
from barnabas.protocol.records.end_marker import EndMarker, decode_end_marker
from barnabas.protocol.records.errors import CorruptRecordError, InvalidRecordError
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.topic_partition import TopicPartition


class TransactionEnd(NamedTuple):
    """An end marker and its record's timestamp."""

    marker: EndMarker
    timestamp: int


def check_trusted_batches(
    topic_partition: TopicPartition, records: memoryview, config: LogConfig, origin: AppendOrigin
) -> list[RecordBatch]:
    """Return the batches in `records`, checked: any number, control batches too. Raises BrokerError."""
    batches: list[RecordBatch] = []
    try:
        batches.extend(iter_batches(records))
        for batch in batches:
            batch.ensure_valid()
    except (CorruptRecordError, InvalidRecordError) as error:
        raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{topic_partition}: {error}") from error
    if not batches or sum(batch.size_bytes for batch in batches) != len(records):
        raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{topic_partition}: {len(records)} bytes are not whole batches")
    largest = max(batch.size_bytes for batch in batches)
    if origin is AppendOrigin.COORDINATOR and largest > config.max_message_bytes:
        raise BrokerError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{topic_partition}: a batch has {largest} bytes, max.message.bytes is {config.max_message_bytes}",
        )
    return batches


def end_marker_of(topic_partition: TopicPartition, batches: Sequence[RecordBatch]) -> TransactionEnd | None:
    """Return the end marker if the batches are one; None for other batches.

    Raises BrokerError INVALID_RECORD for a producer's control batch that is no end marker, or that is not alone.
    """
    if not any(batch.is_control and batch.producer_id >= 0 for batch in batches):
        return None
    try:
        if len(batches) != 1 or batches[0].record_count != 1:
            raise InvalidRecordError(InvalidRecordError.BATCH, "an end marker comes alone")
        record = read_records(batches[0])[0]
        return TransactionEnd(decode_end_marker(record.key, record.value), record.timestamp)
    except DecodeError as error:
        raise BrokerError(ErrorCode.INVALID_RECORD, f"{topic_partition}: {error}") from error


def append_with_row(
    segment: LogSegment, records: memoryview, placed: Sequence[AppendedBatch], row: AbortedTxn | None
) -> None:
    """Append the batches, and the index row of the transaction that they abort, if any. Raises OSError.

    The row is written first: if the disk is full, a row is easily cut off again, a batch is not.
    """
    if row is None:
        segment.append_many(records, placed)
        return
    segment.transaction_index.append(row)
    try:
        segment.append_many(records, placed)
    except OSError:
        segment.transaction_index.truncate_to(row.last_offset)
        raise


def note_appended(
    producers: ProducerState, batches: Sequence[RecordBatch], end: TransactionEnd | None, now_ms: int
) -> None:
    """Add the appended batches, with stamped offsets, to the producer state; `now_ms` is the wall clock."""
    if end is not None:
        producers.note_marker(batches[0].producer_id, batches[0].producer_epoch, end.marker, end.timestamp)
        return
    for batch in batches:
        if batch.producer_id >= 0:
            producers.note_data(batch, appended_ms=now_ms)

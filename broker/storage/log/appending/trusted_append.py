"""Checks of appends by this broker's own writers: of the metadata log, and of the coordinators.

Their batches have valid CRCs; one append may have several, and the metadata log's control batches. End markers of
transactions are appended by `marker_appender`.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.broker.storage.log.append import AppendOrigin
from barnabas.broker.storage.producers.state import ProducerState
from barnabas.config.log_config import LogConfig
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.batch import RecordBatch, iter_batches
from barnabas.protocol.records.errors import CorruptRecordError, InvalidRecordError
from barnabas.protocol.topic_partition import TopicPartition


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


def ensure_no_end_marker(topic_partition: TopicPartition, batches: Sequence[RecordBatch]) -> None:
    """Raise BrokerError INVALID_RECORD for an end marker, which is appended by `MarkerAppender`."""
    if any(batch.is_control and batch.producer_id >= 0 for batch in batches):
        raise BrokerError(ErrorCode.INVALID_RECORD, f"{topic_partition}: an end marker among other batches")


def note_appended(producers: ProducerState, batches: Sequence[RecordBatch], now_ms: int) -> None:
    """Add the appended batches, with stamped offsets, to the producer state; `now_ms` is the wall clock."""
    for batch in batches:
        if batch.producer_id >= 0:
            producers.note_data(batch, appended_ms=now_ms)

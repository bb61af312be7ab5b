"""Reads a partition of a coordinator's log at a start, on a thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.batch import RecordBatch, iter_batches

if TYPE_CHECKING:
    from barnabas.broker.storage.log.readable_log import ReadableLog


def stored_batches(partition_log: ReadableLog, buffer_bytes: int) -> Iterator[RecordBatch]:
    """Yield all batches, also those beyond the high watermark, read `buffer_bytes` at a time.

    Raises DecodeError, BrokerError KAFKA_STORAGE_ERROR, StorageError and OSError.
    """
    offset, end = partition_log.log_start_offset, partition_log.log_end_offset
    while offset < end:
        found = partition_log.read(offset, buffer_bytes, upper_bound=end, at_least_one_batch=True)
        if found is None:
            return
        read_to = offset
        for batch in iter_batches(found.read()):
            yield batch
            read_to = batch.next_offset
        if read_to <= offset:
            raise DecodeError(f"{partition_log.topic_partition} has no whole batch at offset {offset}")
        offset = read_to

"""Reading stored batches by offset, without a lock.

A reader works on an immutable view of the segments and on the `LogEnd` of one moment. The slice begins with the batch
that CONTAINS the offset (the head is never cut), ends before the upper bound, and lies in one segment; what a byte
limit cuts is the tail. A hole in the offsets, or a segment without a batch that far, goes on in the next segment.
Source: Kafka LocalLog.read, LogSegment.read.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.broker.storage.files.file_records import FileSlice
from barnabas.broker.storage.segment.log_segment import BatchLocation, LogSegment
from barnabas.broker.storage.segment.log_segments import SegmentsView
from barnabas.broker.storage.segment.old_format_slice import MAX_RAW_BYTES, OldFormatSlice
from barnabas.broker.storage.segment.scan import iter_headers
from barnabas.protocol.records.legacy.messages import LegacyMessage


class LogEnd(NamedTuple):
    """Where a log ends, consistent in itself. The last appended batch is -1 right after a load or a roll."""

    offset: int
    segment: LogSegment
    size_bytes: int
    """Of the active segment, up to `offset`: later batches may lie behind it in the file."""
    last_base_offset: int
    last_position: int


def read_slice(
    view: SegmentsView,
    end: LogEnd,
    offset: int,
    max_bytes: int,
    upper_bound: int,
    at_least_one_batch: bool,
) -> FileSlice | OldFormatSlice | None:
    """The batches from `offset` (inside of the log) on; None when there are none below the upper bound.

    Old messages among them make it an OldFormatSlice. The first batch comes whole or not at all: beyond `max_bytes`
    only if `at_least_one_batch`. Raises
    CorruptRecordError, CorruptFileError, OSError.
    """
    end_offset, active, active_size, last_base_offset, last_position = end
    if offset == last_base_offset and upper_bound >= end_offset:
        # The usual case of a consumer that has everything: just what was appended last.
        size = active_size - last_position
        return active.log.slice(last_position, size) if size <= max_bytes or at_least_one_batch else None
    segments = view.segments
    index = view.floor_index(offset)
    while 0 <= index < len(segments):
        segment = segments[index]
        base_offset = segment.base_offset
        if base_offset >= upper_bound or base_offset > active.base_offset:
            return None  # the bound is reached, or a segment that was rolled after `end` was taken
        limit = active_size if segment is active else segment.log.size_bytes
        found = segment.find_batch(offset, limit)
        if found is not None:
            if upper_bound < end_offset:
                bound = segment.find_batch(upper_bound, limit)
                if bound is not None:
                    limit = bound.position
            available = limit - found.position
            if available < found.size_bytes or (max_bytes < found.size_bytes and not at_least_one_batch):
                return None
            if segment.holds_old_messages:
                return _slice_with_old_messages(segment, found, available, max_bytes, at_least_one_batch)
            return segment.log.slice(found.position, min(available, max(max_bytes, found.size_bytes)))
        index += 1
    return None


def _slice_with_old_messages(
    segment: LogSegment, found: BatchLocation, available: int, max_bytes: int, at_least_one_batch: bool
) -> FileSlice | OldFormatSlice:
    """As stored where no old message begins in it, which is walked: where formats are mixed, most is often new."""
    size = min(available, max(min(max_bytes, MAX_RAW_BYTES), found.size_bytes))
    records = segment.log.slice(found.position, size)
    for _, entry in iter_headers(segment.log.handle(), records.position, records.position + size):
        if isinstance(entry, LegacyMessage):
            return OldFormatSlice(records, max_bytes, at_least_one_batch=at_least_one_batch)
    return records

"""Reading stored batches by offset, without a lock.

A reader works on an immutable view of the segments and on the `LogEnd` of one moment. The slice begins with the batch
that CONTAINS the offset (the head is never cut), ends before the upper bound, and is in one segment; a byte limit cuts
its tail. After a hole in the offsets, or a segment without a batch at or after the offset, the search continues in the
next segment. Source: Kafka LocalLog.read, LogSegment.read.
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
    """The end of a log at one moment. The base offset of the last batch is -1 right after a load or a roll."""

    offset: int
    segment: LogSegment
    size_bytes: int
    """Of the active segment, up to `offset`; the file may hold later batches already."""
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
    """Return the batches from `offset` (within the log) on; None if there are none below the upper bound.

    Messages of an old format among them make it an OldFormatSlice. The first batch is returned whole or not at all:
    above `max_bytes` only if `at_least_one_batch`. The parameters are positional because a keyword call costs a read
    3 % more. Raises CorruptRecordError, CorruptFileError, OSError.
    """
    end_offset, active, active_size, last_base_offset, last_position = end
    if offset == last_base_offset and upper_bound >= end_offset:
        # A consumer that is up to date, the usual case: only the last batch.
        size = active_size - last_position
        return active.log.slice(last_position, size) if size <= max_bytes or at_least_one_batch else None
    segments = view.segments
    index = view.floor_index(offset)
    while 0 <= index < len(segments):
        segment = segments[index]
        base_offset = segment.base_offset
        if base_offset >= upper_bound or base_offset > active.base_offset:
            return None  # the bound is reached, or the segment was rolled after `end` was taken
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
    """Return a plain slice if no old message begins in it: most of a segment with mixed formats is often new."""
    size = min(available, max(min(max_bytes, MAX_RAW_BYTES), found.size_bytes))
    records = segment.log.slice(found.position, size)
    for _, entry in iter_headers(segment.log.handle(), records.position, records.position + size):
        if isinstance(entry, LegacyMessage):
            return OldFormatSlice(records, max_bytes, at_least_one_batch=at_least_one_batch)
    return records

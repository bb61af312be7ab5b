"""Lookup of offsets by timestamp.

The first segment whose largest timestamp is not below the timestamp is searched: the time index gives an offset, the
offset index a position; from there batch headers are compared, then records. Producers' clocks differ, so timestamps
need not rise with the offsets: the result is the first record, by offset, at or after the timestamp.
Source: Kafka UnifiedLog.fetchOffsetByTimestamp, LogSegment.findOffsetByTimestamp.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.broker.storage.index.time_index import NO_TIMESTAMP
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.log_segments import SegmentsView
from barnabas.broker.storage.segment.scan import iter_headers, read_entry
from barnabas.protocol.records.layout import NO_PARTITION_LEADER_EPOCH
from barnabas.protocol.records.legacy.messages import LegacyMessage, read_legacy_records
from barnabas.protocol.records.reader import find_record_by_timestamp, first_record_with_max_timestamp, read_records
from barnabas.protocol.records.record import Record

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3


class FoundOffset(NamedTuple):
    """An offset, the timestamp of its record (-1 for the latest and earliest offset), and its leader epoch."""

    timestamp: int
    offset: int
    leader_epoch: int


def find_by_timestamp(view: SegmentsView, timestamp: int, starting_offset: int) -> FoundOffset | None:
    """Return the first record at or after both. Raises CorruptRecordError, OSError."""
    for segment in view.segments:
        if segment.largest_timestamp() >= timestamp:
            found = _find_in_segment(segment, timestamp, starting_offset)
            if found is not None:
                return found
            # Go on, unlike Kafka: an empty segment between others, which compaction and recovery can leave, has the
            # modification time of its file as its largest timestamp.
    return None


def find_max_timestamp(view: SegmentsView) -> FoundOffset | None:
    """Return the first record with the log's largest timestamp. Raises CorruptRecordError, OSError.

    If no record of the log has a timestamp, that is the first record of the first segment, which may be below the log
    start offset; nothing if that segment is empty, or its first record in format 0.
    """
    found_so_far = ((segment, segment.largest_timestamp_so_far()) for segment in view.segments)
    best, (best_timestamp, best_offset) = max(found_so_far, key=lambda each: each[1].timestamp)
    file = best.log.handle()
    position = best.index_position(best_offset)
    for batch_position, header in iter_headers(file, position, best.size_bytes):
        if header.max_timestamp == best_timestamp:
            entry = read_entry(file, batch_position, header)
            if isinstance(entry, LegacyMessage):
                has_timestamps = entry.magic > 0
                return _first_at_or_after(read_legacy_records(entry), best_timestamp, 0) if has_timestamps else None
            if best_timestamp == NO_TIMESTAMP:
                return _first_at_or_after(read_records(entry), NO_TIMESTAMP, 0, entry.partition_leader_epoch)
            found = first_record_with_max_timestamp(entry)
            if found is None:
                return None
            return FoundOffset(found[1], found[0], entry.partition_leader_epoch)
    return None


def _find_in_segment(segment: LogSegment, timestamp: int, starting_offset: int) -> FoundOffset | None:
    file = segment.log.handle()
    position = segment.time_position(timestamp, starting_offset)
    for batch_position, header in iter_headers(file, position, segment.size_bytes):
        if header.max_timestamp < timestamp or header.last_offset < starting_offset:
            continue
        entry = read_entry(file, batch_position, header)
        if isinstance(entry, LegacyMessage):
            first = _first_at_or_after(read_legacy_records(entry), timestamp, starting_offset)
        elif entry.base_offset >= starting_offset:
            found = find_record_by_timestamp(entry, timestamp)
            first = None if found is None else FoundOffset(found[1], found[0], entry.partition_leader_epoch)
        else:
            first = _first_at_or_after(read_records(entry), timestamp, starting_offset, entry.partition_leader_epoch)
        if first is not None:
            return first
    return None


def _first_at_or_after(
    records: list[Record], timestamp: int, starting_offset: int, leader_epoch: int = NO_PARTITION_LEADER_EPOCH
) -> FoundOffset | None:
    for record in records:
        if record.timestamp >= timestamp and record.offset >= starting_offset:
            return FoundOffset(record.timestamp, record.offset, leader_epoch)
    return None

"""Timestamp lookup in segment files, by the rules of a broker. Source: Kafka LogSegment."""

from __future__ import annotations

import contextlib

from barnabas.pipeline.segments.directories import SegmentDirectory
from barnabas.pipeline.segments.index import SegmentFile
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.layout import MAGIC_POSITION, MAGIC_V2
from barnabas.protocol.records.legacy.messages import LegacyMessage, read_legacy_records
from barnabas.protocol.records.reader import find_record_by_timestamp


def first_offset_at(directory: SegmentDirectory, timestamp: int, end: int) -> int | None:
    """Return the first offset in [log start, end) at or after a timestamp (ms), or None. Raises OSError.

    Damaged batches are skipped; the tasks that read them report them.
    """
    for segment in directory.segments:
        largest = segment.max_timestamp()
        if segment is not directory.segments[-1] and largest is not None and largest < timestamp:
            continue
        found = _in_segment(segment, timestamp, directory.earliest)
        if found is not None:
            return found if found < end else None
    return None


def _in_segment(segment: SegmentFile, timestamp: int, least: int) -> int | None:
    for data in segment.batches(segment.position_for_time(timestamp), least):
        with contextlib.suppress(DecodeError):
            found = _in_batch(data, timestamp, least)
            if found is not None:
                return found
    return None


def _in_batch(data: memoryview, timestamp: int, least: int) -> int | None:
    """Raises DecodeError."""
    if data[MAGIC_POSITION] == MAGIC_V2:
        batch = RecordBatch(data)
        if batch.max_timestamp < timestamp or batch.is_control:
            return None
        batch.ensure_valid()
        found = find_record_by_timestamp(batch, timestamp)
        return None if found is None else max(found[0], least)
    message = LegacyMessage(data)
    message.ensure_valid()
    return next(
        (each.offset for each in read_legacy_records(message) if each.timestamp >= timestamp and each.offset >= least),
        None,
    )

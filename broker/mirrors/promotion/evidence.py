"""What the logs of a mirror contain about open transactions. Reads files: the functions run on threads.

Segments are read by their batches' headers, from the newest back to the first one that begins before any of the open
transactions did, by the markers' timestamps. Nothing appends to the logs meanwhile; a segment that retention or the
cleaner takes away raises OSError, and the caller tries again.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.mirrors.promotion.settling import UNKNOWN_TIME, Ending, EndingFinder, OpenTransaction
from barnabas.broker.storage.producers.entry import NO_OFFSET
from barnabas.broker.storage.segment.scan import iter_headers
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.end_marker import decode_end_marker
from barnabas.protocol.records.reader import read_records

if TYPE_CHECKING:
    from barnabas.broker.storage.log.partition_log import PartitionLog
    from barnabas.broker.storage.producers.entry import ProducerEntry
    from barnabas.broker.storage.segment.log_segment import LogSegment

_SEGMENTS_BEFORE = 2
"""Segments in which the last marker before an open transaction is looked for."""


class _Batch(NamedTuple):
    """A transactional batch or a marker of one producer."""

    producer_id: int
    epoch: int
    base_offset: int
    timestamp_ms: int
    is_commit: bool | None
    """None: data."""


def open_entries(log: PartitionLog) -> list[ProducerEntry]:
    """Return the producers with an open transaction, in the order of the transactions' first offsets."""
    with log.core.lock:
        found = [each for each in log.core.producers.producers.values() if each.txn_first_offset != NO_OFFSET]
    return sorted(found, key=lambda each: each.txn_first_offset)


def open_transactions(log: PartitionLog) -> list[OpenTransaction]:
    """Return the open transactions of a log. Raises OSError, CorruptRecordError."""
    return [
        OpenTransaction(
            log.topic_partition,
            each.producer_id,
            each.epoch,
            each.txn_first_offset,
            _last_marker_before(log, each.txn_first_offset),
        )
        for each in open_entries(log)
    ]


def endings(log: PartitionLog, producer_ids: Collection[int], since_ms: int) -> list[Ending]:
    """Return the end markers of these producers, those from before `since_ms` as far as they are in the same segment.

    Raises OSError, CorruptRecordError.
    """
    producers = log.core.producers
    wanted = {each for each in producer_ids if each in producers.producers or each in producers.overdue}
    if not wanted:
        return []
    parts: list[list[_Batch]] = []
    for segment in reversed(log.segments):
        part: list[_Batch] = []
        oldest = UNKNOWN_TIME
        for batch in _transactional(segment):
            if oldest == UNKNOWN_TIME and batch.is_commit is not None:
                oldest = batch.timestamp_ms
            if batch.producer_id in wanted:
                part.append(batch)
        parts.append(part)
        if oldest != UNKNOWN_TIME and oldest < since_ms:
            break
    finder = EndingFinder(log.topic_partition)
    for part in reversed(parts):
        for batch in part:
            if batch.is_commit is None:
                finder.data(batch.producer_id, batch.epoch)
            else:
                finder.marker(
                    batch.producer_id, batch.epoch, is_commit=batch.is_commit, timestamp_ms=batch.timestamp_ms
                )
    return finder.endings


def committed_after(log: PartitionLog, offset: int) -> set[int]:
    """Return the producers whose first end marker at or after `offset` is a COMMIT. Raises OSError, CorruptRecordError.

    A cut at `offset` opens these transactions again, if they have records before it.
    """
    found: dict[int, bool] = {}
    for segment in log.segments[max(log.segments_view.floor_index(offset), 0) :]:
        for batch in _transactional(segment):
            if batch.is_commit is not None and batch.base_offset >= offset:
                found.setdefault(batch.producer_id, batch.is_commit)
    return {producer_id for producer_id, is_commit in found.items() if is_commit}


def _last_marker_before(log: PartitionLog, offset: int) -> int:
    """Return the timestamp of the last marker before `offset`, or UNKNOWN_TIME."""
    last = max(log.segments_view.floor_index(offset), 0)
    for segment in reversed(log.segments[max(0, last + 1 - _SEGMENTS_BEFORE) : last + 1]):
        found = UNKNOWN_TIME
        for batch in _transactional(segment):
            if batch.base_offset >= offset:
                break
            if batch.is_commit is not None:
                found = batch.timestamp_ms
        if found != UNKNOWN_TIME:
            return found
    return UNKNOWN_TIME


def _transactional(segment: LogSegment) -> Iterator[_Batch]:
    """Yield the transactional batches of a segment."""
    handle = segment.log.handle()
    for position, entry in iter_headers(handle, 0, segment.log.size_bytes):
        if not isinstance(entry, RecordBatch) or not entry.is_transactional:
            continue
        is_commit = None
        if entry.is_control:
            whole = RecordBatch(memoryview(os.pread(handle.fd, entry.size_bytes, position)), 0)
            records = read_records(whole)
            if not records:
                continue
            is_commit = decode_end_marker(records[0].key, records[0].value).is_commit
        yield _Batch(entry.producer_id, entry.producer_epoch, entry.base_offset, entry.max_timestamp, is_commit)

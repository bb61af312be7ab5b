"""What a group has not read of a log: bytes, age, and when retention deletes it. Reads files: not in the event loop."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.broker.storage.explanation.retention_facts import check_interval_ms, read_log_facts
from barnabas.broker.storage.explanation.retention_findings import SegmentFinding, explain_retention
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.segment.scan import iter_headers
from barnabas.broker.storage.served_logs import ServedLogs
from barnabas.protocol.errors import BrokerError, DecodeError
from barnabas.protocol.messages.groups.explain_group import Deletion, PartitionLag

logger = logging.getLogger(__name__)

MAX_DELETIONS: Final = 100
"""Segments of one partition whose deletion is answered."""

_UNREADABLE: Final = (OSError, StorageError, DecodeError, BrokerError)
"""The log's directory has just failed, the log was closed or deleted, or a batch or a file is damaged."""


class CommittedAt(NamedTuple):
    """A group's committed offset in a partition, and when it was committed (ms since 1970)."""

    topic: str
    partition: int
    offset: int
    committed_ms: int


def read_lag(
    log: ReadableLog, committed: CommittedAt, manager: ServedLogs[ReadableLog], *, now_ms: int
) -> PartitionLag:
    """Return the lag of a group in a partition. A log that cannot be read has no bytes, time and deletions."""
    start, end = log.log_start_offset, log.high_watermark
    plain = PartitionLag(*committed, start, end)
    if committed.offset >= end:
        return plain
    try:
        lag_bytes, next_timestamp = _unread(log, max(committed.offset, start), end)
        deletions = deletions_of(read_findings(log, manager, now_ms=now_ms), committed.offset)
    except _UNREADABLE as error:
        logger.debug("the lag in %s is not known: %s", log, error)
        return plain
    return plain.replaced(lag_bytes=lag_bytes, next_timestamp_ms=next_timestamp, deletions=deletions)


def read_findings(log: ReadableLog, manager: ServedLogs[ReadableLog], *, now_ms: int) -> tuple[SegmentFinding, ...]:
    """Explain the retention of a log of `manager`. Raises OSError, StorageError."""
    facts = read_log_facts(
        log,
        check_interval_ms(log.config, manager.config),
        is_moving=manager.is_moving(log),
        is_uncleanable=manager.is_uncleanable(log),
    )
    return explain_retention(facts, now_ms=now_ms)


def try_read_findings(log: ReadableLog, manager: ServedLogs[ReadableLog], *, now_ms: int) -> tuple[SegmentFinding, ...]:
    """As `read_findings`; none of a log that cannot be read at present."""
    try:
        return read_findings(log, manager, now_ms=now_ms)
    except _UNREADABLE as error:
        logger.debug("the retention of %s is not known: %s", log, error)
        return ()


def deletions_of(findings: Sequence[SegmentFinding], committed: int) -> list[Deletion]:
    """Return when the segments with records from `committed` on are deleted, up to the first that is never deleted."""
    found = []
    for each in findings:
        if each.segment.end_offset <= committed:
            continue
        found.append(Deletion(each.segment.end_offset, each.deleted_earliest_ms, each.deleted_latest_ms, each.rule))
        if each.deleted_earliest_ms is None or len(found) == MAX_DELETIONS:
            break
    return found


def _unread(log: ReadableLog, offset: int, end: int) -> tuple[int, int | None]:
    """Return the bytes from the batch with `offset` on, up to the high watermark's segment, and its timestamp."""
    unread = log.segments_view.overlapping(offset, end)
    size = sum(segment.size_bytes for segment in unread)
    for segment in unread:  # after compaction, the first segments may have no record from `offset` on
        location = segment.find_batch(offset, segment.size_bytes)
        if location is None:
            size -= segment.size_bytes
            continue
        handle = segment.log.handle()
        for _, header in iter_headers(handle, location.position, location.position + location.size_bytes):
            return size - location.position, header.max_timestamp
        return size - location.position, None
    return 0, None

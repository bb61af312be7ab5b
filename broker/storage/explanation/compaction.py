"""How dirty a compacted log is, why the cleaner does not clean it now, and when it will.

The measurement is the cleaner's own (cleaning/cleanable_part.py). A log is due when the dirty part exceeds
min.cleanable.dirty.ratio, or a dirty record is older than max.compaction.lag.ms; of those that are due the cleaner
takes the dirtiest one first.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from barnabas.broker.storage.cleaning.cleanable_part import CleanablePart, measure_cleanable_part
from barnabas.broker.storage.cleaning.cleaner_facts import CleanerFacts
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.protocol.messages.topics.explain_topic import ExplainedCompaction


class WaitsFor(StrEnum):
    """Why a compacted log is not cleaned now."""

    UNCLEANABLE = "uncleanable"
    """A round failed; `error` has the reason."""
    CLEANER_DISABLED = "cleaner_disabled"
    IN_PROGRESS = "in_progress"
    PAUSED = "paused"
    """A move, a truncation or retention works on the log."""
    NOTHING_DIRTY = "nothing_dirty"
    ACTIVE_SEGMENT = "active_segment"
    """The active segment is never cleaned."""
    MIN_COMPACTION_LAG = "min_compaction_lag"
    OPEN_TRANSACTION = "open_transaction"
    """Records from the last stable offset on are not cleaned."""
    DIRTY_RATIO = "dirty_ratio"
    OTHER_LOGS = "other_logs"
    """Dirtier logs come first."""
    NEXT_LOOK = "next_look"
    """It is due: the cleaner takes it when it looks next."""
    POSTPONED = "postponed"
    """It is due, and its round is repeated later: it lacked disk space, descriptors or memory."""
    THROTTLED = "throttled"
    """The cleaner waits now, because of log.cleaner.io.max.bytes.per.second."""


def explain_compaction(log: ReadableLog, cleaner: CleanerFacts, now_ms: int) -> ExplainedCompaction | None:
    """Explain a log, None if it is not compacted. Reads time indexes. Raises OSError, StorageError."""
    config = log.config
    if not config.compact:
        return None
    part = measure_cleanable_part(log, cleaner.checkpoint, now_ms)
    segments = log.segments
    ratio = config.min_cleanable_dirty_ratio
    is_due = part.is_due(ratio)
    bounds = _bounds(log, part, segments, now_ms)
    seconds = None
    if cleaner.bytes_per_second and part.total_bytes:
        seconds = part.total_bytes / cleaner.bytes_per_second
    freed = None if cleaner.kept_share is None else round(part.total_bytes * (1 - cleaner.kept_share))
    return ExplainedCompaction(
        first_dirty_offset=part.first_dirty_offset,
        first_uncleanable_offset=part.first_uncleanable_offset,
        clean_bytes=part.clean_bytes,
        dirty_bytes=part.dirty_bytes,
        dirty_ratio=part.dirty_ratio,
        missing_bytes=0 if is_due else _missing_bytes(part, ratio),
        due_latest_ms=now_ms if is_due else _due_latest_ms(log, part, segments),
        waits_for=tuple(_reasons(part, cleaner, is_due=is_due, bounds=bounds)),
        error=cleaner.error,
        seconds=seconds,
        freed_bytes=freed,
        old_enough_ms=_old_enough_ms(log, part, segments, now_ms),
    )


def _reasons(part: CleanablePart, cleaner: CleanerFacts, *, is_due: bool, bounds: Sequence[WaitsFor]) -> list[WaitsFor]:
    if cleaner.error is not None:
        return [WaitsFor.UNCLEANABLE]
    if not cleaner.is_enabled:
        return [WaitsFor.CLEANER_DISABLED]
    throttled = [WaitsFor.THROTTLED] if cleaner.is_throttled else []
    if cleaner.state == "in progress":
        return [WaitsFor.IN_PROGRESS, *throttled]
    if cleaner.state in ("paused", "aborted"):
        return [WaitsFor.PAUSED]
    if is_due:
        if cleaner.is_postponed:
            return [WaitsFor.POSTPONED]
        return [WaitsFor.OTHER_LOGS if cleaner.filthier_logs else WaitsFor.NEXT_LOOK, *throttled]
    reasons = [WaitsFor.DIRTY_RATIO] if part.dirty_bytes else []
    return [*reasons, *bounds] or [WaitsFor.NOTHING_DIRTY]


def _bounds(log: ReadableLog, part: CleanablePart, segments: Sequence[LogSegment], now_ms: int) -> list[WaitsFor]:
    """What keeps the records above the cleanable part from being cleaned."""
    found = []
    first_unclean = part.first_uncleanable_offset
    if log.last_stable_offset < log.high_watermark and log.last_stable_offset < segments[-1].base_offset:
        found.append(WaitsFor.OPEN_TRANSACTION)
    lag_ms = log.config.min_compaction_lag_ms
    sealed = [each for each in segments[:-1] if each.base_offset >= first_unclean]
    if lag_ms > 0 and any(each.largest_timestamp() > now_ms - lag_ms for each in sealed):
        found.append(WaitsFor.MIN_COMPACTION_LAG)
    if segments[-1].size_bytes > 0 and log.log_end_offset > part.first_dirty_offset:
        found.append(WaitsFor.ACTIVE_SEGMENT)
    return found


def _old_enough_ms(log: ReadableLog, part: CleanablePart, segments: Sequence[LogSegment], now_ms: int) -> int | None:
    """When min.compaction.lag.ms lets the next segment be cleaned; None if it waits for something else, or nothing."""
    lag_ms = log.config.min_compaction_lag_ms
    for each in segments[:-1]:
        if each.base_offset >= part.first_uncleanable_offset:
            moment = each.largest_timestamp() + lag_ms
            return moment if moment > now_ms else None
    return None


def _missing_bytes(part: CleanablePart, ratio: float) -> int | None:
    """Bytes that have to become dirty until the ratio is exceeded; None if no number of them is enough."""
    if not ratio < 1:  # nor is NaN
        return None
    needed = ratio * part.clean_bytes / (1 - ratio)
    return max(1, int(needed) + 1 - part.dirty_bytes)


def _due_latest_ms(log: ReadableLog, part: CleanablePart, segments: Sequence[LogSegment]) -> int | None:
    """When max.compaction.lag.ms makes the log due if nothing is appended; None for never."""
    lag_ms = log.config.max_compaction_lag_ms
    dirty = [
        first
        for each in segments[:-1]
        if part.first_dirty_offset <= each.base_offset < part.first_uncleanable_offset
        and (first := each.first_timestamp()) > 0
    ]
    moment = min(dirty, default=None)
    if moment is None or lag_ms >= (1 << 62):
        return None
    return moment + lag_ms + 1

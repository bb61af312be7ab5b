"""The part of a compacted log that can be cleaned, and how urgent that is. Read-only.

    log start .. first dirty           clean: covered by earlier rounds (cleaner-offset-checkpoint)
    first dirty .. first uncleanable   the dirty part, whole segments; its keys go into the round's map
    first uncleanable .. log end       not cleanable yet: from the active segment, the segment with the last stable
                                       offset, or the first dirty one with a record younger than min.compaction.lag.ms

A checkpoint outside of the log (its end was lost, or its start has moved past it) is reset: then all is dirty. Sizes
are those of whole segments. If a round ended inside a segment because its map was full, that segment counts as clean
and as dirty, so the two sizes may add up to more than the log. Source: Kafka LogCleanerManager.cleanableOffsets,
calculateCleanableBytes, maxCompactionDelay; LogToClean.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.log_segments import SegmentsView


class CleanablePart(NamedTuple):
    """Cleanable part of one log, as measured."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    """Base offset of a segment: the round's map ends before it."""
    is_reset: bool
    """The checkpoint is outside of the log: `first_dirty_offset` is the log start and must be checkpointed."""
    clean_bytes: int
    dirty_bytes: int
    """Bytes of the dirty part only."""
    delay_ms: int
    """How long the oldest dirty record has exceeded max.compaction.lag.ms; 0 if it has not."""

    @property
    def total_bytes(self) -> int:
        """Bytes that a round would read."""
        return self.clean_bytes + self.dirty_bytes

    @property
    def dirty_ratio(self) -> float:
        """Share of dirty bytes in `total_bytes`, 0.0 without any: Kafka's cleanable ratio."""
        return self.dirty_bytes / self.total_bytes if self.total_bytes else 0.0

    def is_due(self, min_cleanable_dirty_ratio: float) -> bool:
        """Return whether to clean the log: it is dirtier than the minimum, or max.compaction.lag.ms has passed."""
        return self.dirty_ratio > min_cleanable_dirty_ratio or (self.delay_ms > 0 and self.dirty_bytes > 0)


def measure_cleanable_part(log: ReadableLog, checkpoint: int | None, now_ms: int) -> CleanablePart:
    """Measure a log; `checkpoint` is its entry in cleaner-offset-checkpoint. Raises OSError, StorageError."""
    start, end = log.log_start_offset, log.log_end_offset
    segments = log.segments
    view = SegmentsView(tuple(segment.base_offset for segment in segments), segments)
    is_reset = checkpoint is not None and not start <= checkpoint <= end
    first_dirty = start if checkpoint is None or is_reset else checkpoint
    dirty = _sealed_from(view, first_dirty)
    unclean = max(first_dirty, min(log.last_stable_offset, view.base_offsets[-1], _first_young(log, dirty, now_ms)))
    # Round down to a segment's base offset: a round ends with a whole segment.
    first_unclean_segment = (*_sealed_from(view, unclean), segments[-1])[0].base_offset
    return CleanablePart(
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=first_unclean_segment,
        is_reset=is_reset,
        clean_bytes=_bytes_of(segment for segment in segments if segment.base_offset < first_dirty),
        dirty_bytes=_bytes_of(view.overlapping(min(first_dirty, first_unclean_segment), first_unclean_segment)),
        delay_ms=_delay_ms(dirty, now_ms - log.config.max_compaction_lag_ms),
    )


def _sealed_from(view: SegmentsView, offset: int) -> tuple[LogSegment, ...]:
    """Return the segments from the one with `offset` on, without the active one."""
    active_base = view.base_offsets[-1]
    return view.overlapping(offset, active_base) if offset < active_base else ()


def _first_young(log: ReadableLog, dirty: Iterable[LogSegment], now_ms: int) -> int:
    """Return the base offset of the first segment with a record within min.compaction.lag.ms, or the log's end."""
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in dirty:
            if segment.largest_timestamp() > now_ms - lag_ms:
                return segment.base_offset
    return log.log_end_offset


def _delay_ms(dirty: Iterable[LogSegment], clean_until_ms: int) -> int:
    """Return how long before `clean_until_ms` the earliest first batch of the segments is; 0 if none is earlier."""
    if clean_until_ms <= 0:
        return 0  # max.compaction.lag.ms is not set, usually
    earliest = min((first for segment in dirty if (first := segment.first_timestamp()) > 0), default=clean_until_ms)
    return max(clean_until_ms - earliest, 0)


def _bytes_of(segments: Iterable[LogSegment]) -> int:
    return sum(segment.size_bytes for segment in segments)

"""Which part of a compacted log a round may clean, and how badly the log needs it. Only reads.

    log start .. first dirty        clean: rounds have been here (cleaner-offset-checkpoint)
    first dirty .. first uncleanable   the dirty part, whole segments; its offsets go into the round's map
    first uncleanable .. log end    not yet: the active segment, the segment that holds the last stable offset, or the
                                    first dirty one with a record younger than min.compaction.lag.ms

A checkpoint outside of the log (its end was lost, or its start has moved past it) is forgotten: all is dirty then.
Bytes are those of whole segments. A round that ended inside a segment, because its map was full, leaves that segment
both clean and dirty, so the two may add up to more than the log. Source: Kafka LogCleanerManager.cleanableOffsets,
calculateCleanableBytes, maxCompactionDelay; LogToClean.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.log_segments import SegmentsView


class CleanablePart(NamedTuple):
    """What there is to clean in one log, as it was measured."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    """Base offset of a segment: the round's map ends before it."""
    is_reset: bool
    """The checkpoint lay outside of the log: `first_dirty_offset` is the log's start and has to be written down."""
    clean_bytes: int
    dirty_bytes: int
    """Cleanable ones only."""
    delay_ms: int
    """For how long the oldest dirty record has been over max.compaction.lag.ms; 0 when it is not."""

    @property
    def total_bytes(self) -> int:
        """Bytes that a round would read."""
        return self.clean_bytes + self.dirty_bytes

    @property
    def dirty_ratio(self) -> float:
        """Share of them that is dirty, 0.0 where there are none: Kafka's cleanable ratio."""
        return self.dirty_bytes / self.total_bytes if self.total_bytes else 0.0

    def is_due(self, min_cleanable_dirty_ratio: float) -> bool:
        """Whether a round is to be made: strictly dirtier than the minimum, or too late."""
        return self.dirty_ratio > min_cleanable_dirty_ratio or (self.delay_ms > 0 and self.dirty_bytes > 0)


def measure_cleanable_part(log: ReadableLog, checkpoint: int | None, now_ms: int) -> CleanablePart:
    """Measure a log; `checkpoint` is its entry of cleaner-offset-checkpoint. Raises OSError, StorageError."""
    start, end = log.log_start_offset, log.log_end_offset
    segments = log.segments
    view = SegmentsView(tuple(segment.base_offset for segment in segments), segments)
    is_reset = checkpoint is not None and not start <= checkpoint <= end
    first_dirty = start if checkpoint is None or is_reset else checkpoint
    dirty = _sealed_from(view, first_dirty)
    unclean = max(first_dirty, min(log.last_stable_offset, view.base_offsets[-1], _first_young(log, dirty, now_ms)))
    # From an offset to the segment that holds it: a round ends with a whole segment.
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
    """The segments from the one that holds `offset` on, without the active one."""
    active_base = view.base_offsets[-1]
    return view.overlapping(offset, active_base) if offset < active_base else ()


def _first_young(log: ReadableLog, dirty: Iterable[LogSegment], now_ms: int) -> int:
    """Base offset of the first segment with a record younger than min.compaction.lag.ms; the log's end without one."""
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in dirty:
            if segment.largest_timestamp() > now_ms - lag_ms:
                return segment.base_offset
    return log.log_end_offset


def _delay_ms(dirty: Iterable[LogSegment], clean_until_ms: int) -> int:
    """How long before `clean_until_ms` the earliest of the segments' first batches is; 0 when none is earlier."""
    if clean_until_ms <= 0:
        return 0  # nothing is that old: the limit is not set, as a rule
    earliest = min((first for segment in dirty if (first := segment.first_timestamp()) > 0), default=clean_until_ms)
    return max(clean_until_ms - earliest, 0)


def _bytes_of(segments: Iterable[LogSegment]) -> int:
    return sum(segment.size_bytes for segment in segments)

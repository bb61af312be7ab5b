"""The segments of one log: a sorted map from base offset to segment that readers use without a lock.

Copy on write: `view` is an immutable pair of tuples that every change replaces as a whole. A reader takes it once and
works on it. The caller serializes changes (PartitionLog's lock), which are rare (rolls, retention); lookups are
frequent. Source: Kafka LogSegments.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.broker.storage.segment.log_segment import LogSegment


class SegmentsView(NamedTuple):
    """Immutable snapshot of the segments, and their base offsets in the same order."""

    base_offsets: tuple[int, ...]
    segments: tuple[LogSegment, ...]

    def floor_index(self, offset: int) -> int:
        """Return the index of the last segment with a base offset <= `offset`; -1 below the first segment."""
        return bisect_right(self.base_offsets, offset) - 1

    def overlapping(self, start_offset: int, end_offset: int) -> tuple[LogSegment, ...]:
        """Return the segments that may contain offsets in [start, end)."""
        first = max(self.floor_index(start_offset), 0)
        last = bisect_right(self.base_offsets, end_offset - 1)
        return self.segments[first:last]


class LogSegments:
    """Map from base offset to segment."""

    __slots__ = ("view",)

    def __init__(self, segments: Iterable[LogSegment] = ()) -> None:
        self.view = SegmentsView((), ())
        self._replace(list(segments))

    def __len__(self) -> int:
        return len(self.view.segments)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self.view.segments)

    @property
    def first(self) -> LogSegment:
        """The oldest segment. A log has at least one."""
        return self.view.segments[0]

    @property
    def last(self) -> LogSegment:
        """The newest segment, which is the active one once the log is loaded."""
        return self.view.segments[-1]

    @property
    def size_bytes(self) -> int:
        """Total size of the `.log` files."""
        return sum(segment.size_bytes for segment in self.view.segments)

    def add(self, segment: LogSegment) -> None:
        """Add a segment; it replaces one with the same base offset."""
        last = self.view.base_offsets[-1] if self.view.base_offsets else -1
        if segment.base_offset > last:
            self.view = SegmentsView((*self.view.base_offsets, segment.base_offset), (*self.view.segments, segment))
            return
        others = [other for other in self.view.segments if other.base_offset != segment.base_offset]
        self._replace([*others, segment])

    def remove(self, segments: Iterable[LogSegment]) -> None:
        """Remove segments; those that are not in the map are ignored."""
        gone = {id(segment) for segment in segments}
        self._replace([segment for segment in self.view.segments if id(segment) not in gone])

    def remove_first(self, count: int) -> None:
        """Remove the oldest segments."""
        self.view = SegmentsView(self.view.base_offsets[count:], self.view.segments[count:])

    def _replace(self, segments: list[LogSegment]) -> None:
        segments.sort(key=lambda segment: segment.base_offset)
        self.view = SegmentsView(tuple(segment.base_offset for segment in segments), tuple(segments))

"""The picture of a partition: its segments on a time axis, with the offsets and moments that decide about them.

The positions are units of the SVG's view box, whose width is WIDTH; the template draws them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from barnabas.protocol.messages.topics.explain_topic import ExplainedPartition, ExplainedSegment

WIDTH: Final = 1000.0
_MARGIN: Final = 10.0
_LEAST_WIDTH: Final = 3.0
"""A segment of one moment can still be pointed at."""

_FUTURE_SHARE: Final = 0.25
"""Timestamps in the future lengthen the axis by at most this share; what is later is drawn at its end."""

_TICKS_MAX: Final = 8
_STEPS_S: Final = (
    1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400, 14 * 86400, 30 * 86400,
    90 * 86400, 365 * 86400,
)  # fmt: skip


class Bar(NamedTuple):
    """One segment. `state`: active, due (retention may delete it now), or closed."""

    segment: ExplainedSegment
    x: float
    width: float
    state: str


class Mark(NamedTuple):
    """A vertical line: `kind` is cut (retention's) or point (an offset's). `level` keeps labels apart."""

    kind: str
    label: str
    x: float
    level: int


class Tick(NamedTuple):
    """A moment or an offset on the axis."""

    x: float
    label: str


class Picture(NamedTuple):
    """What the template draws. `axis` is time or offset: logs without timestamps have no time."""

    bars: Sequence[Bar]
    marks: Sequence[Mark]
    ticks: Sequence[Tick]
    axis: str
    lines: int


def draw(
    partition: ExplainedPartition, now_ms: int, retention_ms: int | None, last_stable_offset: int | None
) -> Picture:
    """Lay a partition out. `retention_ms` None: time does not delete."""
    segments = partition.segments
    has_times = all(each.largest_timestamp_ms >= 0 for each in segments if each.end_offset > each.base_offset)
    has_times = has_times and any(each.largest_timestamp_ms >= 0 for each in segments)
    if has_times:
        spans, x_of, ticks = _by_time(segments, now_ms, retention_ms)
    else:
        spans, x_of, ticks = _by_offset(segments)
    bars = [
        Bar(each, x_of(start), max(_LEAST_WIDTH, x_of(end) - x_of(start)), _state(each, now_ms))
        for each, (start, end) in zip(segments, spans, strict=True)
    ]
    points = [
        ("log start", partition.log_start_offset),
        ("recovery point", partition.durable_offset),
        ("last stable", last_stable_offset),
        ("high watermark", partition.high_watermark),
    ]
    if partition.compaction is not None:
        points.insert(1, ("cleaned to", partition.compaction.first_dirty_offset))
    found = [
        ("point", f"{label} {offset:,}", _x_of_offset(bars, offset)) for label, offset in points if offset is not None
    ]
    if has_times and retention_ms is not None:
        found.append(("cut", "retention.ms", x_of(now_ms - retention_ms)))
    if has_times:
        found.append(("now", "now", x_of(now_ms)))
    found.sort(key=lambda mark: mark[2])
    marks = [Mark(kind, label, x, level) for level, (kind, label, x) in enumerate(found)]
    return Picture(bars, marks, ticks, "time" if has_times else "offset", len(marks))


def _by_time(
    segments: Sequence[ExplainedSegment], now_ms: int, retention_ms: int | None
) -> tuple[list[tuple[float, float]], Callable[[float], float], list[Tick]]:
    spans = []
    last = float(now_ms)
    for each in segments:
        end = float(each.largest_timestamp_ms) if each.largest_timestamp_ms >= 0 else last
        start = float(each.first_timestamp_ms) if 0 <= each.first_timestamp_ms <= end else end
        spans.append((start, end))
        last = end
    begin = min(start for start, _ in spans)
    if retention_ms is not None and now_ms - retention_ms > 0:
        # The cut is on the axis unless it is so far back that the segments would shrink to a dot.
        begin = min(begin, max(float(now_ms - retention_ms), now_ms - 4 * max(1.0, now_ms - begin)))
    span = max(1000.0, now_ms - begin)
    end = min(max(now_ms, *(end for _, end in spans)), now_ms + _FUTURE_SHARE * span)
    x_of = _scale(begin, max(end, begin + 1000))
    return spans, x_of, [Tick(x_of(moment), _moment_label(moment, end - begin)) for moment in _moments(begin, end)]


def _by_offset(
    segments: Sequence[ExplainedSegment],
) -> tuple[list[tuple[float, float]], Callable[[float], float], list[Tick]]:
    spans = [(float(each.base_offset), float(each.end_offset)) for each in segments]
    begin, end = spans[0][0], max(spans[-1][1], spans[0][0] + 1)
    x_of = _scale(begin, end)
    step = 10 ** max(0, math.ceil(math.log10(max(1.0, (end - begin) / _TICKS_MAX))))
    first = math.ceil(begin / step) * step
    ticks = [Tick(x_of(offset), f"{offset:,.0f}") for offset in range(int(first), int(end) + 1, int(step))]
    return spans, x_of, ticks


def _scale(begin: float, end: float) -> Callable[[float], float]:
    def x_of(value: float) -> float:
        share = min(1.0, max(0.0, (value - begin) / (end - begin)))
        return round(_MARGIN + share * (WIDTH - 2 * _MARGIN), 2)

    return x_of


def _state(segment: ExplainedSegment, now_ms: int) -> str:
    if "active-segment" in segment.kept_by or "active_segment" in segment.kept_by:
        return "active"
    is_due = segment.deleted_earliest_ms is not None and segment.deleted_earliest_ms <= now_ms
    return "due" if is_due else "closed"


def _x_of_offset(bars: Sequence[Bar], offset: int) -> float:
    """Where an offset is: within its segment as far as its share of the segment's offsets."""
    for bar in bars:
        count = bar.segment.end_offset - bar.segment.base_offset
        if offset < bar.segment.end_offset and count > 0:
            return round(bar.x + bar.width * max(0.0, (offset - bar.segment.base_offset) / count), 2)
    return round(bars[-1].x + bars[-1].width, 2) if bars else _MARGIN


def _moments(begin: float, end: float) -> Iterator[float]:
    step_ms = next((step for step in _STEPS_S if (end - begin) / 1000 / step <= _TICKS_MAX), _STEPS_S[-1]) * 1000
    moment = math.ceil(begin / step_ms) * step_ms
    count = 0
    while moment <= end and count <= 2 * _TICKS_MAX:
        yield moment
        moment += step_ms
        count += 1


def _moment_label(moment_ms: float, span_ms: float) -> str:
    moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
    if span_ms > 2 * 86_400_000:
        return f"{moment:%m-%d}" if span_ms < 300 * 86_400_000 else f"{moment:%Y-%m-%d}"
    return f"{moment:%H:%M}" if span_ms > 600_000 else f"{moment:%H:%M:%S}"

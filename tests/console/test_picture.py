"""The picture of a partition: where its segments, offsets and moments are drawn."""

from __future__ import annotations

from barnabas.console.pages.topic.picture import WIDTH, Picture, draw
from barnabas.protocol.messages.topics.explain_topic import ExplainedCompaction, ExplainedPartition, ExplainedSegment

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000


def segment(
    base: int, first_ms: int, last_ms: int, *, kept_by: str = "within_retention", due: bool = False
) -> ExplainedSegment:
    """A segment of ten offsets."""
    earliest = NOW_MS if due else NOW_MS + HOUR_MS
    return ExplainedSegment(base, base + 10, 100, last_ms, first_ms, None, earliest, earliest, None, (kept_by,), None)


SEGMENTS = [
    segment(0, NOW_MS - 8 * HOUR_MS, NOW_MS - 6 * HOUR_MS, kept_by="check_interval", due=True),
    segment(10, NOW_MS - 6 * HOUR_MS, NOW_MS - 2 * HOUR_MS),
    segment(20, NOW_MS - 2 * HOUR_MS, NOW_MS, kept_by="active_segment"),
]
CLEANED = ExplainedCompaction(12, 20, 0, 0, 0.0, None, None, (), None, None, None)


def picture(segments: list[ExplainedSegment], *, retention_ms: int | None = 4 * HOUR_MS) -> Picture:
    partition = ExplainedPartition(0, "/d", 5, 28, 30, 15, 0, 300, segments, CLEANED)
    return draw(partition, NOW_MS, retention_ms, 25)


def test_segments_are_on_the_time_axis_with_what_retention_does_to_them() -> None:
    bars = picture(SEGMENTS).bars
    assert [each.state for each in bars] == ["due", "closed", "active"]
    assert [round(each.x) for each in bars] == [10, 255, 745]
    assert [round(each.width) for each in bars] == [245, 490, 245]


def test_offsets_and_moments_have_a_line_at_their_place() -> None:
    drawn = picture(SEGMENTS)
    assert drawn.axis == "time"
    assert [(each.kind, each.label, round(each.x)) for each in drawn.marks] == [
        ("point", "log start 5", 132),
        ("point", "cleaned to 12", 353),
        ("point", "recovery point 15", 500),
        ("cut", "retention.ms", 500),
        ("point", "last stable 25", 868),
        ("point", "high watermark 28", 941),
        ("now", "now", 990),
    ]
    assert len({each.level for each in drawn.marks}) == len(drawn.marks), "labels are on lines of their own"


def test_without_retention_by_time_there_is_no_cut() -> None:
    assert "cut" not in [each.kind for each in picture(SEGMENTS, retention_ms=None).marks]


def test_a_timestamp_far_in_the_future_does_not_squeeze_the_rest() -> None:
    drawn = picture([*SEGMENTS[:2], segment(20, NOW_MS, NOW_MS + 10_000 * HOUR_MS, kept_by="active_segment")])
    now = next(each.x for each in drawn.marks if each.kind == "now")
    assert 0.75 * WIDTH < now < 0.85 * WIDTH
    assert drawn.bars[2].x + drawn.bars[2].width <= WIDTH


def test_logs_without_timestamps_are_drawn_by_offset() -> None:
    drawn = picture([segment(0, -1, -1), segment(10, -1, -1, kept_by="active_segment")])
    assert drawn.axis == "offset"
    assert [round(each.x) for each in drawn.bars] == [10, 500]
    assert [each.kind for each in drawn.marks if each.kind != "point"] == []


def test_an_empty_log_and_a_log_of_one_moment_can_be_drawn() -> None:
    empty = ExplainedSegment(0, 0, 0, -1, -1, None, None, None, None, ("active_segment",), None)
    assert len(picture([empty]).bars) == 1
    assert picture([segment(0, NOW_MS, NOW_MS)]).bars[0].width >= 3

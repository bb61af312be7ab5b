"""explain_topic (key 10004): when retention deletes the segments of a topic, and what decides.

Times are wall clock in ms since 1970.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class ExplainTopicRequest:
    """`partition` None: all. With `setting`, a property of the topic is explained instead of partitions."""

    topic: str
    partition: int | None = None
    setting: str | None = None


class SettingValue(NamedTuple):
    """A property in one layer. `source` is Kafka's name of the layer, `origin` the exact place, for example a line.

    `problem`: why a stored value is not understood, because of which the topic's logs are kept.
    """

    name: str
    value: str | None
    source: str
    origin: str
    problem: str | None = None


class ExplainedSegment(NamedTuple):
    """One segment; see docs/explain.md for the fields. `kept_by` has reasons, `held_by` an earlier segment."""

    base_offset: int
    end_offset: int
    size_bytes: int
    largest_timestamp_ms: int
    first_timestamp_ms: int
    roll_after_ms: int | None
    deleted_earliest_ms: int | None
    deleted_latest_ms: int | None
    rule: str | None
    kept_by: tuple[str, ...]
    held_by: int | None


class ExplainedCompaction(NamedTuple):
    """The compaction of a log; see docs/explain.md for the fields.

    `missing_bytes`: until the log is due, None if no number is enough. `due_latest_ms`: None for never. `seconds` and
    `freed_bytes` are estimates by the rounds since the broker's start, None before the first. `old_enough_ms`: when
    min.compaction.lag.ms lets one more segment be cleaned, None if nothing waits for that.
    """

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int
    dirty_ratio: float
    missing_bytes: int | None
    due_latest_ms: int | None
    waits_for: tuple[str, ...]
    error: str | None
    seconds: float | None
    freed_bytes: int | None
    old_enough_ms: int | None = None


class ExplainedCopy(NamedTuple):
    """The copy of a partition that a move to another log directory has not finished; without its indexes."""

    log_dir: str
    size_bytes: int


class ExplainedPartition(NamedTuple):
    """One partition. `check_interval_ms` is None if nothing checks its log.

    Records from `durable_offset` on are not synced; `unsynced_bytes` is their size. Of a stopped broker all are.
    `removable_segments` are not in the log any more, and their files, of `removable_bytes`, are still on the disk.
    `copy`: of a move under way; of a stopped broker, of one that goes on after its next start.
    """

    partition: int
    log_dir: str
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    durable_offset: int
    unsynced_bytes: int
    check_interval_ms: int | None
    segments: Sequence[ExplainedSegment]
    compaction: ExplainedCompaction | None = None
    removable_segments: int = 0
    removable_bytes: int = 0
    copy: ExplainedCopy | None = None


@dataclass(slots=True)
class ExplainTopicResponse:
    """`settings` are those that decide, or the requested one; `layers` all that have it, the deciding one first.

    Values that are not understood are among the settings, after the requested one.
    """

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    now_ms: int = 0
    settings: Sequence[SettingValue] = ()
    partitions: Sequence[ExplainedPartition] = ()
    layers: Sequence[SettingValue] = ()

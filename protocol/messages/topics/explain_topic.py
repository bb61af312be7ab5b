"""explain_topic (key 10004): when retention deletes the segments of a topic, and what decides.

Times are wall clock in ms since 1970.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import tagged
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Float64, Int32, Int64, Message, Nullable, NullableString, String


class SettingValue(Struct, kw_only=False):
    """A property in one layer. `source` is Kafka's name of the layer, `origin` the exact place, for example a line.

    `problem`: why a stored value is not understood, because of which the topic's logs are kept.
    """

    name: String
    value: NullableString
    source: String
    origin: String
    problem: NullableString = None


class ExplainedSegment(Struct, kw_only=False):
    """One segment; see docs/explain.md for the fields. `kept_by` has reasons, `held_by` an earlier segment."""

    base_offset: Int64
    end_offset: Int64
    size_bytes: Int64
    largest_timestamp_ms: Int64
    first_timestamp_ms: Int64
    roll_after_ms: Int64 | None = tagged(0, default=None)
    deleted_earliest_ms: Int64 | None = tagged(1, default=None)
    deleted_latest_ms: Int64 | None = tagged(2, default=None)
    rule: NullableString = None
    kept_by: tuple[String, ...] = ()
    held_by: Int64 | None = tagged(3, default=None)


class ExplainedCompaction(Struct, kw_only=False):
    """The compaction of a log; see docs/explain.md for the fields.

    `missing_bytes`: until the log is due, None if no number is enough. `due_latest_ms`: None for never. `seconds` and
    `freed_bytes` are estimates by the rounds since the broker's start, None before the first. `old_enough_ms`: when
    min.compaction.lag.ms lets one more segment be cleaned, None if nothing waits for that.
    """

    first_dirty_offset: Int64
    first_uncleanable_offset: Int64
    clean_bytes: Int64
    dirty_bytes: Int64
    dirty_ratio: Float64
    missing_bytes: Int64 | None = tagged(0, default=None)
    due_latest_ms: Int64 | None = tagged(1, default=None)
    waits_for: tuple[String, ...] = ()
    error: NullableString = None
    seconds: Float64 | None = tagged(2, default=None)
    freed_bytes: Int64 | None = tagged(3, default=None)
    old_enough_ms: Int64 | None = tagged(4, default=None)


class ExplainedCopy(Struct, kw_only=False):
    """The copy of a partition that a move to another log directory has not finished; without its indexes."""

    log_dir: String
    size_bytes: Int64


class ExplainedPartition(Struct, kw_only=False):
    """One partition. `check_interval_ms` is None if nothing checks its log.

    Records from `durable_offset` on are not synced; `unsynced_bytes` is their size. Of a stopped broker all are.
    `removable_segments` are not in the log any more, and their files, of `removable_bytes`, are still on the disk.
    `copy`: of a move under way; of a stopped broker, of one that goes on after its next start.
    """

    partition: Int32
    log_dir: String
    log_start_offset: Int64
    high_watermark: Int64
    log_end_offset: Int64
    durable_offset: Int64
    unsynced_bytes: Int64
    check_interval_ms: Int64 | None = tagged(0, default=None)
    segments: Sequence[ExplainedSegment] = ()
    compaction: Annotated[ExplainedCompaction | None, Nullable()] = None
    removable_segments: Int64 = 0
    removable_bytes: Int64 = 0
    copy: Annotated[ExplainedCopy | None, Nullable()] = None


class ExplainTopicResponse(Struct, flexible=0):
    """`settings` are those that decide, or the requested one; `layers` all that have it, the deciding one first.

    Values that are not understood are among the settings, after the requested one.
    """

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    now_ms: Int64 = 0
    settings: Sequence[SettingValue] = ()
    partitions: Sequence[ExplainedPartition] = ()
    layers: Sequence[SettingValue] = ()


class ExplainTopicRequest(Request[ExplainTopicResponse], api=ApiKey.EXPLAIN_TOPIC, flexible=0):
    """`partition` None: all. With `setting`, a property of the topic is explained instead of partitions."""

    topic: String
    partition: Int32 | None = tagged(0, default=None)
    setting: NullableString = None

    def refused(self, code: ErrorCode, message: str) -> ExplainTopicResponse:
        """The code and the message."""
        return ExplainTopicResponse(error=code, message=message)

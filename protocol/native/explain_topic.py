"""explain_topic (1005): when retention deletes each segment of a topic, and which settings decide. Barnabas only.

request   topic, partition int or nil, setting str or nil
response  error, message, now_ms, settings [[name, value or nil, source, origin, problem or nil]], layers, as settings,
          partitions [[partition, log_dir, log_start_offset, high_watermark, log_end_offset, durable_offset,
                       unsynced_bytes, check_interval_ms int or nil,
                       [[base_offset, end_offset, size_bytes, largest_timestamp_ms, first_timestamp_ms,
                         roll_after_ms int or nil, deleted_earliest_ms int or nil, deleted_latest_ms int or nil,
                         rule or nil, kept_by [str], held_by int or nil]],
                       nil or [first_dirty_offset, first_uncleanable_offset, clean_bytes, dirty_bytes, dirty_ratio,
                               missing_bytes int or nil, due_latest_ms int or nil, waits_for [str], error or nil,
                               seconds float or nil, freed_bytes int or nil, old_enough_ms int or nil],
                       removable_segments, removable_bytes, nil or [log_dir, size_bytes] of a move's copy]]
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.topics.explain_topic import (
    ExplainedCompaction,
    ExplainedCopy,
    ExplainedPartition,
    ExplainedSegment,
    ExplainTopicRequest,
    ExplainTopicResponse,
    SettingValue,
)
from barnabas.protocol.native.fields import (
    INT32,
    INT64,
    array,
    error_code,
    field,
    integer,
    long_text,
    number,
    optional_text,
    plain,
    row,
    text,
)


def encode_request(request: ExplainTopicRequest) -> dict[str, Any]:
    """The body of a request."""
    return {"topic": request.topic, "partition": request.partition, "setting": request.setting}


def decode_request(body: dict[str, Any]) -> ExplainTopicRequest:
    """Raises DecodeError, naming the field."""
    partition = field(body, "partition", None)
    return ExplainTopicRequest(
        topic=text(field(body, "topic"), "topic"),
        partition=None if partition is None else integer(partition, "partition", INT32),
        setting=optional_text(field(body, "setting", None), "setting"),
    )


def encode_response(response: ExplainTopicResponse) -> dict[str, Any]:
    """The body of an answer."""
    return {
        "error": int(response.error),
        "message": response.message,
        "now_ms": response.now_ms,
        "settings": plain(response.settings),
        "layers": plain(response.layers),
        "partitions": plain(response.partitions),
    }


def decode_response(body: dict[str, Any]) -> ExplainTopicResponse:
    """Raises DecodeError, naming the field."""
    return ExplainTopicResponse(
        error=error_code(field(body, "error"), "error"),
        message=long_text(field(body, "message", None), "message"),
        now_ms=integer(field(body, "now_ms"), "now_ms", INT64),
        settings=[_setting(each) for each in array(field(body, "settings"), "settings")],
        partitions=[_partition(each) for each in array(field(body, "partitions"), "partitions")],
        layers=[_setting(each) for each in array(field(body, "layers"), "layers")],
    )


def _setting(entry: Any) -> SettingValue:
    name, value, source, origin, problem = row(entry, "settings[]", 5)
    return SettingValue(
        text(name, "name"),
        long_text(value, "value"),
        text(source, "source"),
        long_text(origin, "origin") or "",
        long_text(problem, "problem"),
    )


def _partition(entry: Any) -> ExplainedPartition:
    partition, log_dir, *numbers, interval, segments, compaction, removable, removable_bytes, copy = row(
        entry, "partitions[]", 13
    )
    start, watermark, end, durable, unsynced = (integer(each, "partitions[] number", INT64) for each in numbers)
    return ExplainedPartition(
        integer(partition, "partition", INT32),
        long_text(log_dir, "log_dir") or "",
        start,
        watermark,
        end,
        durable,
        unsynced,
        _optional(interval, "check_interval_ms"),
        [_segment(each) for each in array(segments, "segments")],
        None if compaction is None else _compaction(compaction),
        integer(removable, "removable_segments", INT64),
        integer(removable_bytes, "removable_bytes", INT64),
        None if copy is None else _copy(copy),
    )


def _copy(entry: Any) -> ExplainedCopy:
    log_dir, size = row(entry, "copy", 2)
    return ExplainedCopy(long_text(log_dir, "log_dir") or "", integer(size, "size_bytes", INT64))


def _compaction(entry: Any) -> ExplainedCompaction:
    dirty, uncleanable, clean_bytes, dirty_bytes, ratio, missing, due, waits_for, error, *of_rounds, old_enough = row(
        entry, "compaction", 12
    )
    seconds, freed = of_rounds
    return ExplainedCompaction(
        integer(dirty, "first_dirty_offset", INT64),
        integer(uncleanable, "first_uncleanable_offset", INT64),
        integer(clean_bytes, "clean_bytes", INT64),
        integer(dirty_bytes, "dirty_bytes", INT64),
        number(ratio, "dirty_ratio"),
        _optional(missing, "missing_bytes"),
        _optional(due, "due_latest_ms"),
        tuple(text(each, "waits_for[]") for each in array(waits_for, "waits_for")),
        long_text(error, "error"),
        None if seconds is None else number(seconds, "seconds"),
        _optional(freed, "freed_bytes"),
        _optional(old_enough, "old_enough_ms"),
    )


def _segment(entry: Any) -> ExplainedSegment:
    base, end, size, largest, first, *moments, rule, kept_by, held_by = row(entry, "segments[]", 11)
    roll, earliest, latest = (_optional(each, "segments[] moment") for each in moments)
    return ExplainedSegment(
        integer(base, "base_offset", INT64),
        integer(end, "end_offset", INT64),
        integer(size, "size_bytes", INT64),
        integer(largest, "largest_timestamp_ms", INT64),
        integer(first, "first_timestamp_ms", INT64),
        roll,
        earliest,
        latest,
        optional_text(rule, "rule"),
        tuple(text(each, "kept_by[]") for each in array(kept_by, "kept_by")),
        _optional(held_by, "held_by"),
    )


def _optional(value: Any, name: str) -> int | None:
    return None if value is None else integer(value, name, INT64)

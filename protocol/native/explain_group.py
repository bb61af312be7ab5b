"""explain_group (1003): a group's latest events, its members' deadlines, and what it has not read. Barnabas only.

request   group
response  error, message, now_ms, state, type, state_since_ms int or nil,
          members [[member_id, instance_id, client_id, client_host, session_timeout_ms, session_left_ms int or nil,
                    waits_for, wait_left_ms int or nil]],
          partitions [[topic, partition, committed, committed_ms, log_start_offset, high_watermark,
                       lag_bytes int or nil, next_timestamp_ms int or nil,
                       [[end_offset, earliest_ms int or nil, latest_ms int or nil, rule or nil]]]],
          events [[time_ms, kind, member_id, client_id, client_host, detail]], problems [str]
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.groups.explain_group import (
    Deletion,
    ExplainGroupRequest,
    ExplainGroupResponse,
    GroupEvent,
    MemberTiming,
    PartitionLag,
)
from barnabas.protocol.native.fields import (
    INT32,
    INT64,
    array,
    error_code,
    field,
    integer,
    long_text,
    optional_text,
    plain,
    row,
    text,
)


def encode_request(request: ExplainGroupRequest) -> dict[str, Any]:
    """The body of a request."""
    return {"group": request.group_id}


def decode_request(body: dict[str, Any]) -> ExplainGroupRequest:
    """Raises DecodeError, naming the field."""
    return ExplainGroupRequest(group_id=text(field(body, "group"), "group"))


def encode_response(response: ExplainGroupResponse) -> dict[str, Any]:
    """The body of an answer."""
    return {
        "error": int(response.error),
        "message": response.message,
        "now_ms": response.now_ms,
        "state": response.state,
        "type": response.group_type,
        "state_since_ms": response.state_since_ms,
        "members": plain(response.members),
        "partitions": plain(response.partitions),
        "events": plain(response.events),
        "problems": list(response.problems),
    }


def decode_response(body: dict[str, Any]) -> ExplainGroupResponse:
    """Raises DecodeError, naming the field."""
    return ExplainGroupResponse(
        error=error_code(field(body, "error"), "error"),
        message=long_text(field(body, "message", None), "message"),
        now_ms=integer(field(body, "now_ms"), "now_ms", INT64),
        state=text(field(body, "state"), "state"),
        group_type=text(field(body, "type"), "type"),
        state_since_ms=_optional(field(body, "state_since_ms"), "state_since_ms"),
        members=[_member(each) for each in array(field(body, "members"), "members")],
        partitions=[_partition(each) for each in array(field(body, "partitions"), "partitions")],
        events=[_event(each) for each in array(field(body, "events"), "events")],
        problems=[long_text(each, "problems[]") or "" for each in array(field(body, "problems", []), "problems")],
    )


def _member(entry: Any) -> MemberTiming:
    member_id, instance_id, client_id, host, timeout, left, waits_for, wait_left = row(entry, "members[]", 8)
    return MemberTiming(
        text(member_id, "member_id"),
        optional_text(instance_id, "instance_id"),
        text(client_id, "client_id"),
        text(host, "client_host"),
        integer(timeout, "session_timeout_ms", INT32),
        _optional(left, "session_left_ms"),
        text(waits_for, "waits_for"),
        _optional(wait_left, "wait_left_ms"),
    )


def _partition(entry: Any) -> PartitionLag:
    topic, partition, *numbers, lag_bytes, next_timestamp, deletions = row(entry, "partitions[]", 9)
    committed, committed_ms, start, end = (integer(each, "partitions[] number", INT64) for each in numbers)
    return PartitionLag(
        text(topic, "topic"),
        integer(partition, "partition", INT32),
        committed,
        committed_ms,
        start,
        end,
        _optional(lag_bytes, "lag_bytes"),
        _optional(next_timestamp, "next_timestamp_ms"),
        [_deletion(each) for each in array(deletions, "deletions")],
    )


def _deletion(entry: Any) -> Deletion:
    end_offset, earliest, latest, rule = row(entry, "deletions[]", 4)
    return Deletion(
        integer(end_offset, "end_offset", INT64),
        _optional(earliest, "earliest_ms"),
        _optional(latest, "latest_ms"),
        optional_text(rule, "rule"),
    )


def _event(entry: Any) -> GroupEvent:
    time_ms, kind, *texts = row(entry, "events[]", 6)
    member_id, client_id, host, detail = (text(each, "events[] text") for each in texts)
    return GroupEvent(integer(time_ms, "time_ms", INT64), text(kind, "kind"), member_id, client_id, host, detail)


def _optional(value: Any, name: str) -> int | None:
    return None if value is None else integer(value, name, INT64)

"""explain_start (1004): what the broker's last start found and did. Barnabas only.

request   no fields
response  error, message, began_ms, loaded_ms, ready_ms, booted_ms int or nil,
          directories [[path, had_clean_shutdown bool, last_change_ms int or nil, logs, seconds float]],
          recovered_logs, recovered_bytes,
          logs [[topic, partition, log_dir, seconds float, segments, size_bytes, dropped_segments, dropped_bytes]]
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.cluster.explain_start import (
    ExplainStartRequest,
    ExplainStartResponse,
    RecoveredLog,
    StartedDirectory,
)
from barnabas.protocol.native.fields import (
    INT32,
    INT64,
    array,
    boolean,
    error_code,
    field,
    integer,
    long_text,
    number,
    row,
    text,
)


def encode_request(_: ExplainStartRequest) -> dict[str, Any]:
    """The body of a request."""
    return {}


def decode_request(_: dict[str, Any]) -> ExplainStartRequest:
    """Return the request, which has no fields."""
    return ExplainStartRequest()


def encode_response(response: ExplainStartResponse) -> dict[str, Any]:
    """The body of an answer."""
    return {
        "error": int(response.error),
        "message": response.message,
        "began_ms": response.began_ms,
        "loaded_ms": response.loaded_ms,
        "ready_ms": response.ready_ms,
        "booted_ms": response.booted_ms,
        "directories": [list(each) for each in response.directories],
        "recovered_logs": response.recovered_logs,
        "recovered_bytes": response.recovered_bytes,
        "logs": [list(each) for each in response.logs],
    }


def decode_response(body: dict[str, Any]) -> ExplainStartResponse:
    """Raises DecodeError, naming the field."""
    return ExplainStartResponse(
        error_code(field(body, "error"), "error"),
        long_text(field(body, "message", None), "message"),
        _integer(body, "began_ms"),
        _integer(body, "loaded_ms"),
        _integer(body, "ready_ms"),
        _optional(field(body, "booted_ms"), "booted_ms"),
        [_directory(each) for each in array(field(body, "directories"), "directories")],
        _integer(body, "recovered_logs"),
        _integer(body, "recovered_bytes"),
        [_log(each) for each in array(field(body, "logs"), "logs")],
    )


def _directory(entry: Any) -> StartedDirectory:
    path, clean, changed, logs, seconds = row(entry, "directories[]", 5)
    return StartedDirectory(
        text(path, "path"),
        boolean(clean, "had_clean_shutdown"),
        _optional(changed, "last_change_ms"),
        integer(logs, "logs", INT64),
        number(seconds, "seconds"),
    )


def _log(entry: Any) -> RecoveredLog:
    topic, partition, log_dir, seconds, *counts = row(entry, "logs[]", 8)
    segments, size_bytes, dropped_segments, dropped_bytes = (integer(each, "logs[] number", INT64) for each in counts)
    return RecoveredLog(
        text(topic, "topic"),
        integer(partition, "partition", INT32),
        text(log_dir, "log_dir"),
        number(seconds, "seconds"),
        segments,
        size_bytes,
        dropped_segments,
        dropped_bytes,
    )


def _integer(body: dict[str, Any], name: str) -> int:
    return integer(field(body, name), name, INT64)


def _optional(value: Any, name: str) -> int | None:
    return None if value is None else integer(value, name, INT64)

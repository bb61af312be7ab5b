"""explain_start (1004): what the broker's last start found and did. Barnabas only.

request   client_metrics bool, optional
response  error, message, began_ms, loaded_ms, ready_ms, booted_ms int or nil,
          directories [[path, had_clean_shutdown bool, last_change_ms int or nil, logs, seconds float]],
          recovered_logs, recovered_bytes,
          logs [[topic, partition, log_dir, seconds float, segments, size_bytes, dropped_segments, dropped_bytes]],
          tasks [[name, runs, failures, last_seconds float, last_end_ms int or nil, next_ms int or nil]],
          latency_bounds_seconds [float], latencies [[api, errors, sum_seconds float, counts [int]]],
          client_metrics_total, client_metrics [[client_id, instance, metric, attributes, value float]]
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.cluster.explain_start import (
    ApiLatency,
    ClientMetric,
    ExplainStartRequest,
    ExplainStartResponse,
    RecoveredLog,
    StartedDirectory,
    TaskRuns,
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
    plain,
    row,
    text,
)


def encode_request(request: ExplainStartRequest) -> dict[str, Any]:
    """The body of a request."""
    return {"client_metrics": request.client_metrics}


def decode_request(body: dict[str, Any]) -> ExplainStartRequest:
    """Raises DecodeError, naming the field."""
    return ExplainStartRequest(client_metrics=boolean(field(body, "client_metrics", False), "client_metrics"))


def encode_response(response: ExplainStartResponse) -> dict[str, Any]:
    """The body of an answer."""
    return {
        "error": int(response.error),
        "message": response.message,
        "began_ms": response.began_ms,
        "loaded_ms": response.loaded_ms,
        "ready_ms": response.ready_ms,
        "booted_ms": response.booted_ms,
        "directories": plain(response.directories),
        "recovered_logs": response.recovered_logs,
        "recovered_bytes": response.recovered_bytes,
        "logs": plain(response.logs),
        "tasks": plain(response.tasks),
        "latency_bounds_seconds": list(response.latency_bounds_seconds),
        "latencies": plain(response.latencies),
        "client_metrics_total": response.client_metrics_total,
        "client_metrics": plain(response.client_metrics),
    }


def decode_response(body: dict[str, Any]) -> ExplainStartResponse:
    """Raises DecodeError, naming the field."""
    return ExplainStartResponse(
        error=error_code(field(body, "error"), "error"),
        message=long_text(field(body, "message", None), "message"),
        began_ms=_integer(body, "began_ms"),
        loaded_ms=_integer(body, "loaded_ms"),
        ready_ms=_integer(body, "ready_ms"),
        booted_ms=_optional(field(body, "booted_ms"), "booted_ms"),
        directories=[_directory(each) for each in array(field(body, "directories"), "directories")],
        recovered_logs=_integer(body, "recovered_logs"),
        recovered_bytes=_integer(body, "recovered_bytes"),
        logs=[_log(each) for each in array(field(body, "logs"), "logs")],
        tasks=[_task(each) for each in array(field(body, "tasks", ()), "tasks")],
        latency_bounds_seconds=[
            number(each, "latency_bounds_seconds[]")
            for each in array(field(body, "latency_bounds_seconds", ()), "latency_bounds_seconds")
        ],
        latencies=[_latency(each) for each in array(field(body, "latencies", ()), "latencies")],
        client_metrics_total=integer(field(body, "client_metrics_total", 0), "client_metrics_total", INT64),
        client_metrics=[_client_metric(each) for each in array(field(body, "client_metrics", []), "client_metrics")],
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


def _task(entry: Any) -> TaskRuns:
    name, runs, failures, seconds, last_end, following = row(entry, "tasks[]", 6)
    return TaskRuns(
        text(name, "name"),
        integer(runs, "runs", INT64),
        integer(failures, "failures", INT64),
        number(seconds, "last_seconds"),
        _optional(last_end, "last_end_ms"),
        _optional(following, "next_ms"),
    )


def _latency(entry: Any) -> ApiLatency:
    api, errors, seconds, counts = row(entry, "latencies[]", 4)
    return ApiLatency(
        text(api, "api"),
        integer(errors, "errors", INT64),
        number(seconds, "sum_seconds"),
        [integer(each, "counts[]", INT64) for each in array(counts, "counts")],
    )


def _client_metric(entry: Any) -> ClientMetric:
    *texts, value = row(entry, "client_metrics[]", 5)
    client_id, instance, metric, attributes = (long_text(each, "client_metrics[] text") or "" for each in texts)
    return ClientMetric(client_id, instance, metric, attributes, number(value, "value"))


def _integer(body: dict[str, Any], name: str) -> int:
    return integer(field(body, name), name, INT64)


def _optional(value: Any, name: str) -> int | None:
    return None if value is None else integer(value, name, INT64)

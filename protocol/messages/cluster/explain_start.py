"""explain_start (key 10003): what a start found and did, and what the broker has done since.

Times are ms since 1970.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import tagged
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Float64, Int32, Int64, Message, String


class StartedDirectory(Struct, kw_only=False):
    """A log directory. `last_change_ms`: before this start, None for a new directory. `seconds`: of its loading."""

    path: String
    had_clean_shutdown: Bool
    last_change_ms: Int64 | None = tagged(0, default=None)
    logs: Int64 = 0
    seconds: Float64 = 0.0


class RecoveredLog(Struct, kw_only=False):
    """A log of which segments were read through, or cut off."""

    topic: String
    partition: Int32
    log_dir: String
    seconds: Float64
    segments: Int64
    size_bytes: Int64
    dropped_segments: Int64
    dropped_bytes: Int64


class TaskRuns(Struct, kw_only=False):
    """The background tasks of one name. `last_end_ms` None: no run has ended; `next_ms` None: none is queued."""

    name: String
    runs: Int64
    failures: Int64
    last_seconds: Float64
    last_end_ms: Int64 | None = tagged(0, default=None)
    next_ms: Int64 | None = tagged(1, default=None)


class ApiLatency(Struct, kw_only=False):
    """The answered requests of one API since the start, by their time, long polls included."""

    api: String
    errors: Int64
    sum_seconds: Float64
    counts: Sequence[Int64]


class ClientMetric(Struct, kw_only=False):
    """The latest value of a client's metric, by the name and the attributes that the client gave it."""

    client_id: String
    instance: String
    metric: String
    attributes: String
    value: Float64


class ExplainStartResponse(Struct, flexible=0):
    """`booted_ms`: the machine's start, None if it is not known.

    `logs`: those that were cut first, then those that took longest, at most 100 of `recovered_logs`. `latencies`: of
    APIs that were asked for; `counts` are of requests up to each of `latency_bounds_seconds`, then of slower ones.
    `client_metrics`: if asked for, at most 5,000 of `client_metrics_total`.
    """

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    began_ms: Int64 = 0
    loaded_ms: Int64 = 0
    ready_ms: Int64 = 0
    booted_ms: Int64 | None = tagged(0, default=None)
    directories: Sequence[StartedDirectory] = ()
    recovered_logs: Int64 = 0
    recovered_bytes: Int64 = 0
    logs: Sequence[RecoveredLog] = ()
    tasks: Sequence[TaskRuns] = ()
    latency_bounds_seconds: Sequence[Float64] = ()
    latencies: Sequence[ApiLatency] = ()
    client_metrics_total: Int64 = 0
    client_metrics: Sequence[ClientMetric] = ()


class ExplainStartRequest(Request[ExplainStartResponse], api=ApiKey.EXPLAIN_START, flexible=0):
    """`client_metrics`: whether the answer also has the metrics that clients have pushed."""

    client_metrics: Bool = False

    def refused(self, code: ErrorCode, message: str) -> ExplainStartResponse:
        """The code and the message."""
        return ExplainStartResponse(error=code, message=message)

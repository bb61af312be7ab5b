"""explain_start (key 10003): what a start found and did, and what the broker has done since.

Times are ms since 1970.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class ExplainStartRequest:
    """`client_metrics`: whether the answer also has the metrics that clients have pushed."""

    client_metrics: bool = False


class StartedDirectory(NamedTuple):
    """A log directory. `last_change_ms`: before this start, None for a new directory. `seconds`: of its loading."""

    path: str
    had_clean_shutdown: bool
    last_change_ms: int | None
    logs: int
    seconds: float


class RecoveredLog(NamedTuple):
    """A log of which segments were read through, or cut off."""

    topic: str
    partition: int
    log_dir: str
    seconds: float
    segments: int
    size_bytes: int
    dropped_segments: int
    dropped_bytes: int


class TaskRuns(NamedTuple):
    """The background tasks of one name. `last_end_ms` None: no run has ended; `next_ms` None: none is queued."""

    name: str
    runs: int
    failures: int
    last_seconds: float
    last_end_ms: int | None
    next_ms: int | None


class ApiLatency(NamedTuple):
    """The answered requests of one API since the start, by their time, long polls included."""

    api: str
    errors: int
    sum_seconds: float
    counts: Sequence[int]


class ClientMetric(NamedTuple):
    """The latest value of a client's metric, by the name and the attributes that the client gave it."""

    client_id: str
    instance: str
    metric: str
    attributes: str
    value: float


@dataclass(slots=True)
class ExplainStartResponse:
    """`booted_ms`: the machine's start, None if it is not known.

    `logs`: those that were cut first, then those that took longest, at most 100 of `recovered_logs`. `latencies`: of
    APIs that were asked for; `counts` are of requests up to each of `latency_bounds_seconds`, then of slower ones.
    `client_metrics`: if asked for, at most 5,000 of `client_metrics_total`.
    """

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    began_ms: int = 0
    loaded_ms: int = 0
    ready_ms: int = 0
    booted_ms: int | None = None
    directories: Sequence[StartedDirectory] = ()
    recovered_logs: int = 0
    recovered_bytes: int = 0
    logs: Sequence[RecoveredLog] = ()
    tasks: Sequence[TaskRuns] = ()
    latency_bounds_seconds: Sequence[float] = ()
    latencies: Sequence[ApiLatency] = ()
    client_metrics_total: int = 0
    client_metrics: Sequence[ClientMetric] = ()

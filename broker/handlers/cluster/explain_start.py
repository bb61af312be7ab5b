"""explain_start (10003): what this broker's start found and did, and its work since.

Needs DESCRIBE on the cluster (CLUSTER_AUTHORIZATION_FAILED). Logs that were deleted since the start are not listed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.broker.probes import REQUEST_LATENCY_BOUNDS_SECONDS
from barnabas.broker.storage.explanation.boot_time import boot_time_ms
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.explain_start import (
    ApiLatency,
    ClientMetric,
    ExplainStartRequest,
    ExplainStartResponse,
    RecoveredLog,
    StartedDirectory,
    TaskRuns,
)
from barnabas.protocol.messages.security.resources import Operation

if TYPE_CHECKING:
    from barnabas.broker.client_metrics.manager import ClientMetrics
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe, BrokerProbes
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.served_logs import ServedLogs
    from barnabas.broker.storage.services.clock import Clock

MAX_LOGS: Final = 100
MAX_CLIENT_METRICS: Final = 5000

_NEVER_SECONDS: Final = 100 * 365 * 86_400
"""A task that is due later has a period of 2**63 - 1 ms, which means never."""


class ExplainStartHandler:
    """Serves explain_start."""

    def __init__(
        self,
        log_manager: ServedLogs[ReadableLog],
        probes: BrokerProbes,
        clock: Clock,
        has_client_metrics: bool,
        make_client_metrics: Callable[[], ClientMetrics],
        probe: ApiProbe,
    ) -> None:
        self._log_manager = log_manager
        self._probes = probes
        self._start = probes.start
        self._clock = clock
        self._has_client_metrics = has_client_metrics
        self._make_client_metrics = make_client_metrics
        self._probe = probe

    def __call__(self, session: Session, request: ExplainStartRequest) -> ExplainStartResponse:
        """Answer one request as the module docstring specifies."""
        try:
            ensure_cluster_allowed(session, Operation.DESCRIBE, ApiKey.EXPLAIN_START)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return ExplainStartResponse(error=error.code, message=error.message)
        recovered = self._recovered()
        recovered.sort(key=lambda each: (-each.dropped_bytes, -each.seconds))
        received = self._make_client_metrics().received if self._has_client_metrics else None
        return ExplainStartResponse(
            began_ms=self._start.began_ms,
            loaded_ms=self._start.loaded_ms,
            ready_ms=self._start.ready_ms,
            booted_ms=boot_time_ms(),
            directories=[
                StartedDirectory(
                    os.path.abspath(each.path),
                    each.had_clean_shutdown,
                    each.last_change_ms,
                    each.logs_total,
                    each.load_seconds,
                )
                for each in self._log_manager.directories
            ],
            recovered_logs=len(recovered),
            recovered_bytes=sum(each.size_bytes for each in recovered),
            logs=recovered[:MAX_LOGS],
            tasks=self._tasks(),
            latency_bounds_seconds=REQUEST_LATENCY_BOUNDS_SECONDS,
            latencies=[
                ApiLatency(name, sum(api.errors.values()), api.sum_seconds, tuple(api.counts))
                for name, api in sorted(self._probes.apis.items())
                if any(api.counts)
            ],
            client_metrics_total=0 if received is None else received.series_count,
            client_metrics=[]
            if received is None or not request.client_metrics
            else [ClientMetric(*each) for each in islice(received.series(), MAX_CLIENT_METRICS)],
        )

    def _tasks(self) -> list[TaskRuns]:
        now_ms, now = self._clock.wall_ms(), self._clock.monotonic()

        def wall_ms(moment: float | None) -> int | None:
            if moment is None or moment - now > _NEVER_SECONDS:
                return None
            return now_ms + round((moment - now) * 1000)

        return [
            TaskRuns(
                name,
                task.runs,
                task.failures,
                task.last_duration_seconds,
                wall_ms(task.last_end),
                wall_ms(task.next_due()),
            )
            for name, task in sorted(self._log_manager.scheduler.counters.copy().items())
        ]

    def _recovered(self) -> list[RecoveredLog]:
        found = []
        for topic_partition, progress in self._log_manager.load_progress.copy().items():
            log = self._log_manager.get(topic_partition)
            if log is None or not (progress.recovered_segments or progress.dropped_segments):
                continue
            found.append(
                RecoveredLog(
                    *topic_partition,
                    os.path.abspath(log.log_dir),
                    progress.seconds,
                    progress.recovered_segments,
                    progress.recovered_bytes,
                    progress.dropped_segments,
                    progress.dropped_bytes,
                )
            )
        return found

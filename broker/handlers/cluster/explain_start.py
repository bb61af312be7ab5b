"""explain_start (1004, native dialect): what this broker's start found and did.

Needs DESCRIBE on the cluster (CLUSTER_AUTHORIZATION_FAILED). Logs that were deleted since the start are not listed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.broker.storage.explanation.boot_time import boot_time_ms
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.explain_start import (
    ExplainStartRequest,
    ExplainStartResponse,
    RecoveredLog,
    StartedDirectory,
)
from barnabas.protocol.messages.security.resources import Operation

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe, StartProbe
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.served_logs import ServedLogs

MAX_LOGS: Final = 100


class ExplainStartHandler:
    """Serves explain_start."""

    def __init__(self, log_manager: ServedLogs[ReadableLog], start: StartProbe, probe: ApiProbe) -> None:
        self._log_manager = log_manager
        self._start = start
        self._probe = probe

    def __call__(self, session: Session, _: ExplainStartRequest) -> ExplainStartResponse:
        """Answer one request as the module docstring specifies."""
        try:
            ensure_cluster_allowed(session, Operation.DESCRIBE, ApiKey.EXPLAIN_START)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return ExplainStartResponse(error.code, error.message)
        recovered = self._recovered()
        recovered.sort(key=lambda each: (-each.dropped_bytes, -each.seconds))
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
        )

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

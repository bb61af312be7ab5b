"""What the metrics port may look at: the broker's phase and its log manager.

The daemon owns one `BrokerState`, passes it to `start_metrics_server` and sets its attributes as it starts and stops.
Each is replaced as a whole by one assignment, so the metrics thread needs no lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.groups.offsets.committed import CommittedOffsets
    from barnabas.broker.storage.flusher import GroupCommitFlusher
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.served_logs import ServedLogs

PHASE_STARTING: Final = "starting"
PHASE_LOADING: Final = "loading logs"
PHASE_SERVING: Final = "serving"
PHASE_DRAINING: Final = "draining"


class BrokerState:
    """`ready` decides what /healthz answers: 200 when it is true, else 503 with `phase` as the reason.

    `phase` is a text for people; the constants above are the usual ones. `log_manager` is None until it exists; it may
    be set before its logs are loaded, which is how a scrape shows the progress of loading. `flusher` likewise.
    `committed_offsets` stays None where groups' lag is not to be shown.
    """

    __slots__ = ("committed_offsets", "flusher", "log_manager", "phase", "ready")

    def __init__(self) -> None:
        self.phase: str = PHASE_STARTING
        self.ready: bool = False
        self.log_manager: ServedLogs[ReadableLog] | None = None
        self.flusher: GroupCommitFlusher | None = None
        self.committed_offsets: CommittedOffsets | None = None

    def serve(self) -> None:
        """Connections are accepted from now on."""
        self.phase = PHASE_SERVING
        self.ready = True

    def drain(self) -> None:
        """The broker is stopping: requests in flight are finished, new ones are not wanted."""
        self.ready = False
        self.phase = PHASE_DRAINING

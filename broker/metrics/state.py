"""State that the metrics port reads: phase, log manager, flusher, coordinators, mirrors, standby, committed offsets.

The node owns one `BrokerState`, passes it to `start_metrics_server` and sets its attributes as it starts and stops.
Each attribute changes by one assignment, so the metrics thread needs no lock.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.client_metrics.manager import ClientMetrics
    from barnabas.broker.groups.offsets.committed import CommittedOffsets
    from barnabas.broker.mirrors.status import MirrorStatuses
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.partitions.replication import Replication
    from barnabas.broker.security.tls.certificates import Certificates
    from barnabas.broker.share.partitions import SharePartitions
    from barnabas.broker.storage.group_commit import GroupCommitFlusher
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.served_logs import ServedLogs
    from barnabas.broker.transactions.coordinator import TransactionCoordinator


class Phase(StrEnum):
    """What the broker is doing; /healthz answers the text while it is not ready."""

    STARTING = "starting"
    LOADING = "loading logs"
    SERVING = "serving"
    DRAINING = "draining"


class BrokerState:
    """`ready` decides what /healthz answers: 200 when it is true, else 503 with `phase` as the reason.

    `log_manager` is None until it is created; it is set before its logs are loaded, so that a scrape shows the progress
    of loading. `transactions`, `share_partitions` and `mirrors` are None until then. `committed_offsets` needs
    metrics.group.lag.enable, else it is None.
    """

    __slots__ = (
        "certificates",
        "client_metrics",
        "committed_offsets",
        "flusher",
        "log_manager",
        "mirrors",
        "partitions",
        "phase",
        "ready",
        "replication",
        "share_partitions",
        "transactions",
    )

    def __init__(self) -> None:
        self.phase = Phase.STARTING
        self.ready: bool = False
        self.log_manager: ServedLogs[ReadableLog] | None = None
        self.certificates: Certificates | None = None
        self.client_metrics: ClientMetrics | None = None
        """None until a client asks for its subscription."""
        self.flusher: GroupCommitFlusher | None = None
        self.committed_offsets: CommittedOffsets | None = None
        self.share_partitions: SharePartitions | None = None
        self.transactions: TransactionCoordinator | None = None
        self.mirrors: MirrorStatuses | None = None
        self.partitions: PartitionRegistry | None = None
        self.replication: Replication | None = None

    @property
    def partitions_without_log(self) -> int:
        """Number of partitions that are not served, because their logs could not be created or are offline."""
        return 0 if self.partitions is None else self.partitions.without_log_count

    def serve(self) -> None:
        """Record that connections are accepted."""
        self.phase = Phase.SERVING
        self.ready = True

    def drain(self) -> None:
        """Record that the broker is stopping: current requests are finished, no new ones are accepted."""
        self.ready = False
        self.phase = Phase.DRAINING

"""Collector over quotas: how many requests exceeded one, and for how long their clients were to wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from prometheus_client.core import Metric

from barnabas.broker.metrics.family import Family
from barnabas.broker.probes import BrokerProbes

_LABELS: Final = ("quota",)


class QuotaCollector:
    """Throttled clients, by the key of the quota that they exceeded."""

    requests = Family(
        "barnabas_throttled_requests_total",
        "counter",
        "Requests above a quota; of `connection_creation_rate`, connections.",
        labels=_LABELS,
    )
    time = Family(
        "barnabas_throttle_seconds_total",
        "counter",
        "Sum of the times for which clients above a quota had to wait.",
        labels=_LABELS,
    )
    muted = Family("barnabas_connections_muted", "gauge", "Connections whose client waits for a quota now.")
    families: ClassVar = (requests, time, muted)

    def __init__(self, probes: BrokerProbes) -> None:
        self._quotas = probes.quotas
        self._connections = probes.connections

    def collect(self) -> Iterator[Metric]:
        """All families, from the counters as they are now."""
        for family, counts in (
            (self.requests, self._quotas.throttled_requests),
            (self.time, self._quotas.throttle_seconds),
        ):
            yield family.render(((kind,), value) for kind, value in sorted(counts.copy().items()))
        yield self.muted.render([((), self._connections.muted)])

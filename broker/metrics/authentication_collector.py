"""Collector over authentications: Kafka's successful and failed (re-)authentications, and expired connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from prometheus_client.core import Metric

from barnabas.broker.metrics.family import Family
from barnabas.broker.probes import BrokerProbes

_LABELS: Final = ("listener", "mechanism")


class AuthenticationCollector:
    """SASL authentications by listener and mechanism, `none` where the client chose none of the listener's."""

    succeeded = Family(
        "barnabas_authentications_total", "counter", "Clients authenticated by SASL, at first.", labels=_LABELS
    )
    failed = Family(
        "barnabas_authentications_failed_total",
        "counter",
        "Clients that SASL did not authenticate: wrong credentials, malformed requests, or too slow.",
        labels=_LABELS,
    )
    succeeded_again = Family(
        "barnabas_reauthentications_total",
        "counter",
        "Clients that authenticated again on the same connection.",
        labels=_LABELS,
    )
    failed_again = Family(
        "barnabas_reauthentications_failed_total",
        "counter",
        "Connections closed because their client failed to authenticate again.",
        labels=_LABELS,
    )
    expired = Family(
        "barnabas_sessions_expired_total",
        "counter",
        "Connections closed because their client went on after the end of its session.",
        labels=_LABELS,
    )
    families: ClassVar = (succeeded, failed, succeeded_again, failed_again, expired)

    def __init__(self, probes: BrokerProbes) -> None:
        self._probe = probes.authentications

    def collect(self) -> Iterator[Metric]:
        """All families, from the counters as they are now."""
        probe = self._probe
        for family, counts in (
            (self.succeeded, probe.succeeded),
            (self.failed, probe.failed),
            (self.succeeded_again, probe.succeeded_again),
            (self.failed_again, probe.failed_again),
            (self.expired, probe.expired),
        ):
            yield family.render(list(counts.items()))

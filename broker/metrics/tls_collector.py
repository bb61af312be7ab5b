"""Collector over TLS: handshakes of clients, and the certificates of listeners."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar

from prometheus_client.core import Metric

from barnabas.broker.metrics.family import Family, Row
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.probes import BrokerProbes

if TYPE_CHECKING:
    from barnabas.broker.security.tls.listener_context import ListenerContext


class TlsCollector:
    """TLS by listener: handshakes, and certificates. METRICS is the metrics port."""

    completed = Family(
        "barnabas_tls_handshakes_total", "counter", "Completed TLS handshakes of clients.", labels=("listener",)
    )
    failed = Family(
        "barnabas_tls_handshakes_failed_total",
        "counter",
        "Connections that ended before their TLS handshake, by reason (not_tls, timeout, bad_certificate, "
        "no_certificate, no_principal, disconnected, protocol).",
        labels=("listener", "error"),
    )
    expiry = Family(
        "barnabas_tls_certificate_expiry_seconds",
        "gauge",
        "Seconds until the first certificate of the listener's chain expires; negative afterwards.",
        labels=("listener",),
    )
    replaced = Family(
        "barnabas_tls_certificate_replacements_total",
        "counter",
        "New certificates that the listener began to use while the broker ran.",
        labels=("listener",),
    )
    refused = Family(
        "barnabas_tls_certificate_failures_total",
        "counter",
        "Changes of key stores, trust stores or their properties that could not be used; the log says why.",
        labels=("listener",),
    )
    families: ClassVar = (completed, failed, expiry, replaced, refused)

    def __init__(self, probes: BrokerProbes, state: BrokerState) -> None:
        self._probe = probes.tls
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """All families, from the counters as they are now."""
        contexts = {} if self._state.certificates is None else self._state.certificates.contexts()

        def rows(value: Callable[[ListenerContext], float | None]) -> Iterator[Row]:
            for listener, context in sorted(contexts.items()):
                found = value(context)
                if found is not None:
                    yield (listener,), found

        now = time.time()
        yield self.completed.render(((name,), count) for name, count in sorted(self._probe.completed.copy().items()))
        yield self.failed.render((labels, count) for labels, count in sorted(self._probe.failed.copy().items()))
        yield self.expiry.render(rows(lambda context: None if context.expires_at is None else context.expires_at - now))
        yield self.replaced.render(rows(lambda context: context.reloads))
        yield self.refused.render(rows(lambda context: context.failures))

"""Collector over the metrics that clients push (KIP-714), and over the pushes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from prometheus_client.core import Metric

from barnabas.broker.metrics.family import Family
from barnabas.broker.metrics.state import BrokerState


class ClientMetricsCollector:
    """Metrics that clients push, with client.metrics.enable=true."""

    values = Family(
        "barnabas_client_metric",
        "gauge",
        "Latest value of a client's metric; of a counter the sum since the client's first push. `client` is its client "
        "id, `metric` has the name that the client gave it.",
        labels=("client", "instance", "metric", "attributes"),
    )
    instances = Family("barnabas_client_metrics_instances", "gauge", "Clients that have asked for their subscription.")
    pushes = Family("barnabas_client_metrics_pushes_total", "counter", "Pushes that were accepted.")
    errors = Family(
        "barnabas_client_metrics_errors_total", "counter", "Questions and pushes that were refused.", labels=("error",)
    )
    dropped = Family(
        "barnabas_client_metrics_dropped_total",
        "counter",
        "Values that were dropped because there are too many series.",
    )
    families: ClassVar = (values, instances, pushes, errors, dropped)

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """All families; without rows until a client has asked for its subscription."""
        clients = self._state.client_metrics
        received = None if clients is None else clients.received
        series = () if received is None else received.series()
        errors = {} if received is None else received.errors.copy()
        yield self.values.render(
            ((each.client_id, each.instance, each.metric, each.attributes), each.value) for each in series
        )
        yield self.instances.render([((), 0 if clients is None else clients.instance_count)])
        yield self.pushes.render([((), 0 if received is None else received.pushes)])
        yield self.errors.render(((name,), count) for name, count in sorted(errors.items()))
        yield self.dropped.render([((), 0 if received is None else received.dropped_series)])

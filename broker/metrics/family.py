"""Declaration of a metric family: the source of the exposition and of docs/metrics.md.

Names have the prefix, the base unit and, for a counter, `_total`. Labels come from a short list, so that no client can
create unlimited label values: `topic` and `partition` exist in the metadata, a `group` has committed offsets (and is
shown only with metrics.group.lag.enable), a `listener`, a `mechanism` and a `mirror` are configured, and the values of
the others are fixed in code. The exception is what clients push with client.metrics.enable: clients choose the values,
and the number of series is bounded (client_metrics/received.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, Literal

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.utils import floatToGoString

from barnabas.broker.probes import LatencyHistogram

PREFIX: Final = "barnabas_"
LABELS: Final = frozenset(
    {
        "api",
        "topic",
        "partition",
        "group",
        "listener",
        "mechanism",
        "log_dir",
        "task",
        "error",
        "quota",
        "cause",
        "mirror",
        "state",
        "client",
        "instance",
        "metric",
        "attributes",
    }
)

Kind = Literal["counter", "gauge", "histogram", "summary"]
Row = tuple[Sequence[str], float]
"""Label values in the order of the family's labels, and the sample's value."""


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family. `name` is the one in the exposition; `bounds` are a histogram's buckets, in seconds."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = field(default=(), kw_only=True)
    bounds: tuple[float, ...] = field(default=(), kw_only=True)

    def render(self, rows: Iterable[Row]) -> Metric:
        """Return a counter or gauge with its samples."""
        kind = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        metric = kind(self.name, self.help, labels=self.labels)
        for labels, value in rows:
            metric.add_metric(labels, value)
        return metric

    def render_summary(self, count: int, total: float) -> Metric:
        """Return a summary without labels and quantiles: the count of observations and their sum."""
        return SummaryMetricFamily(self.name, self.help, count_value=count, sum_value=total)

    def render_histograms(self, rows: Iterable[tuple[Sequence[str], LatencyHistogram]]) -> Metric:
        """Return a histogram with its samples. Its count is the sum of its buckets, so the two always agree."""
        metric = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        bounds = [*map(floatToGoString, self.bounds), "+Inf"]
        for labels, histogram in rows:
            buckets = list(zip(bounds, accumulate(histogram.counts), strict=True))
            metric.add_metric(labels, buckets, histogram.sum_seconds)
        return metric

"""The metrics that clients pushed: the latest value of each series, for the metrics port. Bounded.

A series is a metric of one client with its attributes. Gauges and cumulative sums replace the earlier value; deltas,
which the broker asks for, add to it. Series of a client disappear with it. One thread (the event loop) writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from barnabas.broker.client_metrics.otlp import Point

MAX_SERIES: Final = 20_000
"""Of all clients together; further ones are counted in `dropped_series`."""

_Key = tuple[str, tuple[tuple[str, str], ...]]


class Series(NamedTuple):
    """One value of a client."""

    client_id: str
    instance: str
    metric: str
    attributes: str
    value: float


class ReceivedMetrics:
    """Values by client instance, and counters of pushes."""

    def __init__(self) -> None:
        self._values: dict[str, dict[_Key, float]] = {}
        self._client_ids: dict[str, str] = {}
        self._series = 0
        self.pushes = 0
        self.dropped_series = 0
        self.errors: dict[str, int] = {}
        """Refused requests by the lower-case name of their error."""

    def keep(self, instance: str, client_id: str, points: Iterable[Point]) -> None:
        """Take the points of one push."""
        self.pushes += 1
        values = self._values.setdefault(instance, {})
        self._client_ids[instance] = client_id
        for point in points:
            key = (point.name, point.attributes)
            earlier = values.get(key)
            if earlier is None:
                if self._series >= MAX_SERIES:
                    self.dropped_series += 1
                    continue
                self._series += 1
            values[key] = point.value + (earlier or 0.0) if point.is_delta else point.value

    def forget(self, instance: str) -> None:
        """Drop the series of a client."""
        self._series -= len(self._values.pop(instance, {}))
        self._client_ids.pop(instance, None)

    def count_error(self, name: str) -> None:
        """Count a refused request."""
        self.errors[name] = self.errors.get(name, 0) + 1

    @property
    def series_count(self) -> int:
        """Number of series of all clients."""
        return self._series

    def series(self) -> Iterator[Series]:
        """Yield every series. Safe on another thread: dicts are copied before they are iterated."""
        for instance, values in self._values.copy().items():
            client_id = self._client_ids.get(instance, "")
            for (metric, attributes), value in values.copy().items():
                yield Series(client_id, instance, metric, ",".join("=".join(each) for each in attributes), value)

"""Collector over mirrors: whether they copy, how far they lag behind their source, and what they have copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, Final

from prometheus_client.core import Metric

from barnabas.broker.metrics.family import Family, Row
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.mirrors.status import MirrorState, PartitionCopyState

_BY_PARTITION: Final = ("mirror", "topic", "partition")
_BY_TOPIC: Final = ("mirror", "topic")


class MirrorCollector:
    """Mirrors: topics that are copied from another cluster."""

    up = Family(
        "barnabas_mirror_up",
        "gauge",
        "1 while the mirror runs and reaches its source, else 0. A paused or promoted mirror is 0.",
        labels=("mirror",),
    )
    partitions = Family(
        "barnabas_mirror_partitions", "gauge", "Partitions of the mirror by state.", labels=("mirror", "state")
    )
    lag_records = Family(
        "barnabas_mirror_lag_records",
        "gauge",
        "Difference between the source's high watermark and the log end offset here.",
        labels=_BY_PARTITION,
    )
    lag_bytes = Family(
        "barnabas_mirror_lag_bytes",
        "gauge",
        "Lag in bytes, estimated from the mean size of the copy's records.",
        labels=_BY_PARTITION,
    )
    lag_seconds = Family(
        "barnabas_mirror_lag_seconds",
        "gauge",
        "Time since the copy last had every record of the source.",
        labels=_BY_PARTITION,
    )
    bytes_copied = Family(
        "barnabas_mirror_bytes_copied_total", "counter", "Bytes of batches copied from the source.", labels=_BY_TOPIC
    )
    errors = Family("barnabas_mirror_errors_total", "counter", "Failures to copy partitions.", labels=_BY_TOPIC)
    families: ClassVar = (up, partitions, lag_records, lag_bytes, lag_seconds, bytes_copied, errors)

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """All families, from the statuses as they are now."""
        mirrors = self._state.mirrors
        statuses = {} if mirrors is None else mirrors.statuses()
        up: list[Row] = []
        states: list[Row] = []
        records: list[Row] = []
        sizes: list[Row] = []
        seconds: list[Row] = []
        copied: Counter[tuple[str, str]] = Counter()
        errors: Counter[tuple[str, str]] = Counter()
        for name, status in statuses.items():
            up.append(((name,), status.state is MirrorState.RUNNING and status.error is None))
            counts = Counter(each.state for each in status.partitions)
            states += [((name, state.value), counts[state]) for state in PartitionCopyState]
            for each in status.partitions:
                labels = (name, each.topic, str(each.partition))
                if each.lag_records is not None:
                    records.append((labels, each.lag_records))
                if each.lag_bytes is not None:
                    sizes.append((labels, each.lag_bytes))
                if each.lag_seconds is not None:
                    seconds.append((labels, each.lag_seconds))
                copied[name, each.topic] += each.bytes_copied
                errors[name, each.topic] += each.errors
        yield self.up.render(up)
        yield self.partitions.render(states)
        yield self.lag_records.render(records)
        yield self.lag_bytes.render(sizes)
        yield self.lag_seconds.render(seconds)
        yield self.bytes_copied.render(copied.items())
        yield self.errors.render(errors.items())

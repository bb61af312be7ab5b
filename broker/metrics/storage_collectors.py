"""Collectors over the log engine's plain attributes. Nothing here takes a lock of the engine's or waits for a disk.

What the engine does not have yet (no log manager before the data directories are open) renders as families without
samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar

from prometheus_client.core import Metric

from barnabas.broker.metrics.family import Family
from barnabas.broker.metrics.state import BrokerState

if TYPE_CHECKING:
    from barnabas.broker.storage.log import PartitionLog

_PARTITION = ("topic", "partition")


class LogCollector:
    """Offsets and size of each partition's log."""

    size = Family("barnabas_log_size_bytes", "gauge", "Bytes of the log's segments.", labels=_PARTITION)
    segments = Family(
        "barnabas_log_segments", "gauge", "Segments of the log, the active one included.", labels=_PARTITION
    )
    start = Family("barnabas_log_start_offset", "gauge", "First offset that can be read.", labels=_PARTITION)
    end = Family("barnabas_log_end_offset", "gauge", "Offset that the next record will get.", labels=_PARTITION)
    high_watermark = Family(
        "barnabas_log_high_watermark", "gauge", "Offset up to which consumers may read.", labels=_PARTITION
    )
    recovery_point = Family(
        "barnabas_log_recovery_point",
        "gauge",
        "Offset up to which the log is known to be on the disk; what lies above it is checked after a crash.",
        labels=_PARTITION,
    )
    families: ClassVar = (size, segments, start, end, high_watermark, recovery_point)

    _values: ClassVar[tuple[tuple[Family, Callable[[PartitionLog], int]], ...]] = (
        (size, lambda log: log.size_bytes),
        (segments, lambda log: log.segment_count),
        (start, lambda log: log.log_start_offset),
        (end, lambda log: log.log_end_offset),
        (high_watermark, lambda log: log.high_watermark),
        (recovery_point, lambda log: log.recovery_point),
    )

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """All families, from the logs as they are now."""
        manager = self._state.log_manager
        logs = [] if manager is None else sorted((log.topic_partition, log) for log in manager.logs())
        labelled = [((tp.topic, str(tp.partition)), log) for tp, log in logs]
        for family, value in self._values:
            yield family.render((labels, value(log)) for labels, log in labelled)

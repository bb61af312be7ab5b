"""Statistics over all rounds of the cleaner since the broker's start, for the metrics."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.storage.cleaning.cleanable_part import CleanablePart
    from barnabas.broker.storage.cleaning.rewriting.cleaner_stats import CleanerStats
    from barnabas.protocol.topic_partition import TopicPartition

_NOTHING: Mapping[TopicPartition, CleanablePart] = MappingProxyType({})


class CleaningStatistics:
    """Counters, read without a lock and written under one, because there may be several cleaner threads."""

    def __init__(self, now_ms: int) -> None:
        self.rounds = 0
        """Completed rounds."""
        self.seconds_total = 0.0
        self.records_read = 0
        self.records_kept = 0
        self.bytes_read = 0
        self.bytes_kept = 0
        self.map_bytes_read = 0
        """Bytes read by the first passes, which fill the maps."""
        self.records_without_key = 0
        self.last_map_utilization = 0.0
        self.last_round_seconds = 0.0
        self.aborted = 0
        """Rounds that ended early because other work needed the partition, or at shutdown."""
        self.out_of_room = 0
        """Rounds that lacked disk space, descriptors or memory, to be retried."""
        self.failures = 0
        """Rounds that left their partition marked as uncleanable."""
        self.last_run_ms = now_ms
        """Wall clock when a thread last looked for a log to clean."""
        self.measured: Mapping[TopicPartition, CleanablePart] = _NOTHING
        """Measurement of all compacted logs at that time. Replaced as a whole."""
        self._lock = threading.Lock()

    def looked(self, now_ms: int, measured: Mapping[TopicPartition, CleanablePart]) -> None:
        """Store a thread's measurement of all compacted logs."""
        with self._lock:
            self.last_run_ms = now_ms
            self.measured = measured

    def round_ended(self, stats: CleanerStats, seconds: float) -> None:
        """Count a completed round."""
        with self._lock:
            self.rounds += 1
            self.seconds_total += seconds
            self.records_read += stats.messages_read
            self.records_kept += stats.messages_written
            self.bytes_read += stats.bytes_read
            self.bytes_kept += stats.bytes_written
            self.map_bytes_read += stats.map_bytes_read
            self.records_without_key += stats.invalid_messages_read
            self.last_map_utilization = stats.map_utilization
            self.last_round_seconds = seconds

    def round_aborted(self) -> None:
        """Count an aborted round."""
        with self._lock:
            self.aborted += 1

    def round_out_of_room(self) -> None:
        """Count a round that ran out of room."""
        with self._lock:
            self.out_of_room += 1

    def round_failed(self) -> None:
        """Count a round whose partition was marked as uncleanable."""
        with self._lock:
            self.failures += 1

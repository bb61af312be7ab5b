"""What all rounds of the cleaner did since the broker's start: plain numbers, which the metrics read as they are."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType

from barnabas.broker.storage.cleaning.cleanable_part import CleanablePart
from barnabas.broker.storage.cleaning.cleaner_stats import CleanerStats
from barnabas.protocol.topic_partition import TopicPartition

_NOTHING: Mapping[TopicPartition, CleanablePart] = MappingProxyType({})


class CleaningStatistics:
    """Read without a lock; written under one, because there may be several threads."""

    def __init__(self, now_ms: int) -> None:
        self.rounds = 0
        """Those that came to their end."""
        self.seconds_total = 0.0
        self.records_read = 0
        self.records_kept = 0
        self.bytes_read = 0
        self.bytes_kept = 0
        self.map_bytes_read = 0
        """Bytes of the first passes, which fill the maps."""
        self.records_without_key = 0
        self.last_map_utilization = 0.0
        self.last_round_seconds = 0.0
        self.aborted = 0
        """Rounds that ended early because somebody wanted the partition, or at shutdown."""
        self.out_of_room = 0
        """Rounds that ended early for want of room, descriptors or memory, to be tried again."""
        self.failures = 0
        """Rounds that left their partition marked as uncleanable."""
        self.last_run_ms = now_ms
        """When a thread last looked for a log to clean."""
        self.measured: Mapping[TopicPartition, CleanablePart] = _NOTHING
        """All compacted logs, as they were then. Replaced as a whole."""
        self._lock = threading.Lock()

    def looked(self, now_ms: int, measured: Mapping[TopicPartition, CleanablePart]) -> None:
        """A thread has looked at all compacted logs."""
        with self._lock:
            self.last_run_ms = now_ms
            self.measured = measured

    def round_ended(self, stats: CleanerStats, seconds: float) -> None:
        """A round came to its end."""
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
        """A round was ended by somebody who wanted the partition."""
        with self._lock:
            self.aborted += 1

    def round_out_of_room(self) -> None:
        """A round found no room."""
        with self._lock:
            self.out_of_room += 1

    def round_failed(self) -> None:
        """A round failed for good."""
        with self._lock:
            self.failures += 1

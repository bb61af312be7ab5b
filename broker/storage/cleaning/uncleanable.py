"""Marks of partitions whose cleaning failed and would fail again, per directory, with the reason.

A mark stays until the broker restarts or the partition is gone; it moves along with a partition to another directory.
Neither compaction nor the deletion of old segments touches a marked partition, so that an operator can inspect it.
Source: Kafka LogCleanerManager.uncleanablePartitions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from barnabas.protocol.topic_partition import TopicPartition


class UncleanablePartitions:
    """Marks by log directory and partition. Thread-safe; reading takes no lock."""

    def __init__(self) -> None:
        self._reasons: dict[tuple[Path, TopicPartition], str] = {}
        """Replaced as a whole, never modified."""
        self._lock = threading.Lock()

    def reason(self, log_dir: Path, topic_partition: TopicPartition) -> str | None:
        """Return why the partition is not cleaned, or None if it is not marked."""
        return self._reasons.get((log_dir, topic_partition))

    def all(self) -> dict[tuple[Path, TopicPartition], str]:
        """Return all marks with their reasons."""
        return self._reasons

    def mark(self, log_dir: Path, topic_partition: TopicPartition, reason: str) -> None:
        """Mark a partition."""
        with self._lock:
            self._reasons = {**self._reasons, (log_dir, topic_partition): reason}

    def move(self, topic_partition: TopicPartition, source: Path, destination: Path) -> None:
        """Move a mark along with the partition's log."""
        with self._lock:
            reason = self._reasons.get((source, topic_partition))
            if reason is not None:
                others = {key: text for key, text in self._reasons.items() if key != (source, topic_partition)}
                self._reasons = {**others, (destination, topic_partition): reason}

    def remove(self, log_dir: Path, topic_partition: TopicPartition) -> None:
        """Remove the mark of a log that is gone: it must not apply to a new one of the same name."""
        self.keep_only(lambda *key: key != (log_dir, topic_partition))

    def keep_only(self, is_there: Callable[[Path, TopicPartition], bool]) -> None:
        """Remove marks for which `is_there(log_dir, topic_partition)` is false."""
        if not self._reasons:
            return
        with self._lock:
            self._reasons = {key: text for key, text in self._reasons.items() if is_there(*key)}

"""Partitions whose cleaning has failed for a reason that trying again would not change, per directory, with the reason.

They stay so until the broker starts again, or until the partition is gone; one that moves to another directory takes
its mark along. Neither rounds nor the deletion of old segments touch them: somebody should look at them as they are.
Source: Kafka LogCleanerManager.uncleanablePartitions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from barnabas.protocol.topic_partition import TopicPartition


class UncleanablePartitions:
    """The marks. Thread-safe; reading takes no lock."""

    def __init__(self) -> None:
        self._reasons: dict[tuple[Path, TopicPartition], str] = {}
        """Replaced as a whole."""
        self._lock = threading.Lock()

    def reason(self, log_dir: Path, topic_partition: TopicPartition) -> str | None:
        """Why the partition is not cleaned, None when it is."""
        return self._reasons.get((log_dir, topic_partition))

    def all(self) -> dict[tuple[Path, TopicPartition], str]:
        """All marks at this moment."""
        return self._reasons

    def mark(self, log_dir: Path, topic_partition: TopicPartition, reason: str) -> None:
        """The partition is not cleaned any more."""
        with self._lock:
            self._reasons = {**self._reasons, (log_dir, topic_partition): reason}

    def move(self, topic_partition: TopicPartition, source: Path, destination: Path) -> None:
        """The partition's log is in another directory now."""
        with self._lock:
            reason = self._reasons.get((source, topic_partition))
            if reason is not None:
                others = {key: text for key, text in self._reasons.items() if key != (source, topic_partition)}
                self._reasons = {**others, (destination, topic_partition): reason}

    def remove(self, log_dir: Path, topic_partition: TopicPartition) -> None:
        """The log is gone: one of the same name that is made next has nothing to do with it."""
        self.keep_only(lambda *key: key != (log_dir, topic_partition))

    def keep_only(self, is_there: Callable[[Path, TopicPartition], bool]) -> None:
        """Forget partitions that have no log in that directory any more."""
        if not self._reasons:
            return
        with self._lock:
            self._reasons = {key: text for key, text in self._reasons.items() if is_there(*key)}

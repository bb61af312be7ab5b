"""cleaner-offset-checkpoint of every data directory: per partition the offset below which its log is clean.

Read once at start, kept in memory, and written as a whole at every change, that is, once per round. Each write drops
entries of partitions without a log, as in Kafka. An unreadable file is set aside and counts as empty: all logs are
compacted once more, and nothing is lost.
Source: Kafka LogCleanerManager.updateCheckpoints, alterCheckpointDir, maybeTruncateCheckpoint.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from barnabas.broker.storage.files.checkpoint_file import CLEANER_CHECKPOINT, OffsetCheckpointFile
from barnabas.broker.storage.services.log_dir_failure import LogDirFailures, is_shortage
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class CleanerCheckpoints:
    """Cleaner checkpoints of a broker's directories. Thread-safe; a lock is held while a file is written."""

    def __init__(self, failures: LogDirFailures, is_known: Callable[[TopicPartition], bool]) -> None:
        """`is_known` returns whether a partition still has a log."""
        self._failures = failures
        self._is_known = is_known
        self._files: dict[Path, OffsetCheckpointFile] = {}
        self._offsets: dict[Path, dict[TopicPartition, int]] = {}
        self._lock = threading.Lock()

    def open(self, log_dirs: Iterable[Path]) -> None:
        """Read the files of these directories. A disk error takes that directory offline."""
        for log_dir in log_dirs:
            file = OffsetCheckpointFile(log_dir / CLEANER_CHECKPOINT)
            try:
                offsets = file.read_or_set_aside("all of its compacted logs' records count as dirty")
            except OSError as error:
                self._failures.report(log_dir, f"cannot read {file.path}", error)
                continue
            with self._lock:
                self._files[log_dir] = file
                self._offsets[log_dir] = offsets

    def get(self, log_dir: Path, topic_partition: TopicPartition) -> int | None:
        """Return a partition's clean offset in that directory, or None."""
        return self._offsets.get(log_dir, {}).get(topic_partition)

    def set(self, log_dir: Path, topic_partition: TopicPartition, offset: int) -> None:
        """Set the offset below which the partition's log is clean."""
        with self._lock:
            if log_dir in self._offsets:
                self._write(log_dir, {**self._offsets[log_dir], topic_partition: offset})

    def remove(self, log_dir: Path, topic_partition: TopicPartition) -> None:
        """Remove the entry of a partition whose log is gone from that directory."""
        with self._lock:
            if topic_partition in self._offsets.get(log_dir, {}):
                self._write(log_dir, _without(self._offsets[log_dir], topic_partition))

    def move(self, topic_partition: TopicPartition, source: Path, destination: Path) -> None:
        """Move a partition's entry to another directory; without an entry nothing changes."""
        with self._lock:
            offset = self._offsets.get(source, {}).get(topic_partition)
            if offset is None:
                return
            self._write(source, _without(self._offsets[source], topic_partition))
            if destination in self._offsets:
                self._write(destination, {**self._offsets[destination], topic_partition: offset})

    def truncate(self, log_dir: Path, topic_partition: TopicPartition, offset: int) -> None:
        """Lower a clean offset above the log's new end `offset` to that."""
        with self._lock:
            before = self._offsets.get(log_dir, {})
            if before.get(topic_partition, offset) > offset:
                self._write(log_dir, {**before, topic_partition: offset})

    def forget(self, log_dir: Path) -> None:
        """Stop reading and writing the file of a failed directory."""
        with self._lock:
            self._files.pop(log_dir, None)
            self._offsets.pop(log_dir, None)

    def _write(self, log_dir: Path, offsets: dict[TopicPartition, int]) -> None:
        """Replace a directory's entries, in memory and on disk. The lock is held."""
        known = {each: offset for each, offset in offsets.items() if self._is_known(each)}
        self._offsets[log_dir] = known
        file = self._files[log_dir]
        try:
            file.write(known)
        except OSError as error:
            if is_shortage(error):
                # The next round writes it; after a crash before that, this part is compacted once more.
                logger.warning("checkpoint %s is postponed: %s", file.path, error)
            else:
                self._failures.report(log_dir, f"cannot write {file.path}", error)


def _without(offsets: dict[TopicPartition, int], topic_partition: TopicPartition) -> dict[TopicPartition, int]:
    return {each: offset for each, offset in offsets.items() if each != topic_partition}

"""One data directory (`log.dirs` may have several): its lock, clean-shutdown marker and checkpoints.

A missing directory is created. Opening it writes a small probe file, so that a full or read-only disk is reported at
start and not by the first producer. Source: Kafka LogManager.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

from barnabas.broker.storage.directories.lock import DirectoryLock
from barnabas.broker.storage.files.checkpoint_file import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    OffsetCheckpointFile,
)
from barnabas.broker.storage.files.clean_shutdown import CleanShutdownMarker
from barnabas.broker.storage.files.durable_files import sync_directory, write_all
from barnabas.broker.storage.files.errors import StartupStorageError
from barnabas.broker.storage.files.partition_directory import (
    IGNORED_DIRECTORIES,
    ParsedDirectoryName,
    parse_directory_name,
)
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_PROBE_FILE = ".barnabas-probe"
_PROBE_BYTES = 4096


class DataDirectory:
    """A data directory and its files other than the logs. The counters are for the metrics."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.had_clean_shutdown = False
        self.last_change_ms: int | None = None
        """When an entry of the directory was last added or removed before `open`, as each start does; None: it is new.

        If the machine was started after that, it was not this process' last run that ended by itself."""
        self.logs_total = 0
        """Number of logs found at start."""
        self.logs_loaded = 0
        self.load_seconds = 0.0
        self.is_loaded = False
        """Whether every log was loaded; without that, a stop is not marked as clean."""
        self.recovery_points = OffsetCheckpointFile(path / RECOVERY_POINT_CHECKPOINT)
        self.log_start_offsets = OffsetCheckpointFile(path / LOG_START_OFFSET_CHECKPOINT)
        self.high_watermarks = OffsetCheckpointFile(path / HIGH_WATERMARK_CHECKPOINT)
        self._marker = CleanShutdownMarker(path)
        self._lock = DirectoryLock(path)
        self._created: tuple[Path, ...] = ()
        """Directories that `open` created, the innermost first."""

    def open(self) -> None:
        """Create, probe and lock the directory. Raises OSError, StartupStorageError if another broker uses it."""
        if not self.path.exists():
            logger.info("log directory not found, creating it: %s", self.path)
            self._created = (self.path, *takewhile(lambda parent: not parent.exists(), self.path.parents))
            self.path.mkdir(parents=True)
            sync_directory(self.path.parent)
        else:
            self.last_change_ms = os.stat(self.path).st_mtime_ns // 1_000_000
        os.listdir(self.path)  # a plain file or an unreadable directory fails here
        self._probe()
        self._lock.acquire()

    def take_clean_marker(self) -> None:
        """Remove the clean-shutdown marker, and note whether it was there. Raises OSError."""
        self.had_clean_shutdown = self._marker.take()

    def write_clean_marker(self, broker_epoch: int) -> None:
        """Mark this stop as clean. Raises OSError."""
        self._marker.write(broker_epoch)

    def unlock(self, *, refused: bool = False) -> None:
        """Release the directory; after a `refused` start leave it as it was found, removing what `open` created."""
        self._lock.release(refused=refused)
        if not refused:
            return
        with contextlib.suppress(OSError):  # not empty: another program has written into it
            for path in self._created:
                path.rmdir()

    def partition_directories(self) -> list[tuple[Path, ParsedDirectoryName]]:
        """List the partition directories of all kinds. Raises StartupStorageError for any other directory, OSError."""
        found = []
        with os.scandir(self.path) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if not entry.is_dir() or entry.name in IGNORED_DIRECTORIES:
                    continue
                parsed = parse_directory_name(entry.name)
                if parsed is None:
                    raise StartupStorageError(
                        entry.path,
                        "a data directory may contain partitions only, and this is not named <topic>-<partition>",
                    )
                found.append((Path(entry.path), parsed))
        return found

    def read_checkpoints(self) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
        """Return recovery points and log start offsets; an unreadable file is set aside. Raises OSError."""
        return (
            self.recovery_points.read_or_set_aside("all logs are recovered from their start"),
            self.log_start_offsets.read_or_set_aside("logs begin with their first segments"),
        )

    def _probe(self) -> None:
        path = self.path / _PROBE_FILE
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            write_all(descriptor, bytes(_PROBE_BYTES))
        finally:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                os.unlink(path)

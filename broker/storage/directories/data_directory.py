"""One data directory (`log.dirs` names several): its lock, its clean-shutdown marker, its checkpoints.

It is made if it is missing, and tried with a small file, so that a full or read-only disk is said at start and not by
the first producer. Source: Kafka LogManager.
"""

from __future__ import annotations

import contextlib
import errno
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
from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.files.errors import StartupStorageError
from barnabas.broker.storage.files.partition_directory import ParsedDirectoryName, parse_directory_name
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_PROBE_FILE = ".barnabas-probe"
_PROBE_BYTES = 4096
IGNORED_DIRECTORIES = frozenset({"lost+found", "remote-log-index-cache"})


class DataDirectory:
    """A data directory and what is kept in it beside the logs. The counters are for the metrics."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.had_clean_shutdown = False
        self.logs_total = 0
        """Logs found at start."""
        self.logs_loaded = 0
        self.load_seconds = 0.0
        self.is_loaded = False
        """Every log was loaded, so a clean stop may be marked."""
        self.recovery_points = OffsetCheckpointFile(path / RECOVERY_POINT_CHECKPOINT)
        self.log_start_offsets = OffsetCheckpointFile(path / LOG_START_OFFSET_CHECKPOINT)
        self.high_watermarks = OffsetCheckpointFile(path / HIGH_WATERMARK_CHECKPOINT)
        self._marker = CleanShutdownMarker(path)
        self._lock = DirectoryLock(path)
        self._made: tuple[Path, ...] = ()
        """What `open` made, the innermost first."""

    def open(self) -> None:
        """Make the directory, try it and lock it. Raises OSError, StartupStorageError if another broker has it."""
        if not self.path.exists():
            logger.info("log directory not found, creating it: %s", self.path)
            self._made = (self.path, *takewhile(lambda parent: not parent.exists(), self.path.parents))
            self.path.mkdir(parents=True)
            sync_directory(self.path.parent)
        os.listdir(self.path)  # a plain file or an unreadable directory fails here
        self._probe()
        self._lock.acquire()

    def take_clean_marker(self) -> None:
        """Learn whether the last stop was clean; from now on a crash is unclean. Raises OSError."""
        self.had_clean_shutdown = self._marker.take()

    def write_clean_marker(self, broker_epoch: int) -> None:
        """Say that this stop was clean. Raises OSError."""
        self._marker.write(broker_epoch)

    def unlock(self, *, refused: bool = False) -> None:
        """Let another broker have the directory. After a start that was `refused` it is as it was found, or gone."""
        self._lock.release(refused=refused)
        if not refused:
            return
        with contextlib.suppress(OSError):  # something was written into it
            for path in self._made:
                path.rmdir()

    def partition_directories(self) -> list[tuple[Path, ParsedDirectoryName]]:
        """The partitions' directories of any kind. Raises StartupStorageError for a foreign directory, OSError."""
        found = []
        with os.scandir(self.path) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if not entry.is_dir() or entry.name in IGNORED_DIRECTORIES:
                    continue
                parsed = parse_directory_name(entry.name)
                if parsed is None:
                    raise StartupStorageError(
                        entry.path, "a data directory holds partitions only, and this is not named <topic>-<partition>"
                    )
                found.append((Path(entry.path), parsed))
        return found

    def read_checkpoints(self) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
        """Recovery points and log start offsets; an unreadable file is set aside, as an empty one. Raises OSError."""
        return (
            self.recovery_points.read_or_set_aside("all logs are recovered from their start"),
            self.log_start_offsets.read_or_set_aside("logs begin with their first segments"),
        )

    def _probe(self) -> None:
        path = self.path / _PROBE_FILE
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if os.write(descriptor, bytes(_PROBE_BYTES)) < _PROBE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))
        finally:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                os.unlink(path)

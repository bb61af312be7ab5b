"""LogCore: the state that all parts of one log share (segments, offsets, epochs, producers, lock, config).

The parts (reader, appender, roller, flusher, retainer, ...) hold one core each and keep no state of their own that
another part needs. A part that changes the core holds `core.lock`; its docstring says where the caller must hold it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from barnabas.broker.storage.files.durable_files import OpenDirectory
from barnabas.broker.storage.log.loading.loader import LoadedLog
from barnabas.broker.storage.log.read import LogEnd
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.broker.storage.services.services import StorageServices
from barnabas.config.log_config import LogConfig
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

STRETCH_SEGMENTS = 32
"""Segments whose snapshots are renamed while the lock is held once. A log of thousands of small segments would keep
appends, and with them the event loop, waiting for seconds."""

_QUIET_SECONDS = 30.0


class LogCore:
    """The shared state of one log. Any thread may read an attribute without the lock."""

    __slots__ = (
        "_quiet_until",
        "active",
        "config",
        "directory",
        "durable_offset",
        "end",
        "epochs",
        "first_unstable_offset",
        "last_flush_ms",
        "latest_epoch",
        "lock",
        "log_dir",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovery_point",
        "replicated_end",
        "segments",
        "services",
        "state",
        "topic_id",
        "topic_partition",
        "truncations",
        "unsynced_sealed",
        "wall_ms",
    )

    def __init__(
        self,
        loaded: LoadedLog,
        *,
        topic_partition: TopicPartition,
        topic_id: bytes | None,
        directory: Path,
        config: LogConfig,
        services: StorageServices,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.directory = directory
        self.log_dir = directory.parent
        self.config = config
        self.services = services
        self.wall_ms = services.clock.wall_ms
        self.state = LogState.ONLINE
        self.lock = threading.Lock()
        self.segments = loaded.segments
        self.active = loaded.segments.last
        self.epochs = loaded.leader_epochs
        self.latest_epoch = loaded.leader_epochs.latest_epoch
        self.producers = loaded.producer_state
        self.first_unstable_offset = loaded.producer_state.first_unstable_offset
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.replicated_end: int | None = None
        """Batches below this are at the standby as well; None unless the high watermark waits for one."""
        self.last_flush_ms = services.clock.wall_ms()
        self.durable_offset = loaded.recovery_point
        """Batches below this are synced."""
        self.truncations = 0
        """Number of truncations. A flush compares it: a sync before a truncation does not cover what is appended after
        it at the same offsets."""
        self.unsynced_sealed: list[LogSegment] = [
            segment
            for segment in loaded.segments.view.overlapping(loaded.recovery_point, loaded.log_end_offset)
            if segment is not self.active
        ]
        """Sealed segments whose bytes or indexes may not be on disk yet. Changed under the lock."""
        size = self.active.size_bytes
        self.end = LogEnd(self.log_end_offset, self.active, size, -1, size)
        """The end of the log as readers see it; each append and roll replaces it as a whole."""
        self._quiet_until = 0.0

    def __repr__(self) -> str:
        return f"PartitionLog({self.topic_partition}, {self.log_start_offset}..{self.log_end_offset}, {self.directory})"

    @property
    def is_online(self) -> bool:
        """Whether the log can be used."""
        return self.state is LogState.ONLINE

    @property
    def high_watermark(self) -> int:
        """The end of what consumers see: the log end offset, or what the standby has where that is required."""
        replicated_end = self.replicated_end
        return self.log_end_offset if replicated_end is None else min(replicated_end, self.log_end_offset)

    def ensure_online(self) -> None:
        """Raise BrokerError KAFKA_STORAGE_ERROR unless the log is online."""
        if self.state is not LogState.ONLINE:
            self.refuse_state()

    def refuse_state(self) -> NoReturn:
        """Raise BrokerError KAFKA_STORAGE_ERROR for a log that is not online."""
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic_partition} is {self.state.value}")

    def refuse_append(self, error: OSError) -> NoReturn:
        """Raise BrokerError KAFKA_STORAGE_ERROR for a failed append; a failed disk takes the log directory offline."""
        if not is_shortage(error):
            self.fail("cannot append", error)
        elif self.services.clock.monotonic() >= self._quiet_until:
            # A full disk refuses thousands of appends in a second: one line in a while is enough.
            self._quiet_until = self.services.clock.monotonic() + _QUIET_SECONDS
            logger.warning("appends to %s are refused until there is room: %s", self.topic_partition, error)
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic_partition}: cannot append: {error}") from error

    def fail(self, what: str, error: OSError) -> None:
        """Take the log offline immediately because of a failed disk, and its log directory with it.

        The other logs of the directory follow when the failure handler runs.
        """
        if self.state is LogState.ONLINE:
            self.state = LogState.OFFLINE
        self.services.failures.report(self.log_dir, f"{what} ({self.topic_partition})", error)

    def go_offline(self) -> None:
        """Close all files without writing anything: the disk has failed, or the log is out of service."""
        with self.lock:
            if self.state is LogState.CLOSED:
                return
            self.state = LogState.OFFLINE
            self.release_files()

    def release_files(self) -> None:
        """Close the files of all segments; slices that are being sent keep theirs open."""
        for segment in self.segments:
            segment.release()

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Record durably that leader `epoch` writes from `start_offset` on. The lock is held. Raises OSError."""
        self.epochs.assign(epoch, start_offset)
        self.latest_epoch = self.epochs.latest_epoch

    def mark_snapshots_deleted(self, segments: Iterable[LogSegment]) -> list[Path]:
        """Rename the producer snapshots at these segments' base offsets for deletion; return their new paths."""
        paths = (self.producers.mark_snapshot_deleted(segment.base_offset) for segment in segments)
        return [path for path in paths if path is not None]

    def rename(self, name: str) -> None:
        """Rename the log's directory within its log directory; open files stay open.

        The lock is held. Raises OSError; after a shortage nothing has changed.
        """
        target = self.log_dir / name
        with OpenDirectory(self.log_dir) as log_dir:
            os.rename(self.directory, target)
            self.directory = target
            for segment in self.segments:
                segment.move_to(os.fspath(target))
            self.epochs.move_to(target)
            self.producers.move_to(target)
            log_dir.sync()

    def exchange_files(self, other: LogCore) -> None:
        """Exchange directory and files with a log that holds the same records; epochs and producers stay.

        Both locks are held. Readers take `end` before the segments, so the segments are exchanged first.
        """
        self.log_dir, other.log_dir = other.log_dir, self.log_dir
        self.directory, other.directory = other.directory, self.directory
        self.epochs.move_to(self.directory)
        other.epochs.move_to(other.directory)
        self.producers.exchange_files(other.producers)
        self.segments, other.segments = other.segments, self.segments
        self.active, other.active = other.active, self.active
        self.unsynced_sealed, other.unsynced_sealed = other.unsynced_sealed, self.unsynced_sealed
        self.end, other.end = other.end, self.end
        self.durable_offset, other.durable_offset = other.durable_offset, self.durable_offset
        self.recovery_point, other.recovery_point = other.recovery_point, self.recovery_point
        self.recovery_point = max(self.recovery_point, self.log_start_offset)

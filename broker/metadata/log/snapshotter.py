"""Snapshotter: writes snapshots of the metadata while the broker runs, and trims the log.

A snapshot is due when metadata.log.max.record.bytes.between.snapshots were appended since the last one, or
metadata.log.max.snapshot.interval.ms after the first change since then. It is cut between two changes, and the order on
disk makes it safe: a new segment begins at the snapshot's end offset; the complete snapshot is synced; then old
snapshots are deleted, and the segments before the oldest kept one. A crash at any point leaves a log that replays to
the same image, in Kafka too. A failure changes nothing and is retried with the next change. Source: Kafka's
SnapshotGenerator.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.log.snapshot_file import PART_SUFFIX, RaftState, write_snapshot
from barnabas.broker.metadata.log.snapshots import SnapshotId, list_snapshots, read_header_timestamp, snapshot_path
from barnabas.broker.metadata.log.trimming import KeptSnapshot, snapshots_to_drop
from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.protocol.errors import BrokerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.log.metadata_log import MetadataLog
    from barnabas.broker.metadata.view import ImageListener
    from barnabas.broker.storage.services.clock import Clock
    from barnabas.broker.storage.services.scheduler import ScheduledTask, Scheduler
    from barnabas.config import BrokerConfig

METADATA_SNAPSHOT_TASK = "metadata-snapshot"

logger = logging.getLogger(__name__)


class SnapshotSource(Protocol):
    """What the snapshotter needs of the metadata: MetadataWriter, or a standby's MetadataCopy."""

    def add_listener(self, listener: ImageListener) -> None:
        """Call `listener` after each change from now on."""

    def between_changes(self, work: Callable[[], None]) -> None:
        """Do something while no change is made, and none tells its listeners."""
        ...

    def cut(self, begin_segment: Callable[[], None]) -> tuple[MetadataImage, int, int]:
        """Begin a segment between two changes; return the image at its start, the epoch and the last timestamp."""
        ...


class Snapshotter:
    """Snapshots of one metadata log. Call `start` once the broker serves; the scheduler's end stops it."""

    def __init__(
        self,
        log: MetadataLog,
        writer: SnapshotSource,
        *,
        raft: RaftState,
        unsnapped_bytes: int,
        config: BrokerConfig,
        clock: Clock,
    ) -> None:
        """`unsnapped_bytes`: size of the log after the newest snapshot."""
        self._log = log
        self._writer = writer
        self._raft = raft
        self._clock = clock
        self._max_bytes = config.get_int("metadata.log.max.record.bytes.between.snapshots")
        self._interval_ms = config.get_int("metadata.log.max.snapshot.interval.ms")
        self._retention_bytes = config.get_int("metadata.max.retention.bytes")
        self._retention_ms = config.get_int("metadata.max.retention.ms")
        self._unsnapped_at_open = unsnapped_bytes
        self._bytes_at_last = self._bytes_at_cut = log.size_bytes - unsnapped_bytes
        self._scheduler: Scheduler | None = None
        self._timer: ScheduledTask | None = None
        self._is_due = False
        self._taking = threading.Lock()
        self._is_stopped = False

    def start(self, scheduler: Scheduler) -> None:
        """Follow the log from now on."""
        self._scheduler = scheduler
        self._writer.add_listener(self._changed)
        if self._unsnapped_at_open:
            self._plan()

    def take(self) -> bool:
        """Write a snapshot of the current image and trim the log. Return False without news or after an error.

        Runs on a thread of the scheduler, never concurrently.
        """
        with self._taking:
            return not self._is_stopped and self._take()

    def stop(self) -> None:
        """Take no more snapshots; a run in progress ends first."""
        if self._timer is not None:
            self._timer.cancel()
        with self._taking:
            self._is_stopped = True

    def _take(self) -> bool:
        self._timer, self._is_due = None, False
        try:
            image, epoch, timestamp_ms = self._writer.cut(self._roll)
            newest = next(iter(list_snapshots(self._log.directory)), None)
            if newest is not None and newest.end_offset >= image.end_offset:
                return False
            path = write_snapshot(
                self._log.directory, image, epoch=epoch, last_timestamp_ms=timestamp_ms, raft=self._raft
            )
            self._bytes_at_last = self._bytes_at_cut  # what was appended since then is not in it
            dropped = self._trim()
        except (OSError, BrokerError, MetadataError) as error:
            logger.error("cannot write a snapshot of the metadata log, retrying after the next change: %s", error)
            return False
        logger.info("wrote %s, bytes=%d, dropped_segments=%d", path, path.stat().st_size, dropped)
        return True

    def _roll(self) -> None:
        self._log.roll()
        self._bytes_at_cut = self._log.size_bytes

    def _changed(self, before: MetadataImage, after: MetadataImage) -> None:
        """Runs on the writer's thread, with its lock held."""
        self._plan()

    def _plan(self) -> None:
        assert self._scheduler is not None, "start comes first"
        if self._log.size_bytes - self._bytes_at_last >= self._max_bytes and not self._is_due:
            self._is_due = True
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._scheduler.schedule(METADATA_SNAPSHOT_TASK, self.take)
        elif self._timer is None and self._interval_ms > 0:
            self._timer = self._scheduler.schedule(METADATA_SNAPSHOT_TASK, self.take, delay_ms=self._interval_ms)

    def _trim(self) -> int:
        """Delete expired snapshots and their segments; return the segments' number.

        Raises OSError, MetadataError, BrokerError.
        """
        directory = self._log.directory
        kept = [self._measure(snapshot_id) for snapshot_id in reversed(list_snapshots(directory))]
        dropped = snapshots_to_drop(
            kept,
            log_bytes=self._log.size_bytes,
            now_ms=self._clock.wall_ms(),
            retention_ms=self._retention_ms,
            retention_bytes=self._retention_bytes,
        )
        for path in directory.glob(f"*.checkpoint{PART_SUFFIX}"):
            path.unlink()  # left by a crash; the snapshot of this round is already renamed
        if not dropped:
            return 0
        for snapshot in dropped:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(snapshot_path(directory, snapshot.id))
        sync_directory(directory)
        segments = 0

        def trim() -> None:
            nonlocal segments
            before = self._log.size_bytes
            segments = self._log.trim_to(kept[len(dropped)].id.end_offset)
            self._bytes_at_last -= before - self._log.size_bytes

        # A change in the middle would see the size after and the mark before, and begin no snapshot.
        self._writer.between_changes(trim)
        return segments

    def _measure(self, snapshot_id: SnapshotId) -> KeptSnapshot:
        path = snapshot_path(self._log.directory, snapshot_id)
        return KeptSnapshot(snapshot_id, path.stat().st_size, read_header_timestamp(path))

"""MetadataCopy: a standby's copy of the metadata log, and the image that it gives.

Batches are appended as they are and synced before the image is replaced. The copy never ends within a transaction of
the metadata log: its batches wait in memory until the last one has arrived, so that a standby that takes over has
nothing to abort. The copy writes snapshots of its own and trims its log, as Kafka's observers do.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.log.feed import crc_before
from barnabas.broker.metadata.log.replay import Replayer
from barnabas.broker.metadata.log.snapshot_file import PART_SUFFIX
from barnabas.broker.metadata.log.snapshots import SnapshotId, list_snapshots, read_newest_snapshot, snapshot_path
from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records import iter_batches

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.log.log_replay import ReplayedLog
    from barnabas.broker.metadata.log.metadata_log import MetadataLog
    from barnabas.broker.metadata.view import ImageListener
    from barnabas.protocol.messages.cluster.standby import SnapshotName


class MetadataCopy:
    """Every method but the properties blocks. Changes are made by one thread at a time."""

    def __init__(self, log: MetadataLog, replayed: ReplayedLog) -> None:
        """`replayed`: what the log and its snapshots contain. Raises MetadataError if the log ends in a transaction."""
        if replayed.in_transaction:
            raise MetadataError(f"{log.directory} ends within a transaction: delete the standby's copy and start again")
        self.image = replayed.image
        self.failure: str | None = None
        self.next_offset = replayed.image.end_offset
        """The first offset that is still to be copied."""
        self.last_crc = crc_before(log, self.next_offset)
        """CRC of the batch before `next_offset`, None if it is not in the log."""
        self._log = log
        self._pending = b""
        """Batches of a transaction whose end has not arrived."""
        self._leader_epoch = max(replayed.last_epoch, 0)
        self._last_timestamp_ms = replayed.last_timestamp
        self._lock = threading.Lock()
        self._listeners: list[ImageListener] = []

    @property
    def log(self) -> MetadataLog:
        """The log."""
        return self._log

    def apply(self, data: bytes) -> None:
        """Append whole batches and replace the image. Raises MetadataError, BrokerError, StorageError."""
        with self._lock:
            buffer = self._pending + data
            replayer = Replayer(str(self._log.directory), self.image)
            replayed_bytes = replayer.replay(buffer)
            if replayed_bytes != len(buffer):
                raise MetadataError(f"the active broker's metadata is cut after offset {replayer.next_offset}")
            for batch in iter_batches(data):
                self.last_crc = batch.crc
            self.next_offset = replayer.next_offset
            if replayer.in_transaction:
                self._pending = buffer
                return
            self._pending = b""
            self._log.append_copied(memoryview(buffer))
            self._log.sync()
            self._leader_epoch = max(self._leader_epoch, replayer.last_epoch)
            self._last_timestamp_ms = replayer.last_timestamp
            self._replace_image(replayer.image())

    def part_path(self, snapshot: SnapshotName) -> Path:
        """Return where the bytes of a snapshot are written until `install`."""
        final = snapshot_path(self._log.directory, _id_of(snapshot))
        return final.with_name(final.name + PART_SUFFIX)

    def install(self, snapshot: SnapshotName) -> None:
        """Begin again with a snapshot that is complete in `part_path`. Raises MetadataError, BrokerError, OSError."""
        with self._lock:
            part, directory = self.part_path(snapshot), self._log.directory
            with part.open("rb") as file:
                os.fsync(file.fileno())
            older = list_snapshots(directory)
            part.rename(snapshot_path(directory, _id_of(snapshot)))
            sync_directory(directory)
            found = read_newest_snapshot(directory)
            if found is None or found.id != _id_of(snapshot):
                raise MetadataError(f"{directory}: the active broker's snapshot {snapshot} is damaged")
            self._log.restart_at(found.id.end_offset)
            for each in older:
                with contextlib.suppress(FileNotFoundError):
                    snapshot_path(directory, each).unlink()
            self._pending, self.last_crc, self.next_offset = b"", None, found.id.end_offset
            self._leader_epoch = max(self._leader_epoch, found.id.epoch)
            self._last_timestamp_ms = found.last_timestamp
            self._replace_image(found.image)

    def add_listener(self, listener: ImageListener) -> None:
        """Call `listener` after each change from now on. For the snapshotter."""
        with self._lock:
            self._listeners.append(listener)

    def between_changes(self, work: Callable[[], None]) -> None:
        """Do something while no change is made, and none tells its listeners."""
        with self._lock:
            work()

    def cut(self, begin_segment: Callable[[], None]) -> tuple[MetadataImage, int, int]:
        """Begin a segment between two changes; return image, epoch and last timestamp, as MetadataWriter.cut does."""
        with self._lock:
            if self.failure is not None:
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure)
            begin_segment()
            return self.image, self._leader_epoch, self._last_timestamp_ms

    def _replace_image(self, after: MetadataImage) -> None:
        before, self.image = self.image, after
        for listener in self._listeners:
            listener(before, after)


def _id_of(snapshot: SnapshotName) -> SnapshotId:
    return SnapshotId(snapshot.end_offset, snapshot.epoch)

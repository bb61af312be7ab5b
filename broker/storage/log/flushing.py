"""How what was appended to a log becomes durable.

A flush works on what the log consisted of at one moment, which it takes under the log's lock, and syncs without the
lock. Meanwhile the log may roll, be truncated, lose segments to retention or to the cleaner, or change its directory:
what it may note down afterwards, and whether it has to begin anew, is decided under the lock again.
Source: Kafka UnifiedLog.flush, LocalLog.flush.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.segment.log_segment import LogSegment

logger = logging.getLogger(__name__)


class LogFlushing(LogState):
    """The syncing part of a PartitionLog."""

    def flush(self, up_to: int | None = None) -> int:
        """Make what is appended below `up_to` (default: everything) durable; the offset up to which it is.

        Sealed segments are synced once, with their indexes; the active one without, because recovery reads the segment
        of the recovery point again anyway. Raises StorageError after taking the directory offline: a failed fsync is
        never retried.
        """
        with self._lock:
            # All at one moment: a roll that is seen half done would make the segment that it seals pass for synced.
            if self.state == "offline":
                raise StorageError(self.directory, f"cannot sync {self.topic_partition}: it is offline")
            truncations = self.truncations
            target = self.log_end_offset if up_to is None else min(up_to, self.log_end_offset)
            active = self._active
            segments = self._segments
            directory = self.directory
            sealed = [segment for segment in self._unsynced_sealed if segment.base_offset < target]
            start = self.recovery_point
        if target <= start and not sealed:
            return start
        try:
            for segment in sealed:
                segment.sync(with_indexes=True)
            if target > max(active.base_offset, start):
                active.sync(with_indexes=False)
            if sealed or active.base_offset >= start:
                sync_directory(directory)  # new files: their names must last, too
        except FileNotFoundError as error:
            if self.state != "online":
                return self.recovery_point  # deleted meanwhile: nothing is left to be made durable
            if self._has_left(directory, (*sealed, active)):
                return self.flush(up_to)
            raise StorageError(self.directory, f"a file of {self.topic_partition} is missing: {error}") from error
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):  # those come from open(): nothing was synced yet
                self._fail("cannot sync the log", error)
            raise StorageError(self.directory, f"cannot sync {self.topic_partition}: {error}") from error
        with self._lock:
            if self._segments is segments:
                return self._note_synced(target, active, sealed, truncations)
        return self.flush(up_to)  # what was synced are the files of a directory that the log has left meanwhile

    def _note_synced(self, target: int, active: LogSegment, sealed: Sequence[LogSegment], truncations: int) -> int:
        """What lies below `target` is durable, unless the log was truncated meanwhile. The lock is held."""
        if truncations != self.truncations:
            return self.durable_offset
        self._unsynced_sealed = [segment for segment in self._unsynced_sealed if segment not in sealed]
        self.durable_offset = max(self.durable_offset, target)
        if active is not self._active:
            # Sealed while it was synced: its indexes were not, so recovery must still begin in it.
            target = min(target, active.base_offset)
        if target > self.recovery_point:
            self.recovery_point = target
            self.last_flush_ms = self._wall_ms()
        return self.durable_offset

    def _has_left(self, directory: Path, segments: Sequence[LogSegment]) -> bool:
        """Whether the log has left the directory or one of the segments by now: why a file of theirs was not found.

        Waits for a rename at hand.
        """
        with self._lock:
            there = {id(segment) for segment in self._segments}
            return self.directory != directory or any(id(segment) not in there for segment in segments)

    def _flush_rolled(self, end_offset: int, snapshot: Path | None) -> None:
        if self.state != "online":
            return
        if snapshot is not None:
            try:
                with contextlib.suppress(FileNotFoundError), snapshot.open("rb") as file:
                    os.fsync(file.fileno())
            except OSError as error:
                self._fail("cannot sync a producer snapshot", error)
        try:
            self.flush(end_offset)
        except StorageError as error:
            if self.state == "online":
                raise
            logger.debug("%s went while it was flushed: %s", self.topic_partition, error)

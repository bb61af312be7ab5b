"""LogFlusher: makes what was appended to one log durable.

A flush takes the list of files to sync under the log's lock and syncs them without it. Meanwhile the log may roll, be
truncated, lose segments to retention or to the cleaner, or move to another directory. So what the flush may record
afterwards, and whether it has to start again, is decided under the lock. Source: Kafka UnifiedLog.flush,
LocalLog.flush.
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
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.segment.log_segment import LogSegment

logger = logging.getLogger(__name__)


class LogFlusher:
    """Syncs one log. Any number of threads may flush at the same time."""

    __slots__ = ("_core",)

    def __init__(self, core: LogCore) -> None:
        self._core = core

    def flush(self, up_to: int | None = None) -> int:
        """Make everything appended below `up_to` (default: the log end) durable; return the durable offset.

        Sealed segments are synced once, with their indexes; the active one without, because recovery reads the segment
        of the recovery point again anyway. Raises StorageError after taking the directory offline: a failed fsync is
        never retried, because the state of the pages is unknown after it.
        """
        core = self._core
        with core.lock:
            # All under the lock: in the middle of a roll the segment being sealed is in neither place, and would count
            # as synced.
            if core.state is LogState.OFFLINE:
                raise StorageError(core.directory, f"cannot sync {core.topic_partition}: it is offline")
            truncations = core.truncations
            target = core.log_end_offset if up_to is None else min(up_to, core.log_end_offset)
            active = core.active
            segments = core.segments
            directory = core.directory
            sealed = [segment for segment in core.unsynced_sealed if segment.base_offset < target]
            start = core.recovery_point
        if target <= start and not sealed:
            return start
        try:
            for segment in sealed:
                segment.sync(with_indexes=True)
            if target > max(active.base_offset, start):
                active.sync(with_indexes=False)
            if sealed or active.base_offset >= start:
                sync_directory(directory)  # new files: their names must be durable too
        except FileNotFoundError as error:
            if core.state is not LogState.ONLINE:
                return core.recovery_point  # deleted meanwhile: nothing is left to be made durable
            if self._has_left(directory, (*sealed, active)):
                return self.flush(up_to)
            raise StorageError(core.directory, f"a file of {core.topic_partition} is missing: {error}") from error
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):  # those come from open(): nothing was synced yet
                core.fail("cannot sync the log", error)
            raise StorageError(core.directory, f"cannot sync {core.topic_partition}: {error}") from error
        with core.lock:
            if core.segments is segments:
                return self._note_synced(target, active, sealed, truncations)
        return self.flush(up_to)  # the synced files belong to a directory that the log has left meanwhile

    def flush_rolled(self, end_offset: int, snapshot: Path | None) -> None:
        """Sync the segments that a roll sealed, and its producer snapshot: a background task. Raises StorageError."""
        core = self._core
        if not core.is_online:
            return
        if snapshot is not None:
            try:
                with contextlib.suppress(FileNotFoundError), snapshot.open("rb") as file:
                    os.fsync(file.fileno())
            except OSError as error:
                core.fail("cannot sync a producer snapshot", error)
        try:
            self.flush(end_offset)
        except StorageError as error:
            if core.state is LogState.ONLINE:
                raise
            logger.debug("%s was taken out of service while it was flushed: %s", core.topic_partition, error)

    def _note_synced(self, target: int, active: LogSegment, sealed: Sequence[LogSegment], truncations: int) -> int:
        """Record that the log is durable below `target`, unless it was truncated meanwhile. The lock is held."""
        core = self._core
        if truncations != core.truncations:
            return core.durable_offset
        core.unsynced_sealed = [segment for segment in core.unsynced_sealed if segment not in sealed]
        core.durable_offset = max(core.durable_offset, target)
        if active is not core.active:
            # Sealed while it was synced: its indexes were not synced, so recovery must still begin in it.
            target = min(target, active.base_offset)
        if target > core.recovery_point:
            core.recovery_point = target
            core.last_flush_ms = core.wall_ms()
        return core.durable_offset

    def _has_left(self, directory: Path, segments: Sequence[LogSegment]) -> bool:
        """Return whether the log has left the directory or one of the segments, so that a missing file is no error.

        Takes the lock, and so waits for a rename under way.
        """
        core = self._core
        with core.lock:
            present = {id(segment) for segment in core.segments}
            return core.directory != directory or any(id(segment) not in present for segment in segments)

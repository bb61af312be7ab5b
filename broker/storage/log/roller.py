"""LogRoller: begins a new active segment and seals the old one. LogSegment.should_roll decides when.

Source: Kafka UnifiedLog.roll, LocalLog.roll.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from barnabas.broker.storage.files.file_names import SEGMENT_SUFFIXES, file_name
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.flusher import LogFlusher
from barnabas.broker.storage.log.read import LogEnd
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.services.log_dir_failure import is_shortage

logger = logging.getLogger(__name__)

FLUSH_LOG_TASK = "flush-log"


class LogRoller:
    """Rolls one log. The sealed segment becomes durable by a background task."""

    __slots__ = ("_core", "_flusher")

    def __init__(self, core: LogCore, flusher: LogFlusher) -> None:
        self._core = core
        self._flusher = flusher

    def roll(self) -> LogSegment:
        """Begin a segment at the log end offset unless the active one is empty; return the active one.

        Raises BrokerError KAFKA_STORAGE_ERROR.
        """
        core = self._core
        with core.lock:
            core.ensure_online()
            if core.active.size_bytes == 0:
                return core.active
            try:
                return self.roll_at(core.log_end_offset)
            except OSError as error:
                core.refuse_append(error)

    def roll_at(self, new_base: int) -> LogSegment:
        """Seal the active segment and begin one at `new_base`. The lock is held.

        Raises OSError; the roll can be repeated then.
        """
        core = self._core
        old = core.active
        assert new_base > old.base_offset, f"{core}: cannot roll at {new_base}, the active segment begins there"
        for suffix in SEGMENT_SUFFIXES:
            path = core.directory / file_name(new_base, suffix)
            if path.exists():
                logger.warning("a file of the new segment exists already, deleting it: %s", path)
                path.unlink()
        old.seal()
        segment = LogSegment.create(
            os.fspath(core.directory), new_base, core.config, core.services.clock, core.services.open_files
        )
        core.segments.add(segment)
        core.active = segment
        core.end = LogEnd(core.log_end_offset, segment, 0, -1, 0)
        core.producers.map_end_offset = new_base
        snapshot = self._take_snapshot()
        core.unsynced_sealed = [*core.unsynced_sealed, old]
        core.services.scheduler.schedule(FLUSH_LOG_TASK, lambda: self._flusher.flush_rolled(new_base, snapshot))
        return segment

    def _take_snapshot(self) -> Path | None:
        """Write a producer snapshot at the new base, not synced yet because the lock is held. Raises OSError."""
        try:
            return self._core.producers.take_snapshot(durably=False)
        except OSError as error:
            if not is_shortage(error):
                raise
            logger.warning("no producer snapshot of %s at this roll: %s", self._core.topic_partition, error)
            return None

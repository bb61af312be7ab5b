"""Directories of deleted topics: renamed `-delete` immediately, removed after file.delete.delay.ms.

The removal task schedules its own next run for the time at which the oldest directory is due, so that a short delay is
exact. Source: Kafka LogManager.deleteLogs.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.segment.deletion import RETRY_MS
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.broker.storage.services.services import StorageServices

logger = logging.getLogger(__name__)

DELETE_LOGS_TASK = "delete-logs"


class DeletionQueue:
    """Logs and directories that wait for their removal, the oldest first. Thread-safe."""

    def __init__(self, services: StorageServices, delay_ms: Callable[[], int]) -> None:
        """`delay_ms` returns the broker's file.delete.delay.ms, which may change."""
        self._services = services
        self._delay_ms = delay_ms
        self._waiting: deque[tuple[int, PartitionLog | Path]] = deque()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, doomed: PartitionLog | Path) -> None:
        """Add a retired log, or a `-delete` directory found at start; its delay begins now."""
        with self._lock:
            self._waiting.append((self._services.clock.wall_ms(), doomed))

    def start(self, delay_ms: int) -> None:
        """Schedule the first run."""
        self._services.scheduler.schedule(DELETE_LOGS_TASK, self._run, delay_ms=delay_ms)

    def remove_due(self) -> int:
        """Remove all that are due; return the milliseconds until the next one is.

        What lacks room or descriptors waits for the delay once more.
        """
        postponed = []
        while (doomed := self._take_due()) is not None:
            if not self._remove(doomed):
                postponed.append(doomed)
        for doomed in postponed:
            self.add(doomed)
        with self._lock:
            return max(self._milliseconds_left(), RETRY_MS if postponed else 1)

    def _take_due(self) -> PartitionLog | Path | None:
        with self._lock:
            return self._waiting.popleft()[1] if self._waiting and self._milliseconds_left() <= 0 else None

    def _milliseconds_left(self) -> int:
        """Return the time until the oldest is due; the delay if there is none. The lock is held."""
        if not self._waiting:
            return self._delay_ms()
        return self._waiting[0][0] + self._delay_ms() - self._services.clock.wall_ms()

    def _run(self) -> None:
        delay = 1
        try:
            delay = self.remove_due()
        finally:
            self._services.scheduler.schedule(DELETE_LOGS_TASK, self._run, delay_ms=delay)

    def _remove(self, doomed: PartitionLog | Path) -> bool:
        """Remove the directory; return False after a shortage. A failed disk takes its log directory offline."""
        import shutil  # late: it loads five modules for compression

        path = doomed if isinstance(doomed, Path) else doomed.directory
        try:
            if isinstance(doomed, PartitionLog):
                doomed.delete_directory()
            else:
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(path)
                    sync_directory(path.parent)
        except OSError as error:
            if is_shortage(error):
                logger.warning("%s is removed later: %s", path, error)
                return False
            self._services.failures.report(path.parent, f"cannot remove {path}", error)
        else:
            logger.info("removed %s", path)
        return True

"""Failed log directories: when a disk fails, its directory goes offline and the broker continues with the others.

The code that gets the error (an append, a flush, a checkpoint) reports the directory here. From then on its logs refuse
appends and reads with KAFKA_STORAGE_ERROR. The handler (LogManager) runs later, on another thread, because the reporter
may hold a log's lock. A full disk and too many open files do not count as failures: see `is_shortage`.
Source: Kafka LogDirFailureChannel.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable
from pathlib import Path

logger = logging.getLogger(__name__)


class LogDirFailures:
    """The offline log directories, with the reason for each. Thread-safe."""

    def __init__(self, on_failure: Callable[[Path], None] | None = None) -> None:
        """Call `on_failure` once per directory, on the reporter's thread: it must not do the work itself."""
        self.offline: dict[Path, str] = {}
        self.on_failure = on_failure
        self._lock = threading.Lock()

    def report(self, log_dir: Path, message: str, error: Exception) -> None:
        """Take `log_dir` offline because of `error`, unless it is offline already."""
        with self._lock:
            if log_dir in self.offline:
                return
            self.offline = {**self.offline, log_dir: f"{message}: {_reason(error, log_dir)}"}
        logger.error("log directory goes offline: %s, log_dir=%s, error=%s", message, log_dir, error)
        if self.on_failure is not None:
            self.on_failure(log_dir)

    def is_offline(self, log_dir: Path) -> bool:
        """Return whether the directory has failed."""
        return log_dir in self.offline


def _reason(error: Exception, log_dir: Path) -> str:
    """Leave the path out of an OSError's text if it is the directory, which the log line contains already."""
    if isinstance(error, OSError) and error.strerror and error.filename in (None, str(log_dir)):
        return error.strerror
    return str(error)


_SHORTAGES = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def is_shortage(error: OSError) -> bool:
    """Return whether an operation lacked disk space, descriptors or memory, so that it can be retried later.

    Not for the error of an fsync: ENOSPC from fsync means that data is already lost.
    """
    return error.errno in _SHORTAGES

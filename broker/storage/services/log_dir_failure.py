"""What happens when a data directory's disk fails: that directory goes offline, the broker goes on with the others.

Whoever meets the error (an append, a flush, a checkpoint) reports the directory here. From that moment its logs refuse
appends and reads with KAFKA_STORAGE_ERROR; the handler (LogManager) runs later, on another thread, because the
reporter may hold a log's lock. A full disk is no failure, nor are too many open files: see `is_shortage`.
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
    """Which directories are offline, and why. Thread-safe."""

    def __init__(self, on_failure: Callable[[Path], None] | None = None) -> None:
        """`on_failure` is called once per directory, on the reporter's thread: it must only start the handling."""
        self.offline: dict[Path, str] = {}
        self.on_failure = on_failure
        self._lock = threading.Lock()

    def report(self, log_dir: Path, message: str, error: Exception) -> None:
        """Take `log_dir` offline because of `error`; what is offline already stays as it is."""
        with self._lock:
            if log_dir in self.offline:
                return
            self.offline = {**self.offline, log_dir: f"{message}: {_reason(error, log_dir)}"}
        logger.error("log directory goes offline: %s, log_dir=%s, error=%s", message, log_dir, error)
        if self.on_failure is not None:
            self.on_failure(log_dir)

    def is_offline(self, log_dir: Path) -> bool:
        """Whether the directory has failed."""
        return log_dir in self.offline


def _reason(error: Exception, log_dir: Path) -> str:
    """The operating system's sentence alone where its path is the directory, which `message` names already."""
    if isinstance(error, OSError) and error.strerror and error.filename in (None, str(log_dir)):
        return error.strerror
    return str(error)


_SHORTAGES = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def is_shortage(error: OSError) -> bool:
    """Whether an operation failed for want of room, descriptors or memory only: it can be tried again later.

    Never ask this of a failed fsync: there, missing room means that data is lost already.
    """
    return error.errno in _SHORTAGES

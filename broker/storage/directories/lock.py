"""The `.lock` file that keeps a second broker out of a data directory.

The file gets two locks. flock() belongs to the open file, so it also stops a second broker object in this process. The
POSIX record lock is the one that Apache Kafka takes (Java's FileLock), so each program sees the other. The kernel drops
both when the process dies. A clean stop removes the file; a refused start keeps a file that it found, as Kafka does.

The POSIX lock is also lost when this process closes any other descriptor of the file: nothing else in a broker may open
`.lock`. Source: Kafka FileLock, LogManager.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from barnabas.broker.storage.files.errors import StartupStorageError

LOCK_FILE = ".lock"


class LockedDirectoryError(StartupStorageError):
    """Another broker, or a command, holds the directory's lock."""


class DirectoryLock:
    """Lock of one data directory, held from `acquire` to `release`."""

    def __init__(self, log_dir: Path) -> None:
        self.path = log_dir / LOCK_FILE
        self._descriptor = -1
        self._was_there = False

    def acquire(self) -> None:
        """Take the lock. Raises LockedDirectoryError if another broker has it, OSError from the disk."""
        self._was_there = self.path.exists()
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError) as error:
                os.close(descriptor)
                raise LockedDirectoryError(
                    self.path.parent, "another broker is using this data directory: its .lock is held; stop it first"
                ) from error
            except OSError:
                os.close(descriptor)
                raise
            if self._is_still_named(descriptor):
                self._descriptor = descriptor
                return
            # The holder removed the file between open and lock: this descriptor's file has no name any more.
            os.close(descriptor)

    def release(self, *, refused: bool = False) -> None:
        """Remove the file and release the lock, if held. `refused` keeps the file if it was there before."""
        if self._descriptor < 0:
            return
        if not (refused and self._was_there):
            with contextlib.suppress(OSError):  # an offline disk: the kernel drops the lock all the same
                os.unlink(self.path)
        os.close(self._descriptor)
        self._descriptor = -1

    def _is_still_named(self, descriptor: int) -> bool:
        try:
            named = os.stat(self.path)
        except FileNotFoundError:
            return False
        ours = os.fstat(descriptor)
        return (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino)

"""AuditFile: the audit log's file, written on a thread of its own so that a slow disk does not stop the broker.

At `max_bytes` the file is renamed to `<path>.1`, which replaces the previous one: the log takes at most twice that
size. Lines that the thread cannot keep up with, or that cannot be written, are dropped; the broker's log reports it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)

LINES_MAX: Final = 10_000
"""Lines in memory that wait for the disk."""

CLOSE_SECONDS: Final = 5.0
"""How long the stop of the broker waits for the last lines."""


class AuditFile:
    """Sink of an AuditLog."""

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        """Open the file for appending. Raises OSError."""
        self._path = path
        self._max_bytes = max_bytes
        self._file = self._open()
        self._lines: deque[str] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._dropped = 0
        self._thread = threading.Thread(target=self._run, name="audit-log", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Hand one line to the thread, or drop it if the disk is too slow."""
        with self._changed:
            if len(self._lines) >= LINES_MAX:
                self._dropped += 1
                return
            self._lines.append(line)
            self._changed.notify()

    def close(self) -> None:
        """Write the lines that are left, and close the file."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            logger.warning("the last lines of the audit log are not written yet, path=%s", self._path)

    def _run(self) -> None:
        failed = False
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._closing)
                lines, closing, dropped = list(self._lines), self._closing, self._dropped
                self._lines.clear()
                self._dropped = 0
            if dropped:
                logger.warning("the audit log's disk is too slow, path=%s dropped_lines=%d", self._path, dropped)
            try:
                self._append("".join(f"{line}\n" for line in lines))
                failed = False
            except OSError as error:
                if not failed:
                    logger.error("the audit log cannot be written, path=%s error=%s", self._path, error)
                failed = True
            if closing:
                self._file.close()
                return

    def _append(self, text: str) -> None:
        if not text:
            return
        self._file.write(text.encode())
        self._file.flush()
        if self._file.tell() >= self._max_bytes:
            self._file.close()
            os.replace(self._path, f"{self._path}.1")
            self._file = self._open()

    def _open(self) -> IO[bytes]:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        return os.fdopen(descriptor, "ab")

"""AuditFile: the audit log's file, written on a thread of its own so that a slow disk does not stop the broker.

At `max_bytes` the file is renamed to `<path>.1`, which replaces the previous one: the log takes at most twice that
size. Lines that the thread cannot keep up with, or that cannot be written, are dropped; the broker's log reports it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from io import FileIO
from typing import TYPE_CHECKING, Final

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
        self._file: FileIO | None = self._open()
        self._lines: deque[str] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._idle = True
        self._dropped = 0
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="audit-log", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Hand one line to the thread, or drop it if the disk is too slow."""
        with self._changed:
            if len(self._lines) >= LINES_MAX:
                self._dropped += 1
                return
            self._lines.append(line)
            self._idle = False
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until the lines so far are written or dropped, at most for a few seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle, CLOSE_SECONDS)

    def close(self) -> None:
        """Write the lines that are left, and close the file."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            logger.warning("the last lines of the audit log are not written yet, path=%s", self._path)

    def _run(self) -> None:
        closing = False
        while not closing:
            with self._changed:
                self._idle = not self._lines
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._lines or self._closing)
                lines, closing, dropped = list(self._lines), self._closing, self._dropped
                self._lines.clear()
                self._dropped = 0
            if dropped:
                logger.warning("the audit log's disk is too slow, path=%s dropped_lines=%d", self._path, dropped)
            try:
                self._append("".join(f"{line}\n" for line in lines))
                self._failed = False
            except OSError as error:
                if not self._failed:
                    logger.error("the audit log cannot be written and loses lines, path=%s error=%s", self._path, error)
                self._failed = True
        if self._file is not None:
            self._file.close()

    def _append(self, text: str) -> None:
        if not text:
            return
        if self._file is None:
            self._file = self._open()
        file = self._file
        data = memoryview(text.encode())
        while data:  # a full disk takes a part
            data = data[file.write(data) :]
        if file.tell() >= self._max_bytes:
            self._file = None
            file.close()
            os.replace(self._path, f"{self._path}.1")

    def _open(self) -> FileIO:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        return FileIO(descriptor, "ab")

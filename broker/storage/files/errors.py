"""Errors of disks, files and directories.

A `StorageError` carries the path, one sentence and, as its cause, the OSError if there was one. Clients see
`BrokerError` instead.
"""

from __future__ import annotations

from pathlib import Path


class StorageError(Exception):
    """A fault of the disk, of a file's content or of a directory's state, with its path."""

    def __init__(self, path: Path | str, message: str) -> None:
        super().__init__(f"{message} (path={path})")
        self.path = Path(path)
        self.message = message


class CorruptFileError(StorageError):
    """A stored file that violates its format; never raised for bytes from a client."""


class StartupStorageError(StorageError):
    """The broker cannot start with its directories; the message is one sentence for the operator."""

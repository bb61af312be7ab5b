"""The errors of the log engine that are not a client's.

A client sees `BrokerError`. What is wrong with a disk or a directory is a `StorageError`: it names the path, says one
sentence, and carries the OSError that caused it, if one did.
"""

from __future__ import annotations

from pathlib import Path


class StorageError(Exception):
    """A fault of a path: the disk, the file's content or the directory's state."""

    def __init__(self, path: Path | str, message: str) -> None:
        super().__init__(f"{message} (path={path})")
        self.path = Path(path)
        self.message = message


class CorruptFileError(StorageError):
    """A file whose content is not what its format says; never raised for a client's bytes."""


class StartupStorageError(StorageError):
    """Why the broker cannot start with its directories: one sentence for the operator."""

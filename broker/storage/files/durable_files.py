"""Small files, written durably and as a whole.

The content goes to a temporary file, which is synced and renamed over the old file; then the directory is synced. A
crash leaves the old content or the new one, never a part.
Source: Kafka Utils.atomicMoveWithFallback and CheckpointFile.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

TEMPORARY_SUFFIX = ".tmp"


def sync_directory(path: Path | str) -> None:
    """Make the directory's entries (created, renamed, removed files) durable. Raises OSError; EIO if the sync fails."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _sync_entries(descriptor)
    finally:
        os.close(descriptor)


def _sync_entries(descriptor: int) -> None:
    """Sync a directory. ENOSPC becomes EIO: names may be lost, so it is no shortage that one can wait for."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise OSError(errno.EIO, f"the directory cannot be synced: {error.strerror}", error.filename) from error


class OpenDirectory:
    """A directory whose entries will be synced after changes that cannot be taken back. A context manager.

    It is opened before those changes, so that a lack of descriptors is noticed while nothing has changed yet.
    """

    __slots__ = ("_descriptor", "_spares")

    def __init__(self, path: Path | str, *, spares: int = 0) -> None:
        """Open it, and hold `spares` further descriptors for files that have to be opened after it. Raises OSError."""
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self._spares: list[int] = []
        try:
            for _ in range(spares):
                self._spares.append(os.dup(self._descriptor))
        except OSError:
            self.close()
            raise

    def __enter__(self) -> OpenDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sync(self) -> None:
        """Make the directory's entries durable. Raises OSError (EIO)."""
        _sync_entries(self._descriptor)

    def release_spares(self) -> None:
        """Free the further descriptors."""
        while self._spares:
            os.close(self._spares.pop())

    def close(self) -> None:
        """Close all descriptors. A second call does nothing."""
        self.release_spares()
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of `content` at the file offset; a single write() may be partial. Raises OSError."""
    written = 0
    while written < len(content):
        written += os.write(descriptor, content[written:])


def write_durably(path: Path, content: bytes, *, temporary_suffix: str = TEMPORARY_SUFFIX) -> None:
    """Replace a file's content durably. Raises OSError; the old file is then unchanged."""
    temporary = path.with_name(path.name + temporary_suffix)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        write_all(descriptor, content)
        os.fsync(descriptor)
    except OSError:
        # On a full disk the partial file would only take up space.
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)
    os.rename(temporary, path)
    sync_directory(path.parent)

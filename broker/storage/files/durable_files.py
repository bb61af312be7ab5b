"""Small files that are on disk, whole, when the call returns.

A file is written beside its name, synced, renamed over it, and the directory is synced: a crash leaves the old content
or the new one, never a part. Source: Kafka's Utils.atomicMoveWithFallback and CheckpointFile.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

TEMPORARY_SUFFIX = ".tmp"


def sync_directory(path: Path | str) -> None:
    """Make the directory's entries (created, renamed, removed files) durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, content: bytes, *, temporary_suffix: str = TEMPORARY_SUFFIX) -> None:
    """Replace the file by `content`, durably. Raises OSError; the old file is then still whole."""
    temporary = path.with_name(path.name + temporary_suffix)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        written = 0
        while written < len(content):
            written += os.write(descriptor, content[written:])
        os.fsync(descriptor)
    except OSError:
        # A full disk leaves a part behind; it would only take room.
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)
    os.rename(temporary, path)
    sync_directory(path.parent)

"""A small file system that may be filled, for root where mounts are allowed."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(mount_point: Path, size: str, files: int | None = None) -> Iterator[Path | None]:
    """Mount a tmpfs of a size such as "8m", for so many files, until the block ends; yield None where that fails."""
    mount_point.mkdir(parents=True, exist_ok=True)
    options = f"size={size}" if files is None else f"size={size},nr_inodes={files}"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(mount_point)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        yield None
        return
    try:
        yield mount_point
    finally:
        subprocess.run(["umount", "-l", str(mount_point)], check=True)


@contextmanager
def small_disk_or_skip(mount_point: Path, size: str, files: int | None = None) -> Iterator[Path]:
    """Mount a tmpfs until the block ends; skip the test where that is not possible."""
    with small_disk(mount_point, size, files) as mounted:
        if mounted is None:
            pytest.skip("mounting a tmpfs needs root")
        yield mounted


def use_up_files(folder: Path) -> None:
    """Create empty files in a new folder until the disk has no room for one more."""
    folder.mkdir()
    with contextlib.suppress(OSError):
        for number in itertools.count():
            (folder / str(number)).touch(exist_ok=False)


def fill_up(path: Path, *, left_bytes: int = 0) -> None:
    """Extend a file until the disk is full, then leave some room."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)) == 4096:
            pass
    os.truncate(path, max(path.stat().st_size - left_bytes, 0))

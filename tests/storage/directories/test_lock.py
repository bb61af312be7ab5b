"""The `.lock` file of a data directory: exclusive within a process and between processes."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.broker.storage.directories.lock import DirectoryLock
from barnabas.broker.storage.files.errors import StartupStorageError


def test_a_directory_is_locked_once_and_release_removes_the_lock_file(tmp_path: Path) -> None:
    first, second = DirectoryLock(tmp_path), DirectoryLock(tmp_path)
    first.acquire()
    with pytest.raises(StartupStorageError, match="another broker"):
        second.acquire()
    first.release()
    assert os.listdir(tmp_path) == []
    second.acquire()
    second.release()


@pytest.mark.parametrize("kind", ["flock", "lockf"])
def test_a_lock_of_either_kind_in_another_process_is_respected(tmp_path: Path, kind: str) -> None:
    code = (
        "import fcntl, os, sys\n"
        f"fd = os.open({str(tmp_path / '.lock')!r}, os.O_RDWR | os.O_CREAT)\n"
        f"fcntl.{kind}(fd, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(StartupStorageError):
            DirectoryLock(tmp_path).acquire()
        process.communicate()
    lock = DirectoryLock(tmp_path)
    lock.acquire()
    lock.release()


def test_a_lock_file_left_by_a_crash_does_not_prevent_locking(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    lock = DirectoryLock(tmp_path)
    lock.acquire()
    lock.release()


def test_a_lock_on_a_file_that_its_holder_has_just_removed_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock
    calls = 0

    def flock(fd: int, operation: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:  # between open and lock the other broker stops, and a third one creates the file again
            os.unlink(tmp_path / ".lock")
            (tmp_path / ".lock").touch()
        real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    lock = DirectoryLock(tmp_path)
    lock.acquire()
    assert calls == 2
    lock.release()

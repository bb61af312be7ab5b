"""cleaner-offset-checkpoint: changes along with the logs, and Kafka's format on disk."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from barnabas.broker.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
from barnabas.broker.storage.files import checkpoint_file
from barnabas.broker.storage.files.checkpoint_file import CLEANER_CHECKPOINT
from barnabas.broker.storage.services.log_dir_failure import LogDirFailures
from barnabas.protocol.topic_partition import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 3)


class _Directories:
    """Two directories, and the partitions that have a log."""

    def __init__(self, root: Path) -> None:
        self.one, self.two = root / "one", root / "two"
        self.one.mkdir()
        self.two.mkdir()
        self.known = {A, B}
        self.failed: list[Path] = []

    def open(self) -> CleanerCheckpoints:
        failures = LogDirFailures(self.failed.append)
        checkpoints = CleanerCheckpoints(failures, self.known.__contains__)
        checkpoints.open([self.one, self.two])
        return checkpoints

    def text(self, directory: Path) -> str:
        return (directory / CLEANER_CHECKPOINT).read_text()


@pytest.fixture
def directories(tmp_path: Path) -> _Directories:
    return _Directories(tmp_path)


def test_offsets_are_written_in_kafkas_format_and_read_after_a_restart(directories: _Directories) -> None:
    checkpoints = directories.open()
    checkpoints.set(directories.one, B, 7)
    checkpoints.set(directories.one, A, 5)
    assert directories.text(directories.one) == "0\n2\na 0 5\nb 3 7\n"
    again = directories.open()
    assert (again.get(directories.one, A), again.get(directories.one, B)) == (5, 7)
    assert again.get(directories.two, A) is None


def test_an_entry_is_dropped_by_remove_or_by_the_next_write_after_its_log_is_gone(directories: _Directories) -> None:
    checkpoints = directories.open()
    checkpoints.set(directories.one, A, 5)
    checkpoints.set(directories.one, B, 7)
    checkpoints.remove(directories.one, A)
    assert directories.text(directories.one) == "0\n1\nb 3 7\n"
    directories.known.remove(B)
    checkpoints.set(directories.one, A, 6)
    assert directories.text(directories.one) == "0\n1\na 0 6\n"


def test_an_offset_moves_with_its_log_to_another_directory(directories: _Directories) -> None:
    checkpoints = directories.open()
    checkpoints.set(directories.one, A, 5)
    checkpoints.move(A, directories.one, directories.two)
    assert (checkpoints.get(directories.one, A), checkpoints.get(directories.two, A)) == (None, 5)
    assert directories.text(directories.one) == "0\n0\n"
    assert directories.text(directories.two) == "0\n1\na 0 5\n"


def test_a_truncation_lowers_only_an_offset_above_it(directories: _Directories) -> None:
    checkpoints = directories.open()
    checkpoints.set(directories.one, A, 5)
    checkpoints.truncate(directories.one, A, 6)
    checkpoints.truncate(directories.one, B, 1)
    assert (checkpoints.get(directories.one, A), checkpoints.get(directories.one, B)) == (5, None)
    checkpoints.truncate(directories.one, A, 4)
    assert directories.text(directories.one) == "0\n1\na 0 4\n"


def test_an_unreadable_file_is_set_aside_and_counts_as_empty(directories: _Directories) -> None:
    (directories.one / CLEANER_CHECKPOINT).write_text("0\n5\na 0 1\n")
    checkpoints = directories.open()
    assert checkpoints.get(directories.one, A) is None
    assert (directories.one / f"{CLEANER_CHECKPOINT}.corrupt").exists()
    assert directories.failed == []


def test_the_file_of_a_failed_directory_is_not_written(directories: _Directories) -> None:
    checkpoints = directories.open()
    checkpoints.set(directories.one, A, 5)
    checkpoints.forget(directories.one)
    checkpoints.set(directories.one, A, 6)
    checkpoints.truncate(directories.one, A, 1)
    checkpoints.remove(directories.one, A)
    assert directories.text(directories.one) == "0\n1\na 0 5\n"


@pytest.mark.parametrize(("code", "is_offline"), [(errno.EIO, True), (errno.ENOSPC, False)])
def test_a_disk_error_takes_the_directory_offline_and_a_full_disk_does_not(
    directories: _Directories, monkeypatch: pytest.MonkeyPatch, code: int, is_offline: bool
) -> None:
    checkpoints = directories.open()
    checkpoints.set(directories.one, A, 5)

    def broken(path: Path, content: bytes) -> None:
        raise OSError(code, "it does not work", str(path))

    monkeypatch.setattr(checkpoint_file, "write_durably", broken)
    checkpoints.set(directories.one, A, 6)
    monkeypatch.undo()
    assert directories.failed == ([directories.one] if is_offline else [])
    assert checkpoints.get(directories.one, A) == 6
    checkpoints.set(directories.one, B, 1)
    assert directories.text(directories.one) == "0\n2\na 0 6\nb 3 1\n"

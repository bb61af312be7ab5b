"""A full disk fails only the append in question; any other I/O error takes the directory offline."""

from __future__ import annotations

import contextlib
import errno
import itertools
import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.state import LogState
from barnabas.protocol.errors import BrokerError, ErrorCode
from tests.support.small_disk import small_disk_or_skip
from tests.support.storage.bench import START_MS, LogBench, append, log_config, read_batches, sized_batch

pytestmark = pytest.mark.usefixtures("python_appends")


def _refused(log: PartitionLog, size: int = 100) -> str:
    end = log.log_end_offset
    with pytest.raises(BrokerError) as caught:
        append(log, sized_batch(size))
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.log_end_offset == end
    return caught.value.message


def _offsets(log: PartitionLog) -> list[int]:
    return [found.base_offset for found in read_batches(log)]


class _FullDisk:
    """A pwrite with disk space for `left` bytes only."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        self._pwrite = os.pwrite
        monkeypatch.setattr(os, "pwrite", self._limited)

    def _limited(self, fd: int, data: memoryview, position: int) -> int:
        if self.left is None:
            return self._pwrite(fd, data, position)
        if self.left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._pwrite(fd, memoryview(data)[: self.left], position)
        self.left -= written
        return written


@pytest.mark.parametrize("room", [0, 1, 50, 99])
@pytest.mark.parametrize("preallocate", [False, True])
def test_a_partial_write_is_cut_off_and_the_next_append_succeeds(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch, room: int, preallocate: bool
) -> None:
    disk = _FullDisk(monkeypatch)
    config = log_config(segment_bytes=4096, preallocate=preallocate)
    log = bench.open(config)
    append(log, sized_batch(100))
    whole = bench.log_path().read_bytes()
    disk.left = room
    assert "No space left" in _refused(log)
    assert bench.log_path().read_bytes() == whole
    assert (log.state, bench.failed_directories) == (LogState.ONLINE, [])
    disk.left = None
    assert append(log, sized_batch(100)) == 1
    bench.close(log)
    assert _offsets(bench.open(config)) == [0, 1]


def test_an_index_page_without_disk_space_refuses_the_batch_before_it_is_written(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open(log_config(index_interval_bytes=150))
    for _ in range(2):
        append(log, sized_batch(100))
    real = os.posix_fallocate

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    _refused(log)
    assert os.path.getsize(bench.log_path()) == 200
    monkeypatch.setattr(os, "posix_fallocate", real)
    append(log, sized_batch(100))
    assert bench.offset_entries() == [(2, 200)]


@pytest.mark.parametrize("fails", ["open", "posix_fallocate"])
def test_a_roll_without_disk_space_is_retried_by_the_next_append(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    config = log_config(segment_bytes=1024)
    log = bench.open(config)
    for number in range(10):
        append(log, sized_batch(100, START_MS + number))
    real: Callable[..., object] = getattr(os, fails)

    def full(*arguments: object, **kwargs: object) -> object:
        if fails == "open" and not str(arguments[0]).endswith(f"{10:020d}.log"):
            return real(*arguments, **kwargs)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, fails, full)
    _refused(log)
    _refused(log, 20 + 61)
    assert log.segment_count == 1
    monkeypatch.setattr(os, fails, real)
    assert append(log, sized_batch(100)) == 10
    assert (log.segment_count, _offsets(log)) == (2, list(range(11)))
    assert bench.time_entries() == [(START_MS + 9, 9)]
    bench.close(log)
    assert _offsets(bench.open(config)) == list(range(11))


def test_reads_lookups_and_retention_work_while_the_disk_is_full(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = _FullDisk(monkeypatch)
    log = bench.open(log_config(segment_bytes=1024, retention_bytes=1000, retention_ms=-1))
    for number in range(25):
        append(log, sized_batch(100, START_MS + number))
    disk.left = 0
    _refused(log)
    assert _offsets(log) == list(range(25))
    assert log.offset_for_timestamp(START_MS + 7) is not None
    assert log.delete_old_segments() == 1
    disk.left = None
    assert append(log, sized_batch(100)) == 25


@pytest.mark.parametrize("fails", ["pwrite", "fdatasync"])
def test_any_other_error_takes_the_directory_offline(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    log = bench.open()
    append(log, sized_batch(100))

    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, fails, broken)
    if fails == "pwrite":
        _refused(log)
    else:
        with pytest.raises(Exception, match="Input/output error"):
            log.flush()
    monkeypatch.undo()
    assert bench.failed_directories == [bench.directory.parent]
    assert log.state is LogState.OFFLINE
    assert "offline" in _refused(log)
    with pytest.raises(BrokerError) as caught:
        log.read(0, 100, upper_bound=1, at_least_one_batch=True)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_failing_cut_of_a_partial_write_takes_the_directory_offline(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = _FullDisk(monkeypatch)
    log = bench.open()
    append(log, sized_batch(100))
    disk.left = 10

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "ftruncate", broken)
    _refused(log)
    monkeypatch.undo()
    assert bench.failed_directories == [bench.directory.parent]
    bench.recovery_point = 0
    log.go_offline()
    assert _offsets(bench.open(clean=False)) == [0]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 256 KiB."""
    with small_disk_or_skip(tmp_path / "small", "256k") as path:
        yield path


def test_the_log_survives_a_real_full_disk_and_resumes_when_space_is_freed(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(bytes(64 * 1024))
    bench = LogBench(small_disk)
    config = log_config(segment_bytes=16384, index_interval_bytes=100, segment_index_bytes=65536, retention_ms=-1)
    log = bench.open(config)
    written = 0
    with contextlib.suppress(BrokerError):
        while True:
            append(log, sized_batch(600, START_MS + written))
            written += 1
            bench.scheduler.run_due()
    assert written > 100
    caplog.clear()
    for _ in range(50):
        _refused(log, 600)
    assert caplog.text.count("are refused until there is room") <= 1
    assert _offsets(log) == list(range(written))
    assert bench.failed_directories == []
    filler.unlink()
    assert append(log, sized_batch(600)) == written
    bench.close(log)
    assert _offsets(bench.open(config)) == list(range(written + 1))


def test_a_segment_sealed_for_a_failed_roll_takes_no_more_batches(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open(log_config(segment_ms=1000))
    append(log, sized_batch(100, START_MS))
    real = os.open

    def full(path: str, flags: int, mode: int = 0o777) -> int:
        if path.endswith(f"{1:020d}.log"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(BrokerError):
        append(log, sized_batch(100, START_MS + 5000))
    with pytest.raises(BrokerError):
        append(log, sized_batch(100, START_MS + 1))  # it is not time to roll, but the old segment is sealed
    assert bench.failed_directories == []
    monkeypatch.undo()
    assert append(log, sized_batch(100, START_MS + 1)) == 1
    assert _offsets(log) == [0, 1]


def test_too_many_open_files_do_not_take_the_directory_offline(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open(log_config(segment_bytes=1024))
    for _ in range(10):
        append(log, sized_batch(100))
    real = os.open

    def full(path: str, flags: int, mode: int = 0o777) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", full)
    assert "Too many open files" in _refused(log)  # it needs a new segment
    monkeypatch.setattr(os, "open", real)
    assert append(log, sized_batch(100)) == 10
    log.segments[0].log.evict()
    monkeypatch.setattr(os, "open", full)
    with pytest.raises(BrokerError, match="Too many open files"):
        log.read(0, 100, upper_bound=11, at_least_one_batch=True)
    with pytest.raises(StorageError, match="Too many open files"):
        log.flush()
    monkeypatch.setattr(os, "open", real)
    assert _offsets(log) == list(range(11))
    assert log.flush() == 11
    assert bench.failed_directories == []


@pytest.mark.parametrize("refused", [1, 2])
@pytest.mark.parametrize("function", ["ftruncate", "mmap"])
def test_an_index_that_cannot_be_opened_for_a_new_segment_fails_only_that_append(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch, refused: int, function: str
) -> None:
    config = log_config(index_interval_bytes=0)
    log = bench.open(config)
    append(log, sized_batch(100))
    log.roll()
    owner = os if function == "ftruncate" else mmap
    real, calls = getattr(owner, function), itertools.count(1)

    def short(*arguments: object, **named: object) -> object:
        if next(calls) == refused:  # the offset index is opened first, then the time index
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return real(*arguments, **named)

    monkeypatch.setattr(owner, function, short)
    _refused(log)
    monkeypatch.undo()
    assert log.offset_for_timestamp(START_MS + 10**9) is None  # looks into the new segment, and leaves it as it is
    for _ in range(3):
        append(log, sized_batch(100))

    assert _offsets(log) == [0, 1, 2, 3]
    assert log.segments[-1].offset_index.entries == 2
    assert log.segments[-1].time_index.max_entries > 2
    assert log.state is LogState.ONLINE

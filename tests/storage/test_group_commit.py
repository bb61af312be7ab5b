"""Group commit: one sync for all waiting requests, and the consequences of a failed one."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.group_commit import FLUSHER_THREAD, FlushCompletion, FlushRequest, GroupCommitFlusher
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.producers.state import ProducerState
from barnabas.broker.storage.segment.log_segment import AppendedBatch, LogSegment
from tests.support.storage.bench import START_MS, AnnouncedLock, LogBench, append, log_config, sized_batch

_WAIT_S = 20.0


class _Disk:
    """Counts fdatasync calls, and blocks or fails them on request."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.syncs = 0
        self.entered = threading.Event()
        self.release = threading.Event()
        self.release.set()
        self.error: OSError | None = None
        self.errors: list[OSError] = []
        """Errors for the next syncs, one each."""
        self.together: threading.Barrier | None = None
        monkeypatch.setattr(os, "fdatasync", self._fdatasync)

    def _fdatasync(self, _: int) -> None:
        self.syncs += 1
        self.entered.set()
        assert self.release.wait(_WAIT_S)
        if self.together is not None:
            self.together.wait(_WAIT_S)
        if self.errors:
            raise self.errors.pop()
        if self.error is not None:
            raise self.error


class _Answers:
    """Collects completions."""

    def __init__(self) -> None:
        self.errors: list[Exception | None] = []
        self.rounds: list[int] = []
        self._changed = threading.Condition()

    def deliver(self, completions: Sequence[FlushCompletion]) -> None:
        assert threading.current_thread().name.startswith(FLUSHER_THREAD)
        with self._changed:
            self.rounds.append(len(completions))
            for completion in completions:
                completion.callback(completion.error)
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[Exception | None]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.errors) >= count, _WAIT_S)
        return self.errors


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> _Disk:
    return _Disk(monkeypatch)


@pytest.fixture
def answers() -> _Answers:
    return _Answers()


@pytest.fixture
def flusher(answers: _Answers) -> Iterator[GroupCommitFlusher]:
    made = GroupCommitFlusher(answers.deliver)
    made.start()
    yield made
    made.stop()


def test_requests_that_arrive_during_a_sync_share_the_next_one(
    bench: LogBench, disk: _Disk, answers: _Answers, flusher: GroupCommitFlusher
) -> None:
    log = bench.open(log_config(flush_messages=1))
    disk.release.clear()
    append(log, sized_batch(100))
    flusher.request([FlushRequest(log, 1, answers.errors.append)])
    assert disk.entered.wait(_WAIT_S)
    for number in range(1, 21):
        append(log, sized_batch(100))
        flusher.request([FlushRequest(log, number + 1, answers.errors.append)])
    disk.release.set()
    assert answers.wait_for(21) == [None] * 21
    assert answers.rounds == [1, 20]
    assert disk.syncs == 2
    assert (flusher.requests, flusher.syncs, log.recovery_point) == (21, 2, 21)


def test_a_request_below_the_durable_offset_needs_no_sync(
    bench: LogBench, disk: _Disk, answers: _Answers, flusher: GroupCommitFlusher
) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    log.flush()
    before = disk.syncs
    flusher.request([FlushRequest(log, 1, answers.errors.append)])
    assert answers.wait_for(1) == [None]
    assert disk.syncs == before


def test_a_failed_sync_fails_all_requests_takes_the_directory_offline_and_is_never_retried(
    bench: LogBench, disk: _Disk, answers: _Answers, flusher: GroupCommitFlusher
) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    disk.error = OSError(errno.EIO, "Input/output error")
    flusher.request([FlushRequest(log, 1, answers.errors.append)])
    [error] = answers.wait_for(1)
    assert isinstance(error, StorageError)
    assert str(bench.directory) in str(error)
    assert bench.failed_directories == [bench.directory.parent]
    disk.error = None
    flusher.request([FlushRequest(log, 1, answers.errors.append)])
    assert isinstance(answers.wait_for(2)[1], StorageError)
    assert (disk.syncs, log.recovery_point, log.state) == (1, 0, LogState.OFFLINE)


def test_an_unexpected_error_fails_the_request_and_the_next_one_is_served(
    bench: LogBench, answers: _Answers, flusher: GroupCommitFlusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    with monkeypatch.context() as patch:
        patch.setattr(type(log), "flush", lambda self: dict[str, int]()["no such key"])
        flusher.request([FlushRequest(log, 1, answers.errors.append)])
        assert isinstance(answers.wait_for(1)[0], KeyError)
    flusher.request([FlushRequest(log, 1, answers.errors.append)])
    assert answers.wait_for(2)[1] is None


def test_stop_serves_waiting_requests_and_refuses_later_ones(
    bench: LogBench, disk: _Disk, answers: _Answers, flusher: GroupCommitFlusher
) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    disk.release.clear()
    flusher.request([FlushRequest(log, 1, answers.errors.append)])
    assert disk.entered.wait(_WAIT_S)
    append(log, sized_batch(100))
    flusher.request([FlushRequest(log, 2, answers.errors.append)])
    disk.release.set()
    flusher.stop()
    assert answers.errors == [None, None]
    with pytest.raises(RuntimeError, match="stopped"):
        flusher.request([FlushRequest(log, 2, answers.errors.append)])


def _synced_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of files synced from now on, without their leading zeros."""
    synced: list[str] = []
    real = os.fdatasync

    def fdatasync(fd: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")).lstrip("0"))
        real(fd)

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    return synced


def test_a_flush_syncs_sealed_segments_with_their_indexes_and_the_active_one_without(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open(log_config(segment_bytes=1024))
    for _ in range(25):
        append(log, sized_batch(100))
    synced = _synced_files(monkeypatch)
    assert log.flush() == 25
    assert synced == [".log", ".index", ".timeindex", "10.log", "10.index", "10.timeindex", "20.log"]
    synced.clear()
    append(log, sized_batch(100))
    assert log.flush(26) == 26
    assert synced == ["20.log"]
    assert log.flush() == 26
    assert synced == ["20.log"]


def test_a_roll_makes_the_new_files_names_durable_before_the_recovery_point_moves(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    log.roll()
    directories: list[tuple[str, int]] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        if os.path.isdir(path):
            directories.append((path, log.recovery_point))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    bench.scheduler.run_due()
    assert directories == [(str(bench.directory), 0)]
    assert log.recovery_point == 1
    log.rename_directory("orders-0.0123456789abcdef0123456789abcdef-delete")
    assert directories[1:] == [(str(bench.directory.parent), 1)]


def test_a_directory_that_cannot_be_synced_goes_offline_and_the_recovery_point_stays(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    real = os.fsync

    def fsync(fd: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            raise OSError(errno.EIO, "Input/output error")
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StorageError):
        log.flush()
    assert bench.failed_directories == [bench.directory.parent]
    assert log.recovery_point == 0


def test_a_segment_durable_before_its_roll_gets_its_indexes_synced_afterwards(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    log.flush()
    log.roll()
    synced = _synced_files(monkeypatch)
    bench.scheduler.run_due()
    assert synced == [".log", ".index", ".timeindex"]
    synced.clear()
    log.flush()
    assert synced == []


def test_a_clean_stop_syncs_segments_that_no_background_flush_has_reached(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open()
    for _ in range(2):
        append(log, sized_batch(100))
        log.flush()
        log.roll()
    append(log, sized_batch(100))
    synced = _synced_files(monkeypatch)
    log.close()
    assert synced[:3] == ["1.log", "1.index", "1.timeindex"]
    assert set(synced[3:]) == {"2.log", "2.index", "2.timeindex"}


def test_a_segment_sealed_during_its_sync_is_recovered_after_a_crash(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    real = os.fdatasync

    def fdatasync(fd: int) -> None:
        monkeypatch.setattr(os, "fdatasync", real)
        log.roll()
        real(fd)

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    assert log.flush() == 1
    assert (log.durable_offset, log.recovery_point) == (1, 0)
    bench.scheduler.run_due()
    assert log.recovery_point == 1


def test_logs_are_synced_in_parallel_and_fail_independently(
    tmp_path: Path, disk: _Disk, answers: _Answers, flusher: GroupCommitFlusher
) -> None:
    benches = [LogBench(tmp_path / f"disk-{number}") for number in range(2)]
    logs = [bench.open() for bench in benches]
    for log in logs:
        append(log, sized_batch(100))
    disk.together = threading.Barrier(2)  # neither sync ends before the other has begun
    disk.errors = [OSError(errno.EIO, "Input/output error")]
    flusher.request([FlushRequest(log, 1, answers.errors.append) for log in logs])
    errors = answers.wait_for(2)
    assert sorted(isinstance(error, StorageError) for error in errors) == [False, True]
    assert {log.state for log in logs} == {LogState.OFFLINE, LogState.ONLINE}
    assert (flusher.syncs, flusher.failures) == (2, 1)


def test_a_log_does_not_wait_for_the_sync_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: _Answers, flusher: GroupCommitFlusher
) -> None:
    slow, quick = (LogBench(tmp_path / name).open() for name in ("slow", "quick"))
    entered, release = threading.Event(), threading.Event()
    flush = slow.flush

    def flush_when_released() -> int:
        entered.set()
        assert release.wait(_WAIT_S)
        return flush()

    monkeypatch.setattr(slow, "flush", flush_when_released)
    append(slow, sized_batch(100))
    flusher.request([FlushRequest(slow, 1, answers.errors.append)])
    assert entered.wait(_WAIT_S)
    for number in range(1, 4):
        append(quick, sized_batch(100))
        flusher.request([FlushRequest(quick, number, answers.errors.append)])
        assert answers.wait_for(number) == [None] * number
    release.set()
    assert answers.wait_for(4) == [None] * 4


def test_a_flush_during_a_roll_syncs_the_segment_being_sealed(bench: LogBench, monkeypatch: pytest.MonkeyPatch) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    lock = AnnouncedLock(log.core, "flush")
    monkeypatch.setattr(log.core, "lock", lock)
    flush = threading.Thread(target=log.flush, name="flush")
    take_snapshot = ProducerState.take_snapshot

    def while_it_rolls(producers: ProducerState, *, durably: bool) -> Path | None:
        flush.start()
        assert lock.wanted.wait(_WAIT_S)  # the flush is waiting for the lock
        return take_snapshot(producers, durably=durably)

    monkeypatch.setattr(ProducerState, "take_snapshot", while_it_rolls)
    synced = _synced_files(monkeypatch)
    log.roll()
    flush.join(_WAIT_S)
    assert log.durable_offset == 1
    assert ".log" in synced


@pytest.mark.parametrize("change", ["retention", "compaction"])
def test_a_flush_whose_sealed_segment_is_removed_meanwhile_syncs_the_rest(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    log = bench.open(log_config(segment_bytes=1024))
    for _ in range(15):
        append(log, sized_batch(100))
    first = log.segments[0]

    def take_away() -> None:
        if change == "retention":
            log.delete_records(10)
            log.delete_old_segments()
        else:
            cleaned = log.create_segment(0, ".cleaned")
            part = log.read(0, 1024, upper_bound=10, at_least_one_batch=True)
            assert part is not None
            cleaned.append_many(memoryview(bytearray(part.read())), [AppendedBatch(0, part.size, 9, START_MS)])
            cleaned.seal()
            cleaned.sync(with_indexes=True)
            log.replace_segments((cleaned,), (first,))

    real = LogSegment.sync
    taken: list[LogSegment] = []

    def sync(segment: LogSegment, *, with_indexes: bool) -> None:
        if segment is first and not taken:
            taken.append(segment)
            take_away()
            raise FileNotFoundError(errno.ENOENT, "renamed between two system calls")
        real(segment, with_indexes=with_indexes)

    monkeypatch.setattr(LogSegment, "sync", sync)
    assert log.flush() == 15
    assert (log.durable_offset, log.recovery_point, log.state) == (15, 15, LogState.ONLINE)

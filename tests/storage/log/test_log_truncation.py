"""Truncation of a live log: everything derived from its end follows, and truncated records never come back."""

from __future__ import annotations

import errno
import os
import resource
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.broker.storage.log import truncation as log_truncation
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.state import LogState
from barnabas.protocol.errors import BrokerError, ErrorCode
from tests.support.storage.bench import START_MS, LogBench, append, batch, log_config, read_batches, sized_batch

_CONFIG = log_config(segment_bytes=1024, index_interval_bytes=200)


def _filled(bench: LogBench, count: int = 35, **header: int) -> PartitionLog:
    """`count` batches of 100 bytes, ten to a segment, a ms apart; a new leader epoch with each segment."""
    log = bench.open(_CONFIG)
    for number in range(count):
        sequence = {"base_sequence": number} if header else {}
        append(log, sized_batch(100, START_MS + number, **header, **sequence), leader_epoch=number // 10)
    return log


def _offsets(log: PartitionLog) -> list[int]:
    return [found.base_offset for found in read_batches(log)]


def _bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


@pytest.mark.parametrize("offset", [0, 1, 9, 10, 11, 20, 29, 30, 34])
@pytest.mark.parametrize("clean", [True, False])
def test_records_at_or_above_the_offset_go_and_the_next_append_gets_that_offset(
    bench: LogBench, offset: int, clean: bool
) -> None:
    log = _filled(bench)
    bench.scheduler.run_due()
    assert log.truncate_to(offset)
    assert (log.log_end_offset, log.high_watermark, _offsets(log)) == (offset, offset, list(range(offset)))
    assert _bases(log) == [base for base in (0, 10, 20, 30) if base <= offset]
    assert max(log.recovery_point, log.durable_offset) <= offset
    assert append(log, sized_batch(100, START_MS + 99), leader_epoch=7) == offset
    if clean:
        bench.close(log)
    else:
        bench.crash(log)
    log = bench.open(_CONFIG, clean=clean)
    assert (log.log_end_offset, _offsets(log)) == (offset + 1, list(range(offset + 1)))


def test_an_offset_at_or_above_the_end_changes_nothing_but_the_leader_epochs(bench: LogBench) -> None:
    log = _filled(bench)
    log.assign_epoch_start_offset(9, 35)
    assert not log.truncate_to(36)
    assert log.latest_leader_epoch == 9
    assert not log.truncate_to(35)
    assert (log.log_end_offset, log.latest_leader_epoch) == (35, 3)
    assert (bench.directory / "leader-epoch-checkpoint").read_text() == "0\n4\n0 0\n1 10\n2 20\n3 30\n"


def test_a_batch_that_contains_the_offset_goes_as_a_whole(bench: LogBench) -> None:
    log = bench.open(_CONFIG)
    for _ in range(3):
        append(log, batch((START_MS, b"k", b"a"), (START_MS, b"k", b"b")))
    assert log.truncate_to(3)
    assert (log.log_end_offset, _offsets(log)) == (3, [0])
    assert append(log, batch((START_MS, b"k", b"c"))) == 3
    assert _offsets(log) == [0, 3]


def test_indexes_contain_nothing_of_the_cut_and_are_right_for_later_appends(bench: LogBench) -> None:
    log = _filled(bench, 9)
    log.truncate_to(5)
    assert log.segments[-1].largest_timestamp() == START_MS + 4
    for number in range(5, 9):
        append(log, sized_batch(100, START_MS + number))
    bench.close(log)
    # A truncation resets the byte counter, as an open does, and writes the largest timestamp as a closing entry.
    assert bench.offset_entries() == [(3, 300), (8, 800)]
    assert bench.time_entries() == [(START_MS + offset, offset) for offset in (3, 4, 8)]


def test_leader_epochs_are_cut_on_disk(bench: LogBench) -> None:
    log = _filled(bench)
    log.truncate_to(20)
    assert (log.latest_leader_epoch, log.leader_epoch_for(19)) == (1, 1)
    assert (bench.directory / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n1 10\n"


def test_a_producer_continues_with_the_sequence_after_its_remaining_batches(bench: LogBench) -> None:
    log = _filled(bench, producer_id=7, producer_epoch=0)
    log.truncate_to(25)
    with pytest.raises(BrokerError) as caught:
        append(log, sized_batch(100, producer_id=7, producer_epoch=0, base_sequence=26))
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, sized_batch(100, producer_id=7, producer_epoch=0, base_sequence=25)) == 25
    assert [name for name in bench.names() if name.endswith(".snapshot")] == [
        f"{offset:020d}.snapshot" for offset in (10, 20, 25)
    ]


def test_a_start_offset_above_the_cut_is_lowered_to_it(bench: LogBench) -> None:
    log = _filled(bench)
    log.delete_records(33)
    log.truncate_to(31)
    assert (log.log_start_offset, log.log_end_offset) == (31, 31)


def test_an_offset_below_the_first_segment_drops_everything_and_begins_there(bench: LogBench) -> None:
    log = _filled(bench)
    log.delete_records(25)
    log.delete_old_segments()
    assert log.truncate_to(5)
    assert (log.log_start_offset, log.log_end_offset, _bases(log)) == (5, 5, [5])
    assert append(log, sized_batch(100)) == 5


def test_a_fully_truncated_log_keeps_nothing(bench: LogBench) -> None:
    log = _filled(bench, producer_id=7, producer_epoch=0)
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset, _bases(log), log.producer_count) == (100, 100, [100], 0)
    assert (log.latest_leader_epoch, log.recovery_point, log.durable_offset) == (-1, 100, 100)
    assert append(log, sized_batch(100, producer_id=7, producer_epoch=0, base_sequence=3), leader_epoch=1) == 100
    assert (bench.directory / "leader-epoch-checkpoint").read_text() == "0\n1\n1 100\n"
    bench.close(log)
    log = bench.open(_CONFIG)
    assert (log.log_start_offset, _offsets(log)) == (100, [100])


def test_a_log_may_begin_again_at_the_base_of_its_last_segment(bench: LogBench) -> None:
    log = _filled(bench)
    log.truncate_fully_and_start_at(30)
    assert (log.size_bytes, append(log, sized_batch(100)), _offsets(log)) == (0, 30, [30])


def test_dropped_segments_are_renamed_immediately_and_removed_after_the_delay(bench: LogBench) -> None:
    log = _filled(bench)
    log.truncate_to(15)
    assert bench.path(20, ".log.deleted").exists()
    assert not bench.log_path(20).exists()
    bench.scheduler.advance(log.config.file_delete_delay_ms)
    assert not [name for name in bench.names() if name.endswith(".deleted")]


def test_a_slice_read_before_a_truncation_keeps_its_bytes(bench: LogBench) -> None:
    log = _filled(bench)
    part = log.read(25, 1000, upper_bound=35, at_least_one_batch=True)
    assert part is not None
    log.truncate_to(15)
    assert struct.unpack_from(">q", part.read())[0] == 25


def test_a_sync_before_a_truncation_does_not_cover_later_appends(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _filled(bench)
    active = log.segments[-1]
    real = os.fdatasync

    def cut_meanwhile(descriptor: int) -> None:
        monkeypatch.setattr(os, "fdatasync", real)
        real(descriptor)
        log.truncate_to(12)
        for _ in range(5):
            append(log, sized_batch(100))

    monkeypatch.setattr(os, "fdatasync", cut_meanwhile)
    assert active.size_bytes
    log.flush()
    assert (log.log_end_offset, log.durable_offset, log.recovery_point) == (17, 0, 0)
    assert log.flush() == 17


def test_readers_during_a_truncation_get_whole_records_or_nothing(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that holds a segment's index map while the index file is replaced."""
    log = _filled(bench, 39)
    old = log.segments[2]
    assert old.index_position(29) == 900
    index_map = old.offset_index._buffer()
    log.truncate_to(21)
    assert index_map[-8:] == struct.pack(">ii", 9, 900)  # its file was unlinked, not shortened: no SIGBUS
    assert old.find_batch(29, old.size_bytes) is None


def test_a_disk_error_during_a_truncation_takes_the_log_offline_and_the_next_start_recovers_it(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _filled(bench)
    bench.scheduler.run_due()

    def fail(descriptor: int, size: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(os, "ftruncate", fail)
        with pytest.raises(BrokerError) as caught:
            log.truncate_to(15)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.state is LogState.OFFLINE
    assert bench.failed_directories == [bench.directory.parent]
    bench.crash(log)
    log = bench.open(_CONFIG, clean=False)
    assert _offsets(log) == list(range(20)), f"{log_truncation.__name__} drops segments first"


@pytest.mark.parametrize("call", ["truncate_to", "truncate_fully_and_start_at"])
def test_a_negative_offset_is_a_value_error(bench: LogBench, call: str) -> None:
    log = _filled(bench, 3)
    with pytest.raises(ValueError, match="-1"):
        getattr(log, call)(-1)
    assert _offsets(log) == [0, 1, 2]


@contextmanager
def few_descriptors(count: int) -> Iterator[None]:
    """Let this process open only `count` further files."""
    used = {int(each) for each in os.listdir("/proc/self/fd")}
    limit = next(each for each in range(1 << 20) if each - sum(number < each for number in used) == count)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("start", [None, 15, 100], ids=["cut", "anew inside", "anew above"])
def test_too_many_open_files_leave_a_log_as_it_is_and_online(tmp_path: Path, start: int | None) -> None:
    outcomes = []
    for count in range(12):
        bench = LogBench(tmp_path / str(count))
        log = _filled(bench)
        for segment in log.segments:
            segment.log.evict()
        with few_descriptors(count):
            try:
                log.truncate_to(15) if start is None else log.truncate_fully_and_start_at(start)
                outcomes.append("")
            except BrokerError as error:
                outcomes.append(error.message)
        assert (bench.failed_directories, log.state) == ([], LogState.ONLINE), (count, outcomes)
        if outcomes[-1]:
            assert "Too many open files" in outcomes[-1]
            assert _offsets(log) == list(range(35))
            log.truncate_to(15) if start is None else log.truncate_fully_and_start_at(start)
        assert log.log_end_offset == (start or 15)
        append(log, sized_batch(100))
    assert outcomes[0]
    assert not outcomes[-1]

"""Retention: the deleted segments, their order, and the removal of their files."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.storage.log import retainer
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.retainer import EPOCH_FLUSH_TASK
from barnabas.broker.storage.log.retention import deletable_segments
from barnabas.broker.storage.segment.deletion import DELETE_FILE_TASK, delete_later
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.protocol.errors import BrokerError, ErrorCode
from tests.support.storage.bench import START_MS, AnnouncedLock, LogBench, append, log_config, read_batches, sized_batch

_MINUTE = 60_000


def _bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def _filled(bench: LogBench, count: int, **changes: object) -> PartitionLog:
    """`count` batches of 100 bytes, a second apart, ten to a segment."""
    log = bench.open(log_config(**{"segment_bytes": 1024, "retention_ms": -1, **changes}))
    for number in range(count):
        append(log, sized_batch(100, START_MS + number * 1000))
    return log


def test_a_record_every_5_s_stays_readable_for_ten_minutes_and_leaves_the_disk_a_minute_later(bench: LogBench) -> None:
    config = log_config(segment_bytes=16384, retention_ms=600_000, file_delete_delay_ms=_MINUTE)
    log = bench.open(config)
    unreadable_at = gone_at = -1
    for step in range(400):
        bench.scheduler.advance(START_MS + step * 5000 - bench.clock.now_ms)
        append(log, sized_batch(150 if step else 148, bench.clock.now_ms))
        if step % 60 == 0:
            log.delete_old_segments()
        if unreadable_at < 0 and log.log_start_offset > 0:
            unreadable_at = step * 5
            assert not bench.log_path(0).exists()
            assert bench.path(0, ".log.deleted").exists()
        if gone_at < 0 and unreadable_at > 0 and not bench.path(0, ".log.deleted").exists():
            gone_at = step * 5
    # 109 records fill the first segment at 540 s; the check at 1200 s is the first more than 600 s after its last one.
    assert (unreadable_at, gone_at) == (1200, 1260)
    assert next(read_batches(log)).base_offset == log.log_start_offset == _bases(log)[0]


def test_a_segment_is_deleted_by_time_only_strictly_after_retention_ms(bench: LogBench) -> None:
    log = _filled(bench, 25, retention_ms=1000)
    bench.clock.now_ms = START_MS + 9000 + 1000
    assert log.delete_old_segments() == 0
    bench.clock.now_ms += 1
    assert log.delete_old_segments() == 1
    assert (_bases(log), log.log_start_offset) == ([10, 20], 10)


def test_retention_by_time_uses_the_largest_timestamp_of_a_segment_not_its_last(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=1024, retention_ms=1000))
    append(log, sized_batch(100, START_MS + 50_000))
    for _ in range(15):
        append(log, sized_batch(100, START_MS))
    bench.clock.now_ms = START_MS + 40_000
    assert log.delete_old_segments() == 0


def test_without_timestamps_retention_by_time_uses_the_age_of_the_file(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=1024, retention_ms=1000))
    for _ in range(15):
        append(log, sized_batch(100, -1))
    for base in (0, 10):
        os.utime(bench.log_path(base), (START_MS / 1000, START_MS / 1000))
    bench.clock.now_ms = START_MS + 1000
    assert log.delete_old_segments() == 0
    bench.clock.now_ms += 1
    assert log.delete_old_segments() == 2


def test_the_largest_timestamp_is_known_after_a_restart(bench: LogBench) -> None:
    log = _filled(bench, 25, retention_ms=1000)
    bench.close(log)
    log = bench.open(log_config(segment_bytes=1024, retention_ms=1000))
    bench.clock.now_ms = START_MS + 9000 + 1001
    assert log.delete_old_segments() == 1


def test_the_active_segment_is_deleted_by_time_after_a_roll(bench: LogBench) -> None:
    log = _filled(bench, 25, retention_ms=1000)
    bench.clock.now_ms = START_MS + 10**6
    assert log.delete_old_segments() == 3
    assert (_bases(log), log.log_start_offset, log.log_end_offset) == ([25], 25, 25)
    assert log.delete_old_segments() == 0
    assert append(log, sized_batch(100)) == 25


def test_retention_by_size_never_goes_below_the_limit(bench: LogBench) -> None:
    log = _filled(bench, 25, retention_bytes=1500)
    assert log.size_bytes == 2500
    assert log.delete_old_segments() == 1
    assert log.size_bytes == 1500
    log.update_config(log_config(segment_bytes=1024, retention_ms=-1, retention_bytes=501))
    assert log.delete_old_segments() == 0
    log.update_config(log_config(segment_bytes=1024, retention_ms=-1, retention_bytes=0))
    assert log.delete_old_segments() == 2
    assert (log.size_bytes, log.log_start_offset) == (0, 25)


def test_segments_below_the_log_start_offset_are_deleted_but_never_the_active_one(bench: LogBench) -> None:
    log = _filled(bench, 25)
    log.delete_records(19)
    assert log.delete_old_segments() == 1
    log.delete_records(20)
    assert log.delete_old_segments() == 1
    log.delete_records(-1)
    assert log.delete_old_segments() == 0
    assert (_bases(log), log.log_start_offset, log.log_end_offset) == ([20], 25, 25)


@pytest.mark.parametrize("compact", [True, False])
def test_without_the_delete_policy_only_the_log_start_rule_applies(bench: LogBench, compact: bool) -> None:
    log = _filled(bench, 25)
    log.update_config(log_config(delete=False, compact=compact, retention_ms=0, retention_bytes=0))
    bench.clock.now_ms += 10**9
    assert log.delete_old_segments() == 0
    log.delete_records(10)
    assert log.delete_old_segments() == 1


def test_a_deleted_segments_files_and_snapshot_are_renamed_immediately_and_removed_after_the_delay(
    bench: LogBench,
) -> None:
    log = _filled(bench, 25, file_delete_delay_ms=_MINUTE)
    bench.scheduler.run_due()
    log.delete_records(20)
    log.delete_old_segments()
    gone = [
        f"{base:020d}{suffix}.deleted"
        for base in (0, 10)
        for suffix in (".index", ".log", ".snapshot", ".timeindex")
        if (base, suffix) != (0, ".snapshot")
    ]
    assert [name for name in bench.names() if name.endswith(".deleted")] == sorted(gone)
    assert DELETE_FILE_TASK in bench.scheduler.pending()
    bench.scheduler.advance(_MINUTE - 1)
    assert bench.path(0, ".log.deleted").exists()
    bench.scheduler.advance(1)
    assert bench.names() == sorted(
        ["leader-epoch-checkpoint"] + [f"{20:020d}{suffix}" for suffix in (".index", ".log", ".snapshot", ".timeindex")]
    )


def test_files_waiting_for_removal_survive_a_clean_stop_and_are_removed_at_the_next_start(bench: LogBench) -> None:
    log = _filled(bench, 25)
    log.delete_records(20)
    log.delete_old_segments()
    bench.close(log)
    assert bench.path(0, ".log.deleted").exists()
    log = bench.open(log_config(segment_bytes=1024))
    assert not bench.path(0, ".log.deleted").exists()
    assert (log.log_start_offset, log.log_end_offset) == (20, 25)


def test_delete_records_moves_the_start_offset_within_the_high_watermark_only(bench: LogBench) -> None:
    log = _filled(bench, 5)
    assert log.delete_records(3) == 3
    assert log.delete_records(1) == 3
    with pytest.raises(BrokerError) as caught:
        log.delete_records(6)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.delete_records(-1) == 5
    assert log.recovery_point >= log.log_start_offset


def test_the_first_leader_epoch_begins_at_the_new_log_start(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=1024, retention_ms=-1))
    for number in range(25):
        append(log, sized_batch(100), leader_epoch=number // 12)
    log.delete_records(15)
    bench.scheduler.run_due()
    assert EPOCH_FLUSH_TASK in bench.scheduler.counters
    assert (bench.directory / "leader-epoch-checkpoint").read_text() == "0\n2\n1 15\n2 24\n"


def test_a_timestamp_in_the_future_keeps_its_segment_with_a_warning(
    bench: LogBench, caplog: pytest.LogCaptureFixture
) -> None:
    log = bench.open(log_config(segment_bytes=1024, retention_ms=1000))
    append(log, sized_batch(100, START_MS + 10**9))
    assert log.delete_old_segments() == 0
    assert "timestamps in the future" in caplog.text


def test_a_record_appended_while_retention_decides_is_not_deleted(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _filled(bench, 5, retention_ms=1000)
    bench.clock.now_ms = START_MS + 10**6
    decisions: list[int] = []

    def decide(*arguments: Any, **kwargs: Any) -> tuple[LogSegment, ...]:
        doomed = deletable_segments(*arguments, **kwargs)
        decisions.append(len(doomed))
        if decisions == [0, 0, 1]:  # by start offset, by size, and now by time: the active segment is old
            append(log, sized_batch(100, bench.clock.now_ms))
        return doomed

    monkeypatch.setattr(retainer, "deletable_segments", decide)
    assert log.delete_old_segments() == 0
    assert decisions == [0, 0, 1, 0]
    assert [found.base_offset for found in read_batches(log)] == list(range(6))


def test_an_append_during_the_retention_of_many_segments_waits_for_one_stretch_of_them(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retainer, "STRETCH_SEGMENTS", 3)
    log = _filled(bench, 100)
    lock = AnnouncedLock(log.core, "producer")
    monkeypatch.setattr(log.core, "lock", lock)
    producer = threading.Thread(target=append, args=(log, sized_batch(100)), name="producer")
    appended: list[tuple[int, list[int]]] = []
    rename = os.rename

    def during(source: Path, target: Path) -> None:
        rename(source, target)
        if producer.ident is None:  # the first snapshot: the lock is held
            producer.start()
            assert lock.wanted.wait(20)
        elif not appended and str(target).endswith(".log.deleted"):
            producer.join(20)
            appended.append((log.log_end_offset, _bases(log)))

    monkeypatch.setattr(os, "rename", during)
    log.delete_records(75)
    assert log.delete_old_segments() == 7
    assert appended == [(101, list(range(30, 101, 10)))]
    assert (_bases(log), log.log_start_offset) == ([70, 80, 90, 100], 75)
    assert [found.base_offset for found in read_batches(log, 75)] == list(range(75, 101))


@pytest.mark.parametrize("count", [3, 6])
def test_all_segments_of_several_stretches_go_and_are_reported_once(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    monkeypatch.setattr(retainer, "STRETCH_SEGMENTS", 3)
    caplog.set_level(logging.INFO, logger=retainer.logger.name)
    log = _filled(bench, count * 10, retention_ms=1000)
    bench.clock.now_ms = START_MS + 10**6
    assert log.delete_old_segments() == count
    assert (_bases(log), log.log_start_offset, log.log_end_offset) == ([count * 10], count * 10, count * 10)
    assert [each.getMessage() for each in caplog.records if "deleting" in each.getMessage()] == [
        f"deleting {count} segments of orders-0 by retention.ms: log_start_offset={count * 10}, delay_ms=60000"
    ]


def test_a_crash_between_two_stretches_leaves_the_newer_segments_to_the_next_retention(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retainer, "STRETCH_SEGMENTS", 3)
    log = _filled(bench, 100, retention_ms=1000)
    log.flush()
    bench.clock.now_ms = START_MS + 10**6

    def crash(*arguments: Any) -> None:
        delete_later(*arguments)
        raise RuntimeError("crash")

    with monkeypatch.context() as crashing:
        crashing.setattr(f"{retainer.__name__}.delete_later", crash)
        with pytest.raises(RuntimeError, match="crash"):
            log.delete_old_segments()
    bench.crash(log)
    log = bench.open(log.config, clean=False)
    assert (log.log_start_offset, log.log_end_offset) == (30, 100)
    assert [found.base_offset for found in read_batches(log)] == list(range(30, 100))
    assert log.delete_old_segments() == 7
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)

"""Reloads: after a clean stop no segment is scanned, after a crash every whole batch is kept."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.broker.storage.log.loading.loader import LoadProgress, LoadRequest
from barnabas.broker.storage.log.opening import open_log
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.state import LoadState
from tests.support.storage.bench import (
    START_MS,
    TOPIC_ID,
    TP,
    LogBench,
    append,
    log_config,
    read_batches,
    read_records,
    sized_batch,
)

_CONFIG = log_config(segment_bytes=1024, index_interval_bytes=200)


def _fill(bench: LogBench, count: int, *, config: object = _CONFIG) -> PartitionLog:
    log = bench.open(config)  # type: ignore[arg-type]
    for number in range(count):
        append(log, sized_batch(100, START_MS + number))
    return log


def _files(bench: LogBench, *suffixes: str) -> dict[str, bytes]:
    return {name: (bench.directory / name).read_bytes() for name in bench.names() if name.endswith(suffixes)}


def _offsets(log: PartitionLog) -> list[int]:
    return [found.base_offset for found in read_batches(log)]


def test_a_clean_reload_serves_everything_and_accepts_appends(bench: LogBench) -> None:
    log = _fill(bench, 25)
    bench.close(log)
    before = _files(bench, ".log", ".index", ".timeindex", ".snapshot")
    log = bench.open(_CONFIG)
    assert (log.log_end_offset, log.recovery_point, log.segment_count) == (25, 25, 3)
    assert _offsets(log) == list(range(25))
    assert append(log, sized_batch(100)) == 25
    bench.close(log)
    after = _files(bench, ".log", ".index", ".timeindex", ".snapshot")
    assert {name: after[name] for name in before if name[:20] in (f"{0:020d}", f"{10:020d}")} == {
        name: content for name, content in before.items() if name[:20] in (f"{0:020d}", f"{10:020d}")
    }


def test_closing_trims_indexes_adds_the_last_time_entry_and_writes_a_snapshot(bench: LogBench) -> None:
    log = _fill(bench, 8)
    bench.close(log)
    assert bench.offset_entries() == [(3, 300), (6, 600)]
    assert bench.time_entries() == [(START_MS + offset, offset) for offset in (3, 6, 7)]
    assert os.path.getsize(bench.path(0, ".index")) == 16
    assert os.path.getsize(bench.path(0, ".timeindex")) == 36
    assert os.path.getsize(bench.path(8, ".snapshot")) == 10


def test_closing_an_empty_log_writes_no_snapshot(bench: LogBench) -> None:
    bench.close(bench.open())
    assert not [name for name in bench.names() if name.endswith(".snapshot")]


def test_the_byte_count_to_the_next_index_entry_starts_at_0_at_every_open(bench: LogBench) -> None:
    log = _fill(bench, 2)
    bench.close(log)
    log = bench.open(_CONFIG)
    for number in range(2, 6):
        append(log, sized_batch(100, START_MS + number))
    assert bench.offset_entries() == [(5, 500)]


def test_a_clean_reload_opens_only_the_active_segment(bench: LogBench) -> None:
    log = _fill(bench, 95)
    bench.close(log)
    for base in range(0, 90, 10):
        # A pipe instead of the file: opening it would block.
        os.unlink(bench.path(base, ".index"))
        os.mkfifo(bench.path(base, ".index"))
    assert bench.open(_CONFIG).log_end_offset == 95


def test_recovery_after_a_crash_keeps_what_was_written(bench: LogBench) -> None:
    log = _fill(bench, 25)
    bench.scheduler.run_due()
    bench.crash(log)
    assert bench.recovery_point == 20
    log = bench.open(_CONFIG, clean=False)
    assert (log.log_end_offset, log.segment_count, log.recovery_point) == (25, 3, 20)
    assert _offsets(log) == list(range(25))


def test_recovery_rebuilds_the_same_indexes_as_a_clean_stop_leaves(bench: LogBench, tmp_path: Path) -> None:
    log = _fill(bench, 25)
    bench.crash(log)
    for base in (0, 10, 20):
        bench.path(base, ".index").write_bytes(b"\xff" * 77)
        bench.path(base, ".timeindex").write_bytes(bytes(24))
    bench.recovery_point = 0
    bench.close(bench.open(_CONFIG, clean=False))
    other = LogBench(tmp_path / "other")
    other.close(_fill(other, 25))
    assert _files(bench, ".log", ".index", ".timeindex", ".snapshot") == _files(
        other, ".log", ".index", ".timeindex", ".snapshot"
    )


def test_recovery_starts_in_the_segment_that_contains_the_recovery_point(bench: LogBench) -> None:
    log = _fill(bench, 35)
    bench.crash(log)
    for base in (0, 10, 20):  # a flipped bit in each: only a scan of the segment detects it
        with bench.log_path(base).open("r+b") as file:
            file.seek(190)
            file.write(b"\xff")
    bench.recovery_point = 25
    log = bench.open(_CONFIG, clean=False)
    assert (log.log_end_offset, [segment.base_offset for segment in log.segments]) == (21, [0, 10, 20])


def _cut(bench: LogBench, path: Path) -> None:
    os.truncate(path, os.path.getsize(path) - 37)


def _cut_in_header(bench: LogBench, path: Path) -> None:
    os.truncate(path, os.path.getsize(path) - 70)


def _zeros(bench: LogBench, path: Path) -> None:
    size = os.path.getsize(path)
    os.truncate(path, size - 60)
    os.truncate(path, size + 4000)


def _garbage(bench: LogBench, path: Path) -> None:
    os.truncate(path, os.path.getsize(path) - 100)
    with path.open("ab") as file:
        file.write(bytes(range(256)) * 3)


def _old_magic(bench: LogBench, path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(os.path.getsize(path) - 100 + 16)
        file.write(b"\1")


def _repeated_offsets(bench: LogBench, path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-100] + data[:100])


def _huge_claim(bench: LogBench, path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(os.path.getsize(path) - 100 + 8)
        file.write(struct.pack(">i", 2**31 - 13))


@pytest.mark.parametrize("damage", [_cut, _cut_in_header, _zeros, _garbage, _old_magic, _repeated_offsets, _huge_claim])
def test_recovery_drops_only_the_torn_last_batch(
    bench: LogBench, damage: Callable[[LogBench, Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    log = _fill(bench, 25)
    bench.crash(log)
    damage(bench, bench.log_path(20))
    log = bench.open(_CONFIG, clean=False)
    assert _offsets(log) == list(range(24))
    assert os.path.getsize(bench.log_path(20)) == 400
    assert append(log, sized_batch(100)) == 24
    bench.close(log)
    assert _offsets(bench.open(_CONFIG)) == list(range(25))


@pytest.mark.parametrize("position", range(0, 1000, 97))
def test_a_corrupt_batch_in_the_middle_ends_the_log_there(bench: LogBench, position: int) -> None:
    log = _fill(bench, 35)
    bench.crash(log)
    with bench.log_path(10).open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 0x55]))
    log = bench.open(_CONFIG, clean=False)
    inside = position % 100
    # Base offset and leader epoch are outside of the CRC, but a wrong base offset breaks the sequence of offsets.
    expected = 10 + position // 100 if not 12 <= inside < 16 else 35
    assert log.log_end_offset == expected
    assert _offsets(log) == list(range(expected))
    if expected < 35:
        assert [segment.base_offset for segment in log.segments] == [0, 10]
        assert bench.path(20, ".log.deleted").exists()
        assert not bench.path(20, ".snapshot").exists()


def test_a_missing_offset_index_is_rebuilt_even_after_a_clean_stop(bench: LogBench) -> None:
    log = _fill(bench, 25)
    bench.close(log)
    expected = bench.offset_entries(10), bench.time_entries(10)
    bench.path(10, ".index").unlink()
    log = bench.open(_CONFIG)
    assert (bench.offset_entries(10), bench.time_entries(10)) == expected
    assert _offsets(log) == list(range(25))


def test_a_missing_time_index_becomes_an_empty_file(bench: LogBench) -> None:
    log = _fill(bench, 25)
    bench.close(log)
    bench.path(10, ".timeindex").unlink()
    log = bench.open(_CONFIG)
    assert bench.path(10, ".timeindex").read_bytes() == b""
    found = log.offset_for_timestamp(START_MS + 15)
    assert found is not None
    assert found.offset == 15


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 80,
        b"\xff" * 7,
        struct.pack(">ii", 3, 350),
        struct.pack(">ii", 3, 200),
        struct.pack(">ii", 9, 99999),
    ],
)
@pytest.mark.parametrize("base", [10, 20])
def test_a_bad_index_is_detected_before_its_first_use_even_after_a_clean_stop(
    bench: LogBench, base: int, content: bytes
) -> None:
    log = _fill(bench, 25)
    bench.close(log)
    bench.path(base, ".index").write_bytes(content)
    log = bench.open(_CONFIG)
    assert log.log_end_offset == 25
    assert _offsets(log) == list(range(25))
    for offset in range(25):
        part = log.read(offset, 1, upper_bound=25, at_least_one_batch=True)
        assert part is not None
        assert part.read()[:8] == struct.pack(">q", offset)


@pytest.mark.parametrize(
    "content",
    [
        b"\0" * 13,
        b"\xff" * 36,
        bytes(10485756),  # the full size, as after a crash
        struct.pack(">qi", START_MS + 5, -1),
        struct.pack(">qiqi", START_MS + 9, 3, START_MS + 5, 6),
    ],
    ids=["short", "garbage", "oversized", "below", "descending"],
)
@pytest.mark.parametrize("base", [10, 20])
def test_a_bad_time_index_is_detected_before_its_first_use_even_after_a_clean_stop(
    bench: LogBench, base: int, content: bytes
) -> None:
    log = _fill(bench, 25)
    bench.close(log)
    bench.path(base, ".timeindex").write_bytes(content)
    log = bench.open(_CONFIG)
    assert log.segments[base // 10].largest_timestamp() == START_MS + min(base + 9, 24)
    for offset in range(base, min(base + 10, 25)):
        found = log.offset_for_timestamp(START_MS + offset)
        assert found is not None
        assert found.offset == offset


def test_a_torn_tail_is_recovered_in_spite_of_a_clean_shutdown_marker(bench: LogBench) -> None:
    log = _fill(bench, 25)
    bench.close(log)
    with bench.log_path(20).open("r+b") as file:
        file.seek(450)
        file.write(b"\xff" * 50)  # the CRC is wrong, the header is whole: no scan, so not detected
    assert bench.open(_CONFIG).log_end_offset == 25
    with bench.log_path(20).open("r+b") as file:
        file.seek(400)
        file.write(b"\xff" * 50)
    bench.path(20, ".index").write_bytes(b"")
    assert bench.open(_CONFIG).log_end_offset == 24


def test_indexes_without_a_log_file_are_removed(bench: LogBench) -> None:
    log = _fill(bench, 5)
    bench.close(log)
    for suffix in (".index", ".timeindex", ".txnindex"):
        bench.path(77, suffix).write_bytes(b"x")
    bench.open(_CONFIG)
    assert not [name for name in bench.names() if "77" in name]


def test_preallocated_zeros_are_cut_by_recovery(bench: LogBench) -> None:
    config = log_config(segment_bytes=4096, preallocate=True)
    log = _fill(bench, 5, config=config)
    bench.crash(log)
    assert os.path.getsize(bench.log_path()) == 4096
    log = bench.open(config, clean=False)
    assert (os.path.getsize(bench.log_path()), log.log_end_offset) == (500, 5)
    assert append(log, sized_batch(100)) == 5


def test_a_log_that_ends_below_its_start_offset_begins_again_there(bench: LogBench) -> None:
    log = _fill(bench, 25)
    bench.close(log)
    bench.log_start_offset = 40
    log = bench.open(_CONFIG)
    assert (log.log_start_offset, log.log_end_offset) == (40, 40)
    assert append(log, sized_batch(100)) == 40
    assert [found.base_offset for found in read_batches(log)] == [40]
    assert bench.path(20, ".log.deleted").exists()


def test_the_start_offset_is_the_checkpoint_or_the_first_base_whichever_is_greater(bench: LogBench) -> None:
    log = _fill(bench, 25)
    bench.close(log)
    bench.log_start_offset = 7
    log = bench.open(_CONFIG)
    assert log.log_start_offset == 7
    assert next(iter(read_records(log))).offset == 7
    bench.close(log)
    for path in bench.directory.glob(f"{0:020d}*"):
        path.unlink()
    assert bench.open(_CONFIG).log_start_offset == 10


def test_leader_epochs_above_the_end_are_dropped_and_those_of_batches_are_added(bench: LogBench) -> None:
    log = _fill(bench, 5)
    append(log, sized_batch(100), leader_epoch=3)
    bench.crash(log)
    (bench.directory / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n9 50\n")
    log = bench.open(_CONFIG, clean=False)
    assert log.log_end_offset == 6
    assert (bench.directory / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    (bench.directory / "leader-epoch-checkpoint").unlink()
    log = bench.open(_CONFIG, clean=False)
    assert [log.leader_epoch_for(offset) for offset in (0, 4, 5)] == [0, 0, 3]
    assert (bench.directory / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n3 5\n"


def test_loading_reports_its_progress(bench: LogBench) -> None:
    log = _fill(bench, 25)
    bench.crash(log)
    progress = LoadProgress()
    open_log(LoadRequest(bench.directory, TP, _CONFIG, False, 0, 0), bench.services, progress, topic_id=TOPIC_ID)
    assert (progress.state, progress.segments_total, progress.segments_left) == (LoadState.ONLINE, 3, 0)


def test_recovery_rebuilds_the_indexes_of_a_segment_that_was_flushed_to_its_end_and_rolled(bench: LogBench) -> None:
    log = _fill(bench, 10)
    log.flush()
    bench.recovery_point = log.recovery_begin
    log.roll()
    append(log, sized_batch(100, START_MS + 10))
    log.go_offline()
    expected = _files(bench, ".index", ".timeindex")["00000000000000000000.timeindex"]
    for suffix in (".index", ".timeindex"):  # as a power failure may leave what was not synced
        os.truncate(bench.path(0, suffix), 0)

    bench.open(_CONFIG, clean=False)

    assert bench.path(0, ".timeindex").read_bytes() == expected


def test_the_checkpointed_recovery_point_is_exact_unless_the_log_may_roll_there(bench: LogBench) -> None:
    log = _fill(bench, 3)
    log.flush()
    assert (log.recovery_point, log.recovery_begin) == (3, 2)
    append(log, sized_batch(100))
    assert log.recovery_begin == 3
    log.flush()
    log.roll()
    assert (log.recovery_point, log.recovery_begin) == (4, 0)
    log.flush()
    assert log.recovery_begin == 4
    append(log, sized_batch(100))
    log.close()
    assert log.recovery_begin == 5

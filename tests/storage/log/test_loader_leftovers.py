"""Files of an interrupted deletion, cleaning or swap, and their treatment at the next start."""

from __future__ import annotations

import itertools
import shutil

import pytest

from barnabas.broker.storage.log.partition_log import PartitionLog
from tests.support.storage.bench import START_MS, LogBench, append, log_config, read_batches, sized_batch

_CONFIG = log_config(segment_bytes=1024, index_interval_bytes=200, segment_index_bytes=4096)
_SUFFIXES = (".log", ".index", ".timeindex")


def _closed(bench: LogBench, count: int = 35) -> None:
    log = bench.open(_CONFIG)
    for number in range(count):
        append(log, sized_batch(100, START_MS + number))
    bench.close(log)


def _copy_as(bench: LogBench, base: int, stage: str) -> None:
    """A compacted copy of a segment at one stage of a swap; it keeps every second batch."""
    data = bench.log_path(base).read_bytes()
    kept = b"".join(data[start : start + 100] for start in range(100, len(data), 200))
    bench.path(base, f".log{stage}").write_bytes(kept)
    for suffix in (".index", ".timeindex"):
        bench.path(base, f"{suffix}{stage}").write_bytes(b"")


def _offsets(log: PartitionLog) -> list[int]:
    return [found.base_offset for found in read_batches(log)]


@pytest.mark.parametrize("clean", [True, False])
def test_deleted_files_are_removed_and_unknown_files_stay(bench: LogBench, clean: bool) -> None:
    _closed(bench)
    for name in (f"{0:020d}.log.deleted", f"{0:020d}.snapshot.deleted", "x.deleted"):
        (bench.directory / name).write_bytes(b"x")
    kept = ("00000000000000000005-0000000001.checkpoint", "00000000000000000003-0000000001.checkpoint.deleted", "notes")
    for name in kept:
        (bench.directory / name).write_bytes(b"x")
    log = bench.open(_CONFIG, clean=clean)
    assert not [name for name in bench.names() if name.endswith(".deleted") and name not in kept]
    assert set(kept) <= set(bench.names())
    assert _offsets(log) == list(range(35))


def test_unfinished_cleaning_is_dropped(bench: LogBench) -> None:
    _closed(bench)
    _copy_as(bench, 10, ".cleaned")
    log = bench.open(_CONFIG)
    assert _offsets(log) == list(range(35))
    assert not [name for name in bench.names() if name.endswith(".cleaned")]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("already_deleted", [True, False])
def test_a_finished_swap_replaces_its_segment(bench: LogBench, clean: bool, already_deleted: bool) -> None:
    _closed(bench)
    _copy_as(bench, 10, ".swap")
    if already_deleted:
        for suffix in _SUFFIXES:
            shutil.move(bench.path(10, suffix), bench.path(10, f"{suffix}.deleted"))
    log = bench.open(_CONFIG, clean=clean)
    assert _offsets(log) == [*range(10), *range(11, 20, 2), *range(20, 35)]
    assert not [name for name in bench.names() if name.endswith((".swap", ".deleted"))]


def test_a_finished_swap_replaces_all_segments_that_it_covers(bench: LogBench) -> None:
    _closed(bench)
    joined = bench.log_path(0).read_bytes() + bench.log_path(10).read_bytes()
    bench.path(0, ".log.swap").write_bytes(joined)
    for suffix in (".index", ".timeindex"):
        bench.path(0, f"{suffix}.swap").write_bytes(b"")
    log = bench.open(_CONFIG)
    assert [segment.base_offset for segment in log.segments] == [0, 20, 30]
    assert _offsets(log) == list(range(35))
    assert not bench.path(10, ".snapshot").exists()


def test_a_swap_at_or_above_an_unfinished_cleaning_is_half_of_a_split_and_is_removed(bench: LogBench) -> None:
    _closed(bench)
    _copy_as(bench, 0, ".swap")
    for stage in (".cleaned", ".swap"):
        _copy_as(bench, 10, stage)
    _copy_as(bench, 20, ".swap")
    log = bench.open(_CONFIG)
    assert _offsets(log) == [*range(1, 10, 2), *range(10, 35)]


def test_a_swap_interrupted_after_the_rename_of_the_log_file_is_finished(bench: LogBench) -> None:
    _closed(bench)
    _copy_as(bench, 10, ".swap")
    for suffix in _SUFFIXES:
        bench.path(10, suffix).unlink()
    shutil.move(bench.path(10, ".log.swap"), bench.log_path(10))
    log = bench.open(_CONFIG)
    assert _offsets(log) == [*range(10), *range(11, 20, 2), *range(20, 35)]


def test_snapshots_without_a_segment_are_removed_except_the_last_one_above_all_segments(bench: LogBench) -> None:
    _closed(bench)
    snapshot = bench.path(30, ".snapshot").read_bytes()
    for offset in (5, 17, 33):
        bench.path(offset, ".snapshot").write_bytes(snapshot)
    bench.open(_CONFIG)
    assert [name for name in bench.names() if name.endswith(".snapshot")] == [
        f"{offset:020d}.snapshot" for offset in (10, 20, 30, 35)
    ]


_STAGES = ("", ".cleaned", ".swap", ".deleted")
_EVERY_SET = [frozenset(chosen) for count in range(5) for chosen in itertools.combinations(_STAGES, count)]


def _lay_out(bench: LogBench, base: int, stages: frozenset[str]) -> None:
    """Write files of the segment at `base`: its own have all batches, copies at other stages every second one."""
    for stage in stages - {""}:
        _copy_as(bench, base, stage)
    if "" not in stages:
        bench.log_path(base).unlink()  # its indexes stay, as after a crash between two unlinks


def _readable(stages: dict[int, frozenset[str]]) -> list[int]:
    """The offsets that Kafka's rules leave of the segments 0 to 39, ten offsets each; independent of the loader."""
    cleaned = [base for base, there in stages.items() if ".cleaned" in there]
    finished = [base for base, there in stages.items() if ".swap" in there and base < min(cleaned, default=99)]
    replaced = range(min(finished), max(finished) + 10) if finished else range(0)
    offsets: list[int] = []
    for base, there in stages.items():
        if base in finished:
            offsets += range(base + 1, base + 10, 2)
        elif "" in there and base not in replaced:
            offsets += range(base, base + 10)
    return offsets


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crash"])
@pytest.mark.parametrize("first", _EVERY_SET, ids=lambda there: "first=" + "+".join(sorted(there)))
def test_every_combination_of_leftovers_leaves_the_records_that_the_rules_name(
    bench: LogBench, first: frozenset[str], clean: bool
) -> None:
    _closed(bench, 40)
    pristine = {path.name: path.read_bytes() for path in bench.directory.iterdir()}
    for second in _EVERY_SET:
        for path in bench.directory.iterdir():
            path.unlink()
        for name, content in pristine.items():
            (bench.directory / name).write_bytes(content)
        stages = {0: frozenset({""}), 10: first, 20: second, 30: frozenset({""})}
        for base in (10, 20):
            _lay_out(bench, base, stages[base])
        bench.recovery_point = 0
        log = bench.open(_CONFIG, clean=clean)
        assert _offsets(log) == _readable(stages), (sorted(first), sorted(second))
        assert not [name for name in bench.names() if name.endswith((".cleaned", ".swap", ".deleted"))]
        assert {name[:20] for name in bench.names() if name.endswith(".index")} == {
            name[:20] for name in bench.names() if name.endswith(".log")
        }
        log.go_offline()

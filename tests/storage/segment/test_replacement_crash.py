"""The cleaner is killed at every failpoint: after the next start the log is either as before or cleaned.

Three logs: one with records left in every segment; one whose first group loses all records at its end, so that the new
segment ends before the last old one begins; one whose first group is emptied, with transactions.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.storage.cleaning.errors import CleaningOutOfRoom
from barnabas.broker.storage.files import failpoints
from barnabas.broker.storage.files.durable_files import OpenDirectory
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.segment.replacement import SegmentsChangedError
from tests.support.daemon import REPOSITORY
from tests.support.storage.bench import START_MS, LogBench, append, batch, read_records
from tests.support.storage.cleaning import clean
from tests.support.storage.crashing_cleaner import CLEANED_AT_MS, crash_config
from tests.support.storage.files import snapshot_of
from tests.support.storage.transactions import end, send

State = tuple[tuple[int, ...], tuple[tuple[int, bytes | None, bytes | None], ...]]
"""Base offsets of the segments that are not empty, and all records."""


def _fill(log: PartitionLog, *segments: str) -> None:
    for keys in segments:
        append(log, batch(*((START_MS, key.encode(), b"v" * 58) for key in keys)))
        log.roll()
    append(log, batch((START_MS, b"z", b"")))


def records_left_in_every_segment(log: PartitionLog) -> None:
    _fill(log, "aaab", "aacd", "aaef", "aagh", "aaij", "aakl")


def no_records_left_at_the_end_of_the_first_group(log: PartitionLog) -> None:
    _fill(log, "aabc", "dddd", "dddd", "dddd", "deee", "faaa")


def no_records_left_in_the_first_group(log: PartitionLog) -> None:
    _fill(log, "aaaa", "aaaa", "aaaa")
    for producer_id in (7, 8):
        send(log, producer_id, 0, b"gone", b"gone", size=150)
        end(log, producer_id, is_commit=False)
    log.roll()
    _fill(log, "abcd")


LOGS = (
    records_left_in_every_segment,
    no_records_left_at_the_end_of_the_first_group,
    no_records_left_in_the_first_group,
)


def prepared(log_dir: Path, fill: Callable[[PartitionLog], None]) -> Path:
    bench = LogBench(log_dir)
    log = bench.open(crash_config())
    fill(log)
    bench.close(log)
    return log_dir


def state_of(log: ReadableLog) -> State:
    records = tuple((record.offset, record.key, record.value) for record in read_records(log))
    return tuple(segment.base_offset for segment in log.segments if segment.size_bytes), records


def states_and_points(log_dir: Path) -> tuple[list[State], list[tuple[str, int]]]:
    """Return the states after each group, and all failpoints in order with their counts."""
    log = LogBench(log_dir).open(crash_config())
    states = [state_of(log)]
    points: list[tuple[str, int]] = []
    counts: Counter[str] = Counter()

    def note(name: str) -> None:
        counts[name] += 1
        points.append((name, counts[name]))
        if name == "replace.synced":
            states.append(state_of(log))

    with failpoints.observed(note):
        clean(log, now_ms=CLEANED_AT_MS)
    log.go_offline()
    return states, points


@pytest.fixture(scope="module")
def crash(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path, str, int], int]]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.storage.crashing_cleaner"],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def run(log_dir: Path, name: str, count: int) -> int:
            stdin.write(f"{log_dir} {name} {count}\n")
            stdin.flush()
            return int(stdout.readline())

        yield run
        stdin.close()


@pytest.mark.slow
@pytest.mark.parametrize(("fill", "clean_stop"), [*((fill, True) for fill in LOGS), (LOGS[1], False)])
def test_a_crash_at_any_point_leaves_the_old_segments_or_the_new_ones(
    tmp_path: Path,
    fill: Callable[[PartitionLog], None],
    clean_stop: bool,
    crash: Callable[[Path, str, int], int],
) -> None:
    original = prepared(tmp_path / "original", fill)
    shutil.copytree(original, tmp_path / "observed")
    states, points = states_and_points(tmp_path / "observed")
    assert len(set(states)) >= 3
    assert (("replace.marked", 1) in points) == (fill is not records_left_in_every_segment)
    seen = set()
    for name, count in points:
        log_dir = tmp_path / f"{name}-{count}"
        shutil.copytree(original, log_dir)
        assert crash(log_dir, name, count) == -9, (name, count)
        bench = LogBench(log_dir)
        bench.recovery_point = 0 if clean_stop else states[0][1][-1][0]
        before = snapshot_of(log_dir)
        read_only = state_of(bench.open_read_only(crash_config(), clean=clean_stop))
        assert snapshot_of(log_dir) == before
        log = bench.open(crash_config(), clean=clean_stop)

        found = state_of(log)

        assert read_only == found, (name, count)
        assert found in states, (name, count, bench.names())
        assert not [left for left in bench.names() if left.endswith((".cleaned", ".swap", ".deleted"))]
        seen.add(found)
        clean(log, now_ms=CLEANED_AT_MS)
        assert state_of(log)[1] == states[-1][1], (name, count)
        bench.close(log)
    assert seen == set(states)


def test_the_environment_arms_a_failpoint(tmp_path: Path) -> None:
    log_dir = prepared(tmp_path, records_left_in_every_segment)
    program = (
        "import pathlib; from tests.support.storage import crashing_cleaner; "
        f"crashing_cleaner.clean_in(pathlib.Path({str(log_dir)!r}))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=REPOSITORY,
        env={"PYTHONPATH": str(REPOSITORY), failpoints.VARIABLE: "replace.staged=kill"},
        timeout=60,
        check=False,
    )

    assert done.returncode == -9
    assert list((log_dir / "orders-0").glob("*.swap"))


@pytest.mark.parametrize("setting", ["replace.staged", "replace.staged=stop", "replace.staged=kill@x"])
def test_a_malformed_failpoint_setting_is_refused(setting: str) -> None:
    with pytest.raises(ValueError, match="is not name=action"):
        failpoints.arm_from(setting)


def test_an_undone_replacement_is_removed_durably_before_the_next_append(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open(crash_config())
    records_left_in_every_segment(log)
    gone = log.segments[0]
    log.delete_records(log.segments[1].base_offset)
    log.delete_old_segments()
    cleaned = log.create_segment(0, ".cleaned")
    cleaned.append_many(memoryview(bytearray(gone.log.slice(0, gone.size_bytes).read())), [])
    synced: list[list[str]] = []
    monkeypatch.setattr(OpenDirectory, "sync", lambda _: synced.append(bench.names()))
    with pytest.raises(SegmentsChangedError):
        log.replace_segments((cleaned,), (gone,))
    # The names of the new files come first: an index without its `.log` would be given to the old segment.
    assert [name for name in synced[0] if name.endswith((".swap", ".cleaned"))] == sorted(
        f"{0:020}{suffix}.cleaned" for suffix in (".log", ".index", ".timeindex")
    )
    assert [name for name in synced[1] if name.endswith(".swap")]
    assert [name for name in synced[-1] if name.endswith((".swap", ".cleaned"))] == []


@pytest.mark.parametrize("begins_at", ["cleaner.sealed", "replace.staged", "replace.mapped", "replace.retired"])
def test_too_many_open_files_stop_a_replacement_before_it_has_begun_or_not_at_all(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch, begins_at: str
) -> None:
    log = bench.open(crash_config())
    records_left_in_every_segment(log)
    before, names = state_of(log), bench.names()
    is_short = False
    real = os.open

    def short(*arguments: Any, **named: Any) -> int:
        if is_short:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(*arguments, **named)

    def note(name: str) -> None:
        nonlocal is_short
        is_short = name == begins_at or (is_short and name != "replace.synced")

    monkeypatch.setattr(os, "open", short)
    with failpoints.observed(note):
        if begins_at == "cleaner.sealed":
            with pytest.raises(CleaningOutOfRoom):
                clean(log, now_ms=CLEANED_AT_MS)
        else:
            clean(log, now_ms=CLEANED_AT_MS)
    is_short = False

    assert bench.failed_directories == []
    if begins_at == "cleaner.sealed":
        assert (state_of(log), bench.names()) == (before, names)
        clean(log, now_ms=CLEANED_AT_MS)
    assert state_of(log) != before


def test_appends_and_reads_go_on_while_the_files_of_replaced_segments_are_renamed(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open(crash_config())
    no_records_left_at_the_end_of_the_first_group(log)
    end = log.log_end_offset
    went_on: list[bool] = []
    found: list[tuple[int, int]] = []
    rename = os.rename

    def meanwhile() -> None:
        found.append((append(log, batch((START_MS, b"y", b""))), len(list(read_records(log)))))

    def during(source: Path, target: Path) -> None:
        rename(source, target)
        if str(target).endswith(".log.deleted"):
            other = threading.Thread(target=meanwhile, daemon=True)
            other.start()
            other.join(20)
            went_on.append(not other.is_alive())

    monkeypatch.setattr(os, "rename", during)
    clean(log, now_ms=CLEANED_AT_MS)
    kept = len(list(read_records(log))) - len(went_on)
    assert went_on == [True] * len(went_on) != []
    assert [offset for offset, _ in found] == list(range(end, end + len(went_on)))
    assert found[-1] == (end + len(went_on) - 1, kept + len(went_on))

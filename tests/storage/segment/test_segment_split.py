"""Overflowed segments, as old cleaners left them, are split without losing records."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.segment import split as segment_split
from tests.support.storage.bench import START_MS, LogBench, log_config, read_batches
from tests.support.storage.records import stored

_SPAN = 2**31
_FIRST = [0, 5, _SPAN - 1, _SPAN, _SPAN + 7, 2 * _SPAN + 7, 2 * _SPAN + 8]
_LATER = [4 * _SPAN, 4 * _SPAN + 1]
_CONFIG = log_config(index_interval_bytes=0)


def _write(bench: LogBench, base: int, offsets: list[int]) -> None:
    bench.log_path(base).write_bytes(
        b"".join(stored(offset, timestamp=START_MS + n) for n, offset in enumerate(offsets))
    )
    os.utime(bench.log_path(base), (1_600_000_000, 1_600_000_000))
    for suffix in (".index", ".timeindex"):
        bench.path(base, suffix).write_bytes(b"")


def _offsets(log: PartitionLog) -> list[int]:
    return [found.base_offset for found in read_batches(log)]


def _bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_a_segment_with_a_larger_offset_range_than_an_index_is_split(bench: LogBench) -> None:
    _write(bench, 0, _FIRST)
    _write(bench, 4 * _SPAN, _LATER)
    log = bench.open(_CONFIG, clean=False)
    assert _bases(log) == [0, _SPAN, 2 * _SPAN + 7, 4 * _SPAN]
    assert _offsets(log) == _FIRST + _LATER
    assert bench.offset_entries(_SPAN) == [(7, 100)]
    assert os.path.getmtime(bench.log_path(_SPAN)) == 1_600_000_000
    assert not [name for name in bench.names() if name.endswith((".swap", ".cleaned", ".deleted"))]
    bench.close(log)
    assert _offsets(bench.open(_CONFIG)) == _FIRST + _LATER


def test_splitting_a_segment_far_below_its_first_batch_leaves_an_empty_one_at_its_base(bench: LogBench) -> None:
    _write(bench, 0, [_SPAN + 5, _SPAN + 6])
    log = bench.open(_CONFIG, clean=False)
    assert (_bases(log), _offsets(log)) == ([0, _SPAN + 5], [_SPAN + 5, _SPAN + 6])


def test_a_missing_index_reveals_the_overflow_after_a_clean_stop_too(bench: LogBench) -> None:
    _write(bench, 0, _FIRST)
    bench.path(0, ".index").unlink()
    assert _offsets(bench.open(_CONFIG)) == _FIRST


@pytest.mark.parametrize(
    ("first", "later", "kept"),
    [
        ([0, 1, _SPAN + 2], None, [0, 1]),  # no batch follows: a flipped bit is more likely
        ([0, 1, _SPAN + 2, 3], None, [0, 1]),
        ([0, 1, _SPAN + 2], [3, 4], [0, 1]),
    ],
)
def test_an_unconfirmed_base_offset_is_damage_and_is_truncated(
    bench: LogBench, first: list[int], later: list[int] | None, kept: list[int]
) -> None:
    _write(bench, 0, first)
    if later is not None:
        _write(bench, later[0], later)
    log = bench.open(_CONFIG, clean=False)
    assert (_offsets(log), _bases(log)) == (kept, [0])


class _Crash(Exception):
    """The process dies here."""


def _crash_at(monkeypatch: pytest.MonkeyPatch, step: int) -> list[str]:
    """Count all directory changes, and crash before number `step`."""
    done: list[str] = []

    def counted(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(path: object, *rest: object, **options: object) -> object:
            if len(done) == step:
                raise _Crash
            done.append(f"{name} {Path(str(path)).name}")
            return real(path, *rest, **options)

        return call

    for name in ("rename", "unlink", "utime"):
        monkeypatch.setattr(os, name, counted(name, getattr(os, name)))
    return done


def test_a_crash_at_any_step_of_a_split_loses_nothing(tmp_path: Path) -> None:
    step = 0
    while True:
        bench = LogBench(tmp_path / str(step))
        _write(bench, 0, _FIRST)
        _write(bench, 4 * _SPAN, _LATER)
        with pytest.MonkeyPatch.context() as monkeypatch:
            done = _crash_at(monkeypatch, step)
            try:
                bench.open(_CONFIG, clean=False)
            except _Crash:
                crashed = True
            else:
                crashed = False
        log = bench.open(_CONFIG, clean=False)
        assert _offsets(log) == _FIRST + _LATER, done
        assert _bases(log) == [0, _SPAN, 2 * _SPAN + 7, 4 * _SPAN], done
        if not crashed:
            break
        step += 1
    assert step > 9, f"{segment_split.__name__} and the loader take more steps than {done}"

"""When the daemon collects garbage."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator

import pytest

from barnabas.broker import garbage
from barnabas.broker.garbage import GarbageCollection
from tests.support.manual_loop import ManualLoop


class _Process:
    """What the collection reads of its process, and the full collections that it has made."""

    def __init__(self) -> None:
        self.blocks = 200_000
        self.cpu = 0.0
        self.full = 0


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> _Process:
    process = _Process()

    def collect() -> None:
        process.full += 1

    monkeypatch.setattr(sys, "getallocatedblocks", lambda: process.blocks)
    monkeypatch.setattr(time, "thread_time", lambda: process.cpu)
    monkeypatch.setattr(gc, "collect", collect)
    return process


@pytest.fixture
def loop(process: _Process) -> Iterator[ManualLoop]:
    loop = ManualLoop()
    collection = GarbageCollection(loop)
    collection.start()
    yield loop
    collection.stop()
    loop.close()


def _pass(loop: ManualLoop, process: _Process, *, share: float) -> None:
    """Pass the time to the next look, of which the loop's thread has used a share."""
    process.cpu += share * garbage.INTERVAL_SECONDS
    loop.pass_time(round(1000 * garbage.INTERVAL_SECONDS) + 1)


def test_an_idle_loop_collects_everything_once_its_memory_has_doubled(loop: ManualLoop, process: _Process) -> None:
    process.blocks += 200_000 + garbage.IDLE_GROWTH_BLOCKS
    _pass(loop, process, share=0.01)
    assert process.full == 0
    process.blocks += 1
    _pass(loop, process, share=0.01)
    _pass(loop, process, share=0.01)
    assert process.full == 1


def test_a_busy_loop_collects_everything_only_after_large_growth(loop: ManualLoop, process: _Process) -> None:
    process.blocks += 200_000 + garbage.BUSY_GROWTH_BLOCKS
    _pass(loop, process, share=0.5)
    assert process.full == 0
    process.blocks += 1
    _pass(loop, process, share=0.5)
    _pass(loop, process, share=0.5)
    assert process.full == 1


def test_growth_counts_from_the_least_memory_since_the_last_full_collection(
    loop: ManualLoop, process: _Process
) -> None:
    process.blocks = 50_000
    _pass(loop, process, share=0.01)
    process.blocks += 50_000 + garbage.IDLE_GROWTH_BLOCKS + 1
    _pass(loop, process, share=0.01)
    assert process.full == 1


def test_python_collects_as_before_once_the_broker_has_stopped(loop: ManualLoop) -> None:
    before = gc.get_threshold()
    collection = GarbageCollection(loop)
    try:
        collection.suspend()
        assert not gc.isenabled()
        collection.resume()
        assert gc.isenabled()
        assert gc.get_threshold() == (garbage.YOUNG_OBJECTS, garbage.MIDDLE_COLLECTIONS, garbage.NEVER)
    finally:
        collection.stop()
        gc.unfreeze()
    assert gc.get_threshold() == before


def test_many_new_objects_begin_no_full_collection(loop: ManualLoop) -> None:
    generations: set[int] = set()
    collection = GarbageCollection(loop)
    collection.resume()
    gc.callbacks.append(lambda _, info: generations.add(info["generation"]))
    try:
        kept = [[number] for number in range(1_500_000)]
    finally:
        gc.callbacks.pop()
        collection.stop()
        gc.unfreeze()
    assert len(kept) == 1_500_000
    assert 1 in generations
    assert 2 not in generations


def test_an_idle_loop_collects_everything_after_an_hour(loop: ManualLoop, process: _Process) -> None:
    loop.pass_time(round(1000 * (garbage.IDLE_SECONDS - garbage.INTERVAL_SECONDS)))
    assert process.full == 0
    loop.pass_time(round(2000 * garbage.INTERVAL_SECONDS))
    assert process.full == 1

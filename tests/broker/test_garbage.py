"""The daemon's garbage collection: nothing waits for it in ordinary work, and full collections are rare."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker import garbage
from barnabas.broker.garbage import GarbageCollection
from tests.support.daemon import start_daemon, with_fault
from tests.support.eventually import eventually
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.manual_loop import ManualLoop
from tests.support.storage.records import plain
from tests.support.wire import WireClient
from tests.torture.hostile.wide_requests import wide_requests

_COUNTER = """
import gc, os, threading, time

def count(folder):
    while True:
        time.sleep(0.01)
        if os.path.exists(folder + "/ask"):
            gc.set_threshold(0)  # from the first question on, nothing but these collections
            found = gc.collect()
            os.remove(folder + "/ask")
            with open(folder + "/answer.new", "w") as file:
                file.write(str(found))
            os.rename(folder + "/answer.new", folder + "/answer")

threading.Thread(target=count, args=({folder!r},), daemon=True).start()
"""


def _cyclic_garbage(folder: Path) -> int:
    """Collect the daemon's garbage; return the number of objects that only the collector could free."""
    answer = folder / "answer"
    (folder / "ask").touch()
    eventually(answer.exists, what="the daemon has counted its garbage")
    found = int(answer.read_text())
    answer.unlink()
    return found


def test_closed_connections_and_refused_large_requests_are_no_cyclic_garbage(tmp_path: Path) -> None:
    names = {"add_partitions_to_txn transactions", "create_acls creations", "describe_topic_partitions topics"}
    refused = [each for each in wide_requests() if f"{each.api} {each.path}" in names]
    assert len(refused) == len(names)

    def work() -> None:
        with WireClient(daemon.host, daemon.port) as native:
            native.produce("t", plain(1))
        for each in refused:
            with KafkaWire(daemon.host, daemon.port) as kafka:
                kafka.socket.sendall(each.frame)
                assert len(kafka.receive_frame()) > len(each.frame) // 10
        with KafkaWire(daemon.host, daemon.port) as kafka:
            kafka.fetch(4, "t", 2, max_wait_ms=20)  # waits the first time

    with start_daemon(tmp_path / "d", environ=with_fault(tmp_path, _COUNTER.format(folder=str(tmp_path)))) as daemon:
        with WireClient(daemon.host, daemon.port) as native:
            native.create_topic("t")
        work()
        _cyclic_garbage(tmp_path)  # of the modules that the work has imported
        work()
        assert _cyclic_garbage(tmp_path) == 0


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
    process.blocks += 600_000 + garbage.BUSY_GROWTH_BLOCKS
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

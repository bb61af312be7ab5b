"""The compiled Fetch in one process: references, timers, and waits that end in every way."""

from __future__ import annotations

import gc
import mmap
import random
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.response_frame import ResponseFrame
from barnabas.broker.network.session import Session
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.storage.files.file_records import FileSlice
from barnabas.config.listeners import Listener
from barnabas.protocol.messages.api_key import ApiKey
from tests.support.kafka.kafka_wire import fetch_request, request_frame
from tests.support.storage.bench import TOPIC_ID, TP, LogBench, sized_batch
from tests.support.storage.kernels import load_kernel

CALLS = 10_000
WAITS = 2_000
FEW = 1_000
"""Objects that other tests' threads may create meanwhile; a leak has one for each call or wait."""


class Timers:
    """The part of an event loop that the kernel and a partition use."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.cancelled = 0
        self.fire: Callable[[], None] = lambda: None
        self.soon: list[Callable[[], None]] = []

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timers:
        self.delays.append(delay)
        self.fire = callback
        return self

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def cancel(self) -> None:
        self.cancelled += 1


class Served:
    """One partition, and a connection's session that fetches from it."""

    def __init__(self, log_dir: Path) -> None:
        fetch = load_kernel("compiled", {"compiled": "barnabas.broker.handlers.data.kernels._fetch"})
        frames = load_kernel("compiled", {"compiled": "barnabas.broker.network.kernels._frames"})
        bench = LogBench(log_dir)
        self.log = bench.open()
        self.timers = Timers()
        self.probes = BrokerProbes()
        loop = cast("Any", self.timers)
        self.partition = Partition(self.log, 0, TOPIC_ID, self.probes.topic(TP.topic), loop)
        registry = PartitionRegistry()
        registry.add(TP, self.partition)
        self.unusual: list[bytes] = []
        self.kernel = fetch.FetchKernel(
            self.probes.api(ApiKey.FETCH.label), registry, self.probes, loop, 1 << 20, lambda *_: None
        )
        self._run = frames.FrameRun({ApiKey.FETCH: self.kernel})
        self._run.use(self._dispatch)
        self.session = Session(Listener("PLAINTEXT", "127.0.0.1", 0))

    def _dispatch(self, session: Session, frame: memoryview, begun: object, arrived: float) -> ResponseFrame:
        self.unusual.append(bytes(frame))
        return ResponseFrame(b"python")

    def fetch(self, offset: int, **settings: int) -> Any:
        """Serve one request. Returns a response's bytes, a Deferred, or None for an unusual request."""
        return self.serve(request_frame(fetch_request(12, TP.topic, offset, None, **settings), 5))

    def serve(self, frame: bytes) -> Any:
        """Serve one frame, as `fetch`."""
        view = memoryview(bytearray(frame))
        served = self._run.serve(self.session, view, 0, len(view), 1 << 20, float("inf"))
        if served is None:
            return None
        end, responses, outcome, begun = served
        assert (end, begun) == (len(view), None)
        return responses if outcome is None else outcome

    def append(self, size: int = 100) -> None:
        self.partition.append(sized_batch(size))
        for callback in self.timers.soon:
            callback()
        self.timers.soon.clear()


def _note(ended: list[int], number: int, _: object) -> None:
    ended.append(number)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    each = Served(tmp_path)
    each.append()
    yield each
    each.log.close()


def _is_waiting(served: Served) -> list[int]:
    return [served.probes.fetches_waiting, len(served.partition._waiters)]


@pytest.mark.parametrize("settings", [{}, {"max_bytes": 0}, {"offset": 1}, {"offset": 7}, {"leader_epoch": 9}])
def test_calls_leave_no_references(served: Served, settings: dict[str, int]) -> None:
    offset = settings.pop("offset", 0)
    held = (served.partition, served.log.segments[0].log.handle(), served.log.core.end, served.session, TP)
    served.fetch(offset, **settings)
    gc.collect()
    before, objects = [sys.getrefcount(each) for each in held], len(gc.get_objects())
    for _ in range(CALLS):
        served.fetch(offset, **settings)
    gc.collect()
    assert [sys.getrefcount(each) for each in held] == before
    assert len(gc.get_objects()) < objects + FEW


def test_a_large_response_keeps_the_file_open_until_it_is_sent(served: Served) -> None:
    served.append(30_000)
    handle = served.log.segments[0].log.handle()
    before = sys.getrefcount(handle)
    response = served.fetch(0)
    assert isinstance(response, ResponseFrame)
    (records, rest) = response.parts
    assert isinstance(records, FileSlice)
    assert (records.size, rest) == (30_100, b"\0\0\0")
    assert sys.getrefcount(handle) == before + 1
    del response, records
    assert sys.getrefcount(handle) == before


@pytest.mark.parametrize("end", ["cancelled", "woken", "drained"])
def test_waits_leave_no_references(served: Served, end: str) -> None:
    def wait_once() -> None:
        late: list[Any] = []
        waiting = served.fetch(served.log.log_end_offset, max_wait_ms=60_000)
        assert isinstance(waiting, Deferred)
        waiting.then(late.append)
        assert _is_waiting(served) == [1, 1]
        if end == "cancelled":
            waiting.cancel()
        elif end == "woken":
            served.append()
        else:
            served.partition.wake_all()  # not enough bytes: it goes on waiting
            assert not late
            next(iter(served.partition._waiters)).finish()
        assert len(late) == (end != "cancelled")
        assert _is_waiting(served) == [0, 0]

    wait_once()
    gc.collect()
    before, objects = sys.getrefcount(served.partition), len(gc.get_objects())
    for _ in range(WAITS):
        wait_once()
    after = sys.getrefcount(served.partition)  # without a collection: a wait leaves no cycle
    assert after == before
    assert len(gc.get_objects()) < objects + FEW


def test_a_wait_ends_with_the_append_that_completes_its_min_bytes(served: Served) -> None:
    late: list[Any] = []
    served.fetch(1, max_wait_ms=60_000, min_bytes=300).then(late.append)
    served.fetch(0, max_wait_ms=60_000, min_bytes=400).then(late.append)
    for answered in (0, 0, 2):
        served.append(100)
        assert len(late) == answered


def test_records_of_a_segment_that_is_not_the_last_are_answered_without_waiting(served: Served) -> None:
    served.log.roll()
    served.append()
    served.log.read(0, 1, upper_bound=2, at_least_one_batch=True)  # opens the index, which the roll has closed
    assert isinstance(served.fetch(0, max_wait_ms=60_000, min_bytes=1000), bytes)
    assert isinstance(served.fetch(1, max_wait_ms=60_000, min_bytes=1000), Deferred)


def test_many_waits_need_one_timer_and_an_earlier_deadline_moves_it(served: Served) -> None:
    for _ in range(100):
        served.fetch(1, max_wait_ms=60_000)
    assert served.timers.delays == [pytest.approx(60, abs=1)]
    served.fetch(1, max_wait_ms=30_000)
    assert served.timers.delays[1:] == [pytest.approx(30, abs=1)]
    assert served.timers.cancelled == 1
    served.append()
    assert _is_waiting(served) == [0, 0]
    served.fetch(2, max_wait_ms=60_000)
    assert len(served.timers.delays) == 2  # the timer that is set comes first, and is set again then
    served.timers.fire()
    assert served.timers.delays[2:] == [pytest.approx(60, abs=1)]


def test_waits_end_at_their_deadlines_whatever_their_order(served: Served) -> None:
    chosen = random.Random(3)
    ended: list[int] = []
    left: list[Deferred[Any]] = []
    for number in range(300):
        is_short = chosen.random() < 0.5
        waiting = served.fetch(1, max_wait_ms=chosen.randrange(1, 20) if is_short else chosen.randrange(50_000, 90_000))
        assert isinstance(waiting, Deferred)
        if chosen.random() < 0.3:
            waiting.cancel()
        elif is_short:
            waiting.then(partial(_note, ended, number))
            left.append(waiting)
    while not all(waiting.done for waiting in left):
        served.timers.fire()
    assert len(ended) == len(left) == len(set(ended))
    assert _is_waiting(served)[0] == _is_waiting(served)[1] > 50


def test_a_wait_that_is_not_plain_any_more_is_answered_by_python(served: Served) -> None:
    late: list[Any] = []
    waiting = served.fetch(1, max_wait_ms=60_000)
    waiting.then(late.append)
    served.partition.retire()
    assert late == [ResponseFrame(b"python")]
    assert served.unusual == [request_frame(fetch_request(12, TP.topic, 1, max_wait_ms=60_000), 5)[4:]]
    assert _is_waiting(served) == [0, 0]


def test_no_request_waits_once_the_broker_drains(served: Served) -> None:
    late: list[Any] = []
    served.fetch(1, max_wait_ms=60_000).then(late.append)
    served.kernel.answer_all()
    assert len(late) == 1
    assert isinstance(served.fetch(1, max_wait_ms=60_000), bytes)


def test_a_session_with_a_quota_is_left_to_python(served: Served) -> None:
    late: list[Any] = []
    served.fetch(1, max_wait_ms=60_000).then(late.append)
    served.session.quota = cast("Any", object())
    assert served.fetch(0) is None
    served.append()
    assert late == [ResponseFrame(b"python")]


@pytest.mark.parametrize(("known", "is_served"), [({}, False), ({TP.topic: True}, True), ({TP.topic: False}, False)])
def test_the_authorizer_decides_about_topics_that_are_not_known_to_be_allowed(
    served: Served, known: dict[str, bool], is_served: bool
) -> None:
    class Access:
        read_topic = known

    served.session.access = cast("Any", Access())
    assert (served.fetch(0) is not None) == is_served


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def test_a_wait_does_not_keep_the_memory_of_a_large_request_before_it(served: Served) -> None:
    """A client may send both: its connection would hold several times the bytes that it sent."""
    entries, waits = 60_000, 40
    parts = struct.pack(">iqi", 0, 0, 1) * entries
    large = struct.pack(">hhihiiiibihci", 1, 4, 0, -1, -1, 0, 0, 0, 0, 1, 1, b"?", entries) + parts
    frame = memoryview(bytearray(struct.pack(">i", len(large)) + large))
    held = []
    for number in range(waits):
        if number == 1:
            before = _resident_bytes()
        assert served._run.serve(served.session, frame, 0, len(frame), 1 << 20, float("inf")) is None
        held.append(served.fetch(1, max_wait_ms=60_000))
    assert _is_waiting(served) == [waits, waits]
    assert _resident_bytes() - before < waits * entries * 4
    served.kernel.answer_all()


def test_another_client_id_replaces_the_one_of_the_session(served: Served) -> None:
    served.session.client_id = "before"
    served.fetch(0)
    assert served.session.client_id == "wire"

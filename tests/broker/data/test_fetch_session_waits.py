"""The compiled incremental fetch in one process: what it serves, its waits and its references."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.broker.handlers.data.fetch import FetchHandler
from barnabas.broker.handlers.data.fetch_contexts import CHECK_SECONDS, FetchContexts
from barnabas.broker.handlers.data.fetch_session import FetchSession
from barnabas.broker.handlers.data.fetch_session_cache import MAX_PARTITIONS, FetchSessionCache
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.dispatch import Dispatcher
from barnabas.broker.network.response_frame import ResponseFrame
from barnabas.broker.network.session import Session
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.broker.probes import BrokerProbes
from barnabas.config.listeners import Listener
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.support.kafka.kafka_wire import fetch_request, request_frame
from tests.support.no_timers import NoTimers
from tests.support.storage.bench import TOPIC_ID, TP, LogBench, sized_batch
from tests.support.storage.kernels import load_kernel

CALLS = 3_000
SESSION_AT = 36
"""Where the session id is in a frame of version 12 with the client id "wire"; its epoch follows."""
TOPIC_COUNT_AT = SESSION_AT + 8


class Denials:
    """Permissions of a client that may do nothing."""

    generation = 1
    read_topic: Mapping[str, bool] = {TP.topic: False}

    def allows(self, *_: object, **__: object) -> bool:
        return False


class ServedSession:
    """One partition, and a fetch session that contains it. `run` is compiled, `dispatcher` is Python."""

    def __init__(self, log_dir: Path) -> None:
        fetch = load_kernel("compiled", {"compiled": "barnabas.broker.handlers.data.kernels._fetch"})
        frames = load_kernel("compiled", {"compiled": "barnabas.broker.network.kernels._frames"})
        self.log = LogBench(log_dir).open()
        self.timers = NoTimers()
        loop = cast("Any", self.timers)
        self.probes = BrokerProbes()
        self.partition = Partition(self.log, 0, TOPIC_ID, self.probes.topic(TP.topic), loop)
        self.registry = registry = PartitionRegistry()
        registry.add(TP, self.partition)
        self.cache = FetchSessionCache(10, time.monotonic, self.probes.fetch_sessions)
        contexts = FetchContexts(self.cache, registry, lambda _: None, time.monotonic)
        handler = FetchHandler(registry, self.probes, loop, cast("Any", None), 1 << 20, lambda _: None, 1, contexts)
        probe = self.probes.api(ApiKey.FETCH.label)
        kernel = fetch.FetchKernel(probe, registry, self.probes, loop, 1 << 20, handler.answer_now)
        handler.use_kernel(kernel)
        self.run = frames.FrameRun({ApiKey.FETCH: kernel})
        self.dispatcher = Dispatcher({ApiKey.FETCH: cast("Any", handler)}, self.probes, loop, self.run)
        self.client = Session(Listener("PLAINTEXT", "127.0.0.1", 0))
        topics = [FetchTopic(name=TP.topic, partitions=[FetchPartition(partition=0, offset=0, max_bytes=1 << 20)])]
        opened = handler(
            self.client,
            FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, isolation=0, topics=topics, session_epoch=0),
        )
        self.session = cast("FetchSession", self.cache.get(cast("Any", opened).session_id))

    def frame(self, offset: int | None, *, epoch: int | None = None, **settings: int) -> memoryview:
        """Return an incremental request; `offset` None: with no partition."""
        data = bytearray(request_frame(fetch_request(12, TP.topic, offset or 0, None, **settings), 5))
        data[SESSION_AT : SESSION_AT + 4] = self.session.session_id.to_bytes(4, "big")
        data[SESSION_AT + 4 : TOPIC_COUNT_AT] = (self.session.epoch if epoch is None else epoch).to_bytes(4, "big")
        if offset is None:
            data[TOPIC_COUNT_AT:] = b"\x01\x01\x01\x00"
            data[:4] = (len(data) - 4).to_bytes(4, "big")
        return memoryview(data)

    def compiled(self, frame: memoryview) -> Any:
        """Return a response's bytes, a Deferred, or None for an unusual request."""
        served = self.run.serve(self.client, frame, 0, len(frame), 1 << 20, float("inf"))
        if served is None:
            return None
        _, responses, outcome, _ = served
        return responses if outcome is None else outcome

    def python(self, frame: memoryview) -> Any:
        return self.dispatcher.serve(self.client, frame[4:])

    def append(self, size: int = 100) -> None:
        self.partition.append(sized_batch(size))
        self.timers.run_soon()

    @property
    def waiting(self) -> tuple[int, bool]:
        return self.probes.fetches_waiting, self.session.waiting is not None


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedSession]:
    each = ServedSession(tmp_path)
    each.append()
    yield each
    each.log.close()


def test_a_session_is_served_without_python(served: ServedSession) -> None:
    assert len(served.compiled(served.frame(0))) > 100
    assert isinstance(served.compiled(served.frame(1)), bytes)
    assert served.session.pending == {}
    late: list[Any] = []
    served.compiled(served.frame(None, max_wait_ms=60_000)).then(late.append)
    assert served.waiting == (1, True)
    served.append()
    (response,) = late
    assert len(response.header) > 100
    assert served.waiting == (0, False)
    assert len(served.session.pending) == 1
    assert not next(iter(served.session.partitions.values())).is_watching


def test_an_incremental_fetch_waits_for_all_of_its_min_bytes(served: ServedSession) -> None:
    late: list[Any] = []
    served.compiled(served.frame(1, max_wait_ms=60_000, min_bytes=250)).then(late.append)
    for answered in (0, 0, 1):
        served.append(100)
        assert len(late) == answered


def _change(served: ServedSession, change: str) -> memoryview:
    frame = served.frame(1)
    if change == "epoch":
        return served.frame(1, epoch=served.session.epoch + 1)
    if change == "unknown partition":
        return served.frame(1, partition=1)
    if change == "another reader":
        served.session.reader = (1, False, None, 0)
    elif change == "check is due":
        served.session.checked = time.monotonic() - CHECK_SECONDS - 1
    elif change == "topic ids":
        served.session.uses_topic_ids = True
    elif change == "another request waits":
        served.compiled(served.frame(1, max_wait_ms=60_000))
        frame = served.frame(1)
    else:
        assert change == "closed"
        served.cache.remove(served.session)
    return frame


CHANGES = [
    "epoch",
    "unknown partition",
    "another reader",
    "check is due",
    "topic ids",
    "another request waits",
    "closed",
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_request_that_is_not_plain_changes_nothing(served: ServedSession, change: str) -> None:
    frame = _change(served, change)
    before = (served.session.epoch, served.session.last_used, served.waiting)
    assert served.compiled(frame) is None
    assert (served.session.epoch, served.session.last_used, served.waiting) == before


@pytest.mark.parametrize("end", ["closed", "next request", "retired"])
def test_a_wait_that_is_not_plain_any_more_is_answered_by_python(served: ServedSession, end: str) -> None:
    late: list[Any] = []
    served.compiled(served.frame(1, max_wait_ms=60_000)).then(late.append)
    if end == "closed":
        served.cache.remove(served.session)
    elif end == "next request":
        served.python(served.frame(1))
    else:
        served.partition.retire()
    served.timers.run_soon()
    (response,) = late
    assert isinstance(response, ResponseFrame)
    error = int.from_bytes(response.header[13:15], "big", signed=True)
    assert error == (71 if end == "next request" else 0)
    assert served.waiting == (0, False)


def test_an_evicted_session_answers_its_wait_once(served: ServedSession) -> None:
    late: list[Any] = []
    served.compiled(served.frame(1, max_wait_ms=60_000)).then(late.append)
    assert served.cache.make_room(MAX_PARTITIONS, is_privileged=True)
    assert served.waiting == (1, False)
    served.append()
    served.timers.run_soon()
    assert len(late) == 1
    assert served.waiting == (0, False)
    assert served.partition._waiters == {}
    assert served.compiled(served.frame(1)) is None


def test_a_revoked_permission_holds_for_a_session_that_waits(served: ServedSession) -> None:
    late: list[Any] = []
    served.compiled(served.frame(1, max_wait_ms=60_000)).then(late.append)
    served.client.access = cast("Any", Denials())
    served.append()
    (response,) = late
    assert len(response.header) < 100
    assert ErrorCode.TOPIC_AUTHORIZATION_FAILED.to_bytes(2, "big") in response.header[20:]
    assert served.compiled(served.frame(1)) is None


def test_a_topic_that_is_created_again_is_watched_instead_of_its_predecessor(
    served: ServedSession, tmp_path: Path
) -> None:
    served.compiled(served.frame(1))
    (entry,) = served.session.partitions.values()
    old, log = served.partition, LogBench(tmp_path / "again").open()
    assert old._waiters == {entry: None}
    served.registry.remove(TP)
    served.partition = Partition(log, 0, bytes(16), served.probes.topic(TP.topic), cast("Any", served.timers))
    served.registry.add(TP, served.partition)
    served.append()
    assert isinstance(served.compiled(served.frame(None)), bytes)
    assert old._waiters == {}
    assert served.partition._waiters == {entry: None}
    late: list[Any] = []
    served.compiled(served.frame(None, max_wait_ms=60_000)).then(late.append)
    served.append()
    assert len(late[0].header) > 100
    log.close()


@pytest.mark.parametrize("end", ["cancelled", "woken", "finished"])
def test_incremental_waits_leave_no_references(served: ServedSession, end: str) -> None:
    served.session.checked = float("inf")  # no check becomes due, however slow the machine is

    def wait_once() -> None:
        late: list[Any] = []
        waiting = served.compiled(served.frame(served.log.log_end_offset, max_wait_ms=60_000))
        assert isinstance(waiting, Deferred)
        waiting.then(late.append)
        if end == "cancelled":
            waiting.cancel()
        elif end == "woken":
            served.append()
        else:
            cast("Any", served.session.waiting).finish()
        assert len(late) == (end != "cancelled")
        assert served.waiting == (0, False)

    wait_once()
    wait_once()  # the kernel keeps the last response of a wake
    gc.collect()
    held = (served.partition, served.session, served.client, next(iter(served.session.partitions.values())))
    before, objects = [sys.getrefcount(each) for each in held], len(gc.get_objects())
    for _ in range(CALLS):
        wait_once()
    assert [sys.getrefcount(each) for each in held] == before  # without a collection: a wait leaves no cycle
    assert len(gc.get_objects()) < objects + 100


@pytest.mark.parametrize("offset", [0, 1, None])
def test_incremental_calls_leave_no_references(served: ServedSession, offset: int | None) -> None:
    served.session.checked = float("inf")  # as above
    assert served.compiled(served.frame(offset)) is not None
    gc.collect()
    held = (served.partition, served.session, served.client, next(iter(served.session.partitions.values())))
    before, objects = [sys.getrefcount(each) for each in held], len(gc.get_objects())
    for _ in range(CALLS):
        assert served.compiled(served.frame(offset)) is not None
    assert [sys.getrefcount(each) for each in held] == before
    assert len(gc.get_objects()) < objects + 100

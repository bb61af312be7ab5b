"""A fetch that is served in several turns, with what happens between them. Every step is a turn here."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.broker.handlers import turns
from barnabas.broker.handlers.data import fetch
from barnabas.broker.handlers.data.fetch_session_cache import MAX_PARTITIONS
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.dispatch import Dispatcher
from barnabas.broker.network.response_frame import CloseConnection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.fetch import FetchResponse
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.kafka.kafka_wire import fetch_request, request_frame
from tests.support.served_fetch import MAX_WAIT_MS, PARTITIONS, Served, offsets_of, read_of, run
from tests.support.storage.bench import TP, sized_batch


@pytest.fixture(autouse=True)
def _every_step_is_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "WIDE_PARTITIONS", 1)
    monkeypatch.setattr(turns, "TURN_SECONDS", -1.0)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    each = Served(tmp_path)
    yield each
    for log in each.logs:
        log.close()


def test_each_partition_is_a_turn_and_the_response_is_that_of_a_small_request(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.append(1)
    served.append(3)
    everything = dict.fromkeys(range(PARTITIONS), 0)
    number_of_turns, wide = run(served.begin(served.request(everything)))
    assert number_of_turns == PARTITIONS
    assert served.client.on_closed == {}
    monkeypatch.setattr(fetch, "WIDE_PARTITIONS", 100)
    narrow = served.handler(served.client, served.request(everything))
    assert isinstance(narrow, FetchResponse)
    assert offsets_of(wide) == offsets_of(narrow) == {1: 1, 3: 1}
    assert [len(topic.partitions) for topic in wide.topics] == [PARTITIONS]


@pytest.mark.parametrize("session", [{}, {"session_epoch": 0}])
@pytest.mark.parametrize("after", range(PARTITIONS + 2))
def test_an_append_in_any_turn_is_answered(served: Served, session: dict[str, int], after: int) -> None:
    work = served.begin(served.request(dict.fromkeys(range(PARTITIONS), 0), **session))
    _, answer = run(work, after, lambda: served.append(0))
    if isinstance(answer, Deferred):  # the append comes when it waits
        assert after > PARTITIONS
        assert served.probes.fetches_waiting == 1
        served.append(0)
        answer = read_of(answer)
    assert offsets_of(answer) == {0: 1}
    assert served.probes.fetches_waiting == 0


@pytest.mark.parametrize("number", range(PARTITIONS))
@pytest.mark.parametrize("after", range(4))
def test_an_append_to_any_partition_of_a_session_is_answered(served: Served, number: int, after: int) -> None:
    session = served.open_session()
    work = served.read_again(session, {0: 0, 1: 0, 2: 0})  # the others are settled
    _, answer = run(work, after, lambda: served.append(number))
    if isinstance(answer, Deferred):
        assert after == 3
        served.append(number)
        answer = read_of(answer)
    assert offsets_of(answer) == {number: 1}
    assert session.waiting is None


def test_min_bytes_count_from_the_read_of_each_partition(served: Served) -> None:
    work = served.begin(served.request(dict.fromkeys(range(PARTITIONS), 0), min_bytes=450))
    _, waiting = run(work, 3, lambda: served.append(0, 4))
    assert isinstance(waiting, Deferred)
    for number in (2, 1):
        assert not waiting.done
        served.append(number)
    assert not waiting.done
    served.append(0)
    assert offsets_of(read_of(waiting)) == {0: 2, 1: 1, 2: 1, 4: 1}


def test_a_session_keeps_pending_what_changed_after_its_read(served: Served) -> None:
    request = served.request(dict.fromkeys(range(PARTITIONS), 0), session_epoch=0)
    request.max_wait_ms = 0
    _, opened = run(served.begin(request), PARTITIONS + 3, lambda: served.append(1))
    assert offsets_of(opened) == {}
    session = served.cache.get(opened.session_id)
    assert session is not None
    assert [entry.fetch.partition for entry in session.pending] == [1]


def test_a_session_that_finds_no_room_any_more_is_not_kept(tmp_path: Path) -> None:
    served = Served(tmp_path, sessions=1)
    request = served.request(dict.fromkeys(range(PARTITIONS), 0), session_epoch=0)
    request.max_wait_ms = 0
    _, opened = run(served.begin(request), PARTITIONS + 3, served.open_session)
    assert opened.session_id == 0
    assert served.probes.fetch_sessions.sessions == 1
    assert [len(partition._waiters) for partition in served.partitions] == [1] * PARTITIONS
    for log in served.logs:
        log.close()


@pytest.mark.parametrize("others", [{}, {2: 0, 3: 0}])
def test_a_request_that_the_sessions_next_one_overtook_is_refused(served: Served, others: dict[int, int]) -> None:
    session = served.open_session()
    work = served.read_again(session, {0: 0, 1: 0})

    def overtake() -> None:
        run(served.read_again(session, others))

    _, refused = run(work, 1, overtake)
    assert refused.error is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert served.probes.fetches_waiting == 1


def test_a_response_that_the_sessions_next_request_overtakes_does_not_disturb_its_wait(served: Served) -> None:
    session = served.open_session()
    work = served.read_again(session, dict.fromkeys(range(PARTITIONS), 0))
    served.append(4)
    waits: list[Any] = []

    def overtake() -> None:  # the first request is being answered, and settles its partitions
        _, waiting = run(served.read_again(session, {4: 1}, min_bytes=250))
        waits.append(waiting)
        served.append(3)

    run(work, PARTITIONS + 2, overtake)
    (waiting,) = waits
    assert isinstance(waiting, Deferred)
    assert not waiting.done
    served.append(3)
    served.append(3)
    assert offsets_of(read_of(waiting)) == {3: 3}


def test_a_session_that_is_closed_meanwhile_watches_nothing(served: Served) -> None:
    session = served.open_session()
    work = served.read_again(session, dict.fromkeys(range(PARTITIONS), 0))
    _, response = run(work, 2, lambda: served.cache.remove(session))
    assert isinstance(response, FetchResponse)
    assert [len(partition._waiters) for partition in served.partitions] == [0] * PARTITIONS


@pytest.mark.parametrize("in_session", [False, True])
def test_records_that_are_deleted_after_their_partition_was_read_end_the_wait(served: Served, in_session: bool) -> None:
    served.append(0)
    session = served.open_session()
    ends = {0: 1, 1: 0, 2: 0}
    work = served.read_again(session, ends) if in_session else served.begin(served.request(ends))
    _, response = run(work, 2, lambda: served.partitions[0].delete_records(1))
    assert isinstance(response, FetchResponse)
    (result,) = [each for topic in response.topics for each in topic.partitions if each.partition == 0]
    assert result.log_start_offset == 1


@pytest.mark.parametrize("after", [2, PARTITIONS + 2])
def test_a_client_that_goes_meanwhile_leaves_no_session(served: Served, after: int) -> None:
    request = served.request(dict.fromkeys(range(PARTITIONS), 0), session_epoch=0)
    request.max_wait_ms = 0
    with pytest.raises(CloseConnection):
        run(served.begin(request), after, served.client.closed)
    assert served.probes.fetch_sessions.sessions == 0
    assert served.client.on_closed == {}
    assert [len(partition._waiters) for partition in served.partitions] == [0] * PARTITIONS
    assert served.cache.make_room(MAX_PARTITIONS, is_privileged=False)


def test_sessions_that_are_being_created_have_their_room(served: Served) -> None:
    room: list[bool] = []

    def make_room() -> None:
        sizes = (MAX_PARTITIONS - PARTITIONS, MAX_PARTITIONS - PARTITIONS + 1)
        room.extend(served.cache.make_room(size, is_privileged=False) for size in sizes)

    request = served.request(dict.fromkeys(range(PARTITIONS), 0), session_epoch=0)
    request.max_wait_ms = 0
    run(served.begin(request), PARTITIONS + 2, make_room)
    assert room == [True, False]
    assert served.probes.fetch_sessions.sessions == 1


def test_a_partition_that_is_deleted_meanwhile_is_answered(served: Served) -> None:
    def delete() -> None:
        served.registry.remove(TopicPartition(TP.topic, 0))
        served.partitions[0].retire()

    _, response = run(served.begin(served.request(dict.fromkeys(range(PARTITIONS), 0))), 3, delete)
    (failed,) = [each for each in response.topics[-1].partitions if each.error is not ErrorCode.NONE]
    assert failed.partition == 0


class Client:
    """Frames through the dispatcher, in a real event loop."""

    def __init__(self, served: Served) -> None:
        handlers = {ApiKey.FETCH: cast("Any", served.handler)}
        self._dispatcher = Dispatcher(handlers, served.probes, served.loop)
        self._served = served

    def fetch(self, **settings: int) -> Deferred[Any]:
        body = fetch_request(12, TP.topic, 0, None, max_wait_ms=MAX_WAIT_MS, **settings)
        late = self._dispatcher.serve(self._served.client, memoryview(request_frame(body, 5))[4:])
        assert isinstance(late, Deferred)
        return late


def in_loop(test: Callable[[Served], Awaitable[None]], directory: Path) -> None:
    async def start() -> None:
        served = Served(directory, asyncio.get_running_loop())
        await test(served)
        for log in served.logs:
            log.close()

    asyncio.run(start())


async def until(condition: Callable[[], object]) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("not within 5 s")


def test_a_wait_ends_with_a_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "WIDE_PARTITIONS", 0)

    async def test(served: Served) -> None:
        frames: list[Any] = []
        Client(served).fetch().then(frames.append)
        await until(lambda: served.probes.fetches_waiting == 1)
        served.append(0)
        await until(lambda: frames)
        records, _ = frames[0].parts
        assert records.size == len(sized_batch(100))
        assert served.probes.fetches_waiting == 0

    in_loop(test, tmp_path)


def test_a_client_that_goes_ends_its_wait_and_leaves_no_cycle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "WIDE_PARTITIONS", 0)

    async def test(served: Served) -> None:
        client = Client(served)

        async def come_and_go() -> None:
            late = client.fetch()
            await until(lambda: served.probes.fetches_waiting == 1)
            late.cancel()
            assert served.probes.fetches_waiting == 0
            late = client.fetch()
            late.cancel()  # before it waits
            for _ in range(20):
                await asyncio.sleep(0)
            assert served.probes.fetches_waiting == 0

        await come_and_go()
        gc.collect()
        gc.disable()
        try:
            await come_and_go()
            assert gc.collect() == 0
        finally:
            gc.enable()

    in_loop(test, tmp_path)

"""The receive buffer of a connection, fed piece by piece: no request is lost, torn or reordered."""

from __future__ import annotations

import math
import random
import weakref
from typing import Any

import pytest

from barnabas.broker.network.connection import Connection
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.receive_buffer import KEEP_BUFFER_BYTES, RECEIVE_BUFFER_BYTES
from barnabas.broker.network.response_frame import ResponseFrame
from tests.support.piped_connection import framed, harness_of


def buffer_bytes(connection: Connection) -> int:
    return len(connection._buffer.view)


def test_a_full_buffer_behind_a_request_that_waits_pauses_reading_until_it_is_answered() -> None:
    waiting: Deferred[ResponseFrame | None] = Deferred()
    served: list[bytes] = []

    def serve(frame: bytes) -> Any:
        served.append(frame)
        return waiting if frame == b"wait" else ResponseFrame(frame)

    harness = harness_of(serve)
    frames = [b"wait", *(bytes([n]) * 1000 for n in range(250)), *(bytes([n]) * 1000 for n in range(250))]
    left = harness.feed(b"".join(framed(frame) for frame in frames))
    assert served == [b"wait"]
    assert not harness.reads()
    assert buffer_bytes(harness.connection) == RECEIVE_BUFFER_BYTES
    waiting.resolve(ResponseFrame(b"waited"))
    assert harness.reads()
    assert harness.feed(left) == b""
    assert served == frames
    assert harness.pipe.written == b"".join([b"waited", *frames[1:]])


def test_a_buffer_that_grew_for_a_large_frame_is_given_back() -> None:
    harness = harness_of(ResponseFrame)
    harness.feed(framed(bytes(KEEP_BUFFER_BYTES + 1))[:-1])
    assert buffer_bytes(harness.connection) > KEEP_BUFFER_BYTES
    harness.feed(b"\0")
    assert buffer_bytes(harness.connection) == RECEIVE_BUFFER_BYTES
    harness.feed(framed(b"small"))
    assert harness.pipe.written.endswith(b"small")


def test_draining_answers_the_request_at_hand_and_serves_no_further_one() -> None:
    waiting: Deferred[ResponseFrame | None] = Deferred()
    harness = harness_of(lambda frame: waiting)
    harness.feed(framed(b"first") + framed(b"second"))
    harness.connection.drain()
    assert not harness.is_closed()
    waiting.resolve(ResponseFrame(b"answer"))
    assert harness.is_closed()
    assert harness.pipe.written == b"answer"


def test_a_late_answer_to_a_client_that_has_gone_is_dropped() -> None:
    waiting: Deferred[ResponseFrame | None] = Deferred()
    harness = harness_of(lambda frame: waiting)
    harness.feed(framed(b"request"))
    harness.pipe.closing = True
    waiting.resolve(ResponseFrame(b"late"))
    assert harness.pipe.written == b""


def test_the_end_of_a_connection_releases_its_buffer_without_the_garbage_collector() -> None:
    harness = harness_of(lambda frame: None)
    harness.feed(framed(bytes(1 << 20))[:-1])
    buffer = weakref.ref(harness.connection._buffer.mapping)
    assert buffer() is not None
    harness.pipe.closing = True
    harness.connection.connection_lost(None)
    assert buffer() is None


def test_a_bug_in_serving_closes_its_connection_with_one_traceback(caplog: pytest.LogCaptureFixture) -> None:
    def serve(frame: bytes) -> Any:
        raise KeyError("bug")

    harness = harness_of(serve)
    harness.feed(framed(b"request"))
    assert harness.is_closed()
    assert harness.connection.close_reason == "internal_error"
    assert [record.exc_info is not None for record in caplog.records] == [True]


@pytest.mark.parametrize("seed", range(20))
def test_however_the_bytes_come_every_request_is_served_whole_and_in_order(seed: int) -> None:
    """Frames from one byte to more than the buffer, in pieces of any size; some get a late response,
    some none, and some mute the connection."""
    rng = random.Random(seed)
    waiting: list[tuple[bytes, Deferred[ResponseFrame | None]]] = []
    served: list[bytes] = []
    unanswered: set[int] = set()

    def serve(frame: bytes) -> Any:
        assert not waiting, "one request is worked on at a time"
        served.append(frame)
        kind = rng.random()
        if kind < 0.3:
            waiting.append((frame, Deferred()))
            return waiting[0][1]
        if kind < 0.35:
            unanswered.add(len(served) - 1)
            return None
        if kind < 0.4:
            ready: Deferred[ResponseFrame | None] = Deferred()
            ready.resolve(ResponseFrame(frame))
            return ready
        if kind < 0.45:
            harness.connection.mute(1.0)
        return ResponseFrame(frame)

    harness = harness_of(serve, turn_seconds=rng.choice([0.0, 0.001, math.inf]), turns=False)
    largest = rng.choice([10, 5_000, 300_000, 600_000])
    pieces = rng.choice([1000, 100_000, 1 << 20])
    count = 4 if pieces < largest // 100 else 3_000_000 // largest % 400 + 20  # many pieces of few frames
    frames = [rng.randbytes(rng.randrange(1, largest)) for _ in range(count)]
    left = b"".join(framed(frame) for frame in frames)
    while left or waiting or harness.pipe.paused_writing or harness.clock.timers or harness.clock.ready:
        left = harness.feed(left, lambda: rng.randrange(1, pieces))
        harness.pipe.is_full = harness.pipe.is_full or rng.random() < 0.3
        if waiting and rng.random() < 0.5:
            frame, deferred = waiting.pop()
            deferred.resolve(ResponseFrame(frame))
        if harness.pipe.is_full and (not harness.reads() or not left or rng.random() < 0.5):
            harness.pipe.take_all()
        if rng.random() < 0.5:
            harness.clock.turn()
        if rng.random() < 0.5:
            before = len(served)
            assert not harness.clock.timers or waiting or harness.feed(b"") == b""
            assert len(served) == before
            harness.clock.pass_to(harness.clock.now + 1.0)
    assert served == frames
    assert harness.probe.muted == 0
    assert harness.pipe.written == b"".join(f for n, f in enumerate(frames) if n not in unanswered)


def test_answers_that_a_full_socket_held_up_do_not_end_the_wait_of_the_request_behind_them() -> None:
    waiting: Deferred[ResponseFrame | None] = Deferred()
    served: list[bytes] = []

    def serve(frame: bytes) -> Any:
        served.append(frame)
        return waiting if frame == b"wait" else ResponseFrame(frame)

    harness = harness_of(serve)
    harness.pipe.is_full = True
    harness.feed(framed(b"first") + framed(b"wait") + framed(b"last"))
    harness.pipe.take_all()
    assert served == [b"first", b"wait"]
    waiting.resolve(ResponseFrame(b"waited"))
    assert served == [b"first", b"wait", b"last"]
    assert harness.pipe.written == b"firstwaitedlast"


def test_a_full_buffer_behind_answers_that_a_full_socket_holds_up_still_has_room() -> None:
    harness = harness_of(lambda frame: None if frame == b"acks 0" else ResponseFrame(frame))
    harness.pipe.is_full = True
    small, unanswered = framed(b"small"), framed(b"acks 0")
    large = framed(bytes(RECEIVE_BUFFER_BYTES - len(small) - 4 - len(unanswered)))
    # The whole buffer arrives in one read. Two responses are deferred, the last frame has no response, and the
    # transport is full.
    assert harness.feed(small + large + unanswered) == b""
    assert harness.feed(framed(b"last")) == b""
    harness.pipe.take_all()
    assert harness.pipe.written == b"small" + large[4:] + b"last"


def test_a_muted_connection_sends_its_answers_and_serves_nothing_until_the_time_is_over() -> None:
    served: list[bytes] = []

    def serve(frame: bytes) -> Any:
        served.append(frame)
        if frame == b"greedy":
            harness.connection.mute(1.5)
        return ResponseFrame(frame)

    harness = harness_of(serve)
    harness.feed(framed(b"first") + framed(b"greedy") + framed(b"third") + framed(b"fourth"))
    assert harness.pipe.written == b"firstgreedy"
    assert harness.connection.waits_for_broker, "a muted connection is not idle"
    harness.feed(framed(b"fifth"))
    harness.clock.pass_to(1.4)
    assert served == [b"first", b"greedy"]
    assert harness.probe.muted == 1
    harness.clock.pass_to(1.5)
    assert harness.pipe.written == b"firstgreedythirdfourthfifth"
    assert harness.probe.muted == 0


def test_the_longer_of_two_mutes_counts() -> None:
    harness = harness_of(ResponseFrame)
    harness.connection.mute(2.0)
    harness.connection.mute(1.0)
    harness.feed(framed(b"request"))
    harness.clock.pass_to(1.0)
    assert harness.pipe.written == b""
    harness.connection.mute(3.0)
    harness.clock.pass_to(3.9)
    assert harness.pipe.written == b""
    harness.clock.pass_to(4.0)
    assert harness.pipe.written == b"request"


def test_a_muted_connection_takes_no_more_than_its_buffer() -> None:
    harness = harness_of(ResponseFrame)
    harness.connection.mute(1.0)
    frame = framed(bytes(5000))
    left = harness.feed(frame * 200)
    assert len(left) == 200 * len(frame) - RECEIVE_BUFFER_BYTES
    assert not harness.reads()
    harness.clock.pass_to(1.0)
    assert harness.feed(left) == b""
    assert harness.pipe.written == bytes(200 * 5000)


def test_a_buffer_that_grew_for_a_large_frame_is_given_back_before_a_mute() -> None:
    def serve(frame: bytes) -> ResponseFrame | None:
        harness.connection.mute(1.0)
        return None

    harness = harness_of(serve)
    harness.feed(framed(bytes(KEEP_BUFFER_BYTES + 1)))
    assert buffer_bytes(harness.connection) == RECEIVE_BUFFER_BYTES


def test_draining_and_closing_end_a_mute() -> None:
    harness = harness_of(ResponseFrame)
    harness.connection.mute(60.0)
    harness.connection.drain()
    assert harness.is_closed()
    lost = harness_of(ResponseFrame)
    lost.connection.mute(60.0)
    lost.connection.connection_lost(None)
    assert not harness.clock.timers
    assert not lost.clock.timers
    assert harness.probe.muted == lost.probe.muted == 0


def test_a_mute_that_ends_before_the_response_was_sent_lets_the_response_go_first() -> None:
    served: list[bytes] = []

    def serve(frame: bytes) -> Any:
        served.append(frame)
        harness.connection.mute(1.0)
        return ResponseFrame(frame)

    harness = harness_of(serve)
    harness.pipe.is_full = True
    harness.feed(framed(b"first"))
    harness.feed(framed(b"second"))
    harness.clock.pass_to(1.0)
    assert served == [b"first"]
    harness.pipe.take_all()
    assert served == [b"first", b"second"]


def test_a_client_with_many_requests_at_a_time_yields_after_each_turn() -> None:
    served: list[bytes] = []

    def serve(frame: bytes) -> Any:
        served.append(frame)
        return ResponseFrame(frame)

    harness = harness_of(serve, turn_seconds=0.0, turns=False)
    harness.feed(framed(b"1") + framed(b"2") + framed(b"3"))
    harness.feed(framed(b"4"))
    assert (served, harness.pipe.written) == ([b"1"], b"1"), "the answer does not wait for the next turn"
    harness.clock.turn()
    assert (served, harness.pipe.written) == ([b"1", b"2"], b"12")
    for _ in range(3):
        harness.clock.turn()
    assert harness.pipe.written == b"1234"
    assert harness.probe.muted == 0


def test_a_client_that_fills_the_buffer_yields_before_the_next_one() -> None:
    served: list[bytes] = []

    def serve(frame: bytes) -> Any:
        served.append(frame)
        return ResponseFrame(b"")

    harness = harness_of(serve, turns=False)
    frame = framed(bytes(996))
    left = harness.feed(frame * (RECEIVE_BUFFER_BYTES // 500))
    in_one_turn = RECEIVE_BUFFER_BYTES // 1000
    assert len(served) == in_one_turn
    while left or harness.clock.ready:
        harness.clock.turn()
        left = harness.feed(left)
    assert len(served) == RECEIVE_BUFFER_BYTES // 500


def test_a_mute_replaces_a_yield_and_draining_ends_one() -> None:
    harness = harness_of(ResponseFrame, turn_seconds=0.0, turns=False)
    harness.feed(framed(b"1") + framed(b"2"))
    harness.connection.mute(1.0)
    assert harness.probe.muted == 1
    harness.clock.turn()
    assert harness.pipe.written == b"1"
    harness.clock.pass_to(1.0)
    assert harness.pipe.written == b"12"
    drained = harness_of(ResponseFrame, turn_seconds=0.0, turns=False)
    drained.feed(framed(b"1") + framed(b"2"))
    drained.connection.drain()
    assert drained.is_closed()
    assert not drained.clock.ready

"""Steps of exchanges on threads: a few at a time, dropped with their connection, and never stuck."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.thread import ThreadPoolExecutor
from typing import Any

import pytest

from barnabas.broker.security.sasl.work_queue import AT_A_TIME, WorkQueue
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.sasl.exchange import Challenge, Failure, Step, Success, Work
from tests.support.manual_loop import ManualLoop
from tests.support.sasl import DELAY_SECONDS, GatedListener


class HeldExecutor(ThreadPoolExecutor):
    """Holds what is submitted until the test runs it."""

    def __init__(self) -> None:
        super().__init__(1)
        self.held: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.held.append((future, fn))
        return future

    def run_one(self) -> None:
        future, fn = self.held.pop(0)
        try:
            future.set_result(fn())
        except Exception as error:  # noqa: BLE001 the future carries it
            future.set_exception(error)


@pytest.fixture
def loop() -> Iterator[ManualLoop]:
    loop = ManualLoop()
    yield loop
    loop.close()


def test_few_steps_run_at_a_time_in_order(loop: ManualLoop) -> None:
    executor = HeldExecutor()
    queue = WorkQueue(loop, executor)
    done: list[int] = []
    for number in range(5):
        queue.submit(lambda number=number: number, lambda result, error: done.append(result))  # type: ignore[misc]
    assert len(executor.held) == AT_A_TIME
    while executor.held:
        executor.run_one()
        loop.settle()
    assert done == [0, 1, 2, 3, 4]


def test_cancelled_steps_are_dropped_and_failed_ones_make_room(loop: ManualLoop) -> None:
    executor = HeldExecutor()
    queue = WorkQueue(loop, executor)
    outcomes: list[Any] = []

    def fail() -> None:
        raise OSError("no key server")

    def note(result: Any, error: BaseException | None) -> None:
        outcomes.append(result if error is None else str(error))

    jobs = [queue.submit(run, note) for run in (fail, lambda: "running", lambda: "waiting", lambda: "last")]
    jobs[1].cancel()
    jobs[2].cancel()
    while executor.held:
        executor.run_one()
        loop.settle()
    assert outcomes == ["no key server", "last"]


def test_an_error_after_a_step_does_not_stop_the_steps_behind_it(loop: ManualLoop) -> None:
    executor = HeldExecutor()
    queue = WorkQueue(loop, executor)
    done: list[int] = []
    reached: list[str] = []
    loop.set_exception_handler(lambda _, context: reached.append(repr(context["exception"])))

    def end(result: int, error: BaseException | None) -> None:
        if result < AT_A_TIME:
            raise ValueError("a bug")
        done.append(result)

    for number in range(2 * AT_A_TIME):
        queue.submit(lambda number=number: number, end)  # type: ignore[misc]
    while executor.held:
        executor.run_one()
        loop.settle()
    assert done == list(range(AT_A_TIME, 2 * AT_A_TIME))
    assert len(reached) == AT_A_TIME


class Slow:
    """A mechanism whose first step needs Work, and whose second one ends the exchange."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self._run = run

    def respond(self, data: bytes) -> Step:
        return Work(self._run)

    def resume(self, result: Any) -> Step:
        steps: dict[Any, Step] = {"good": Success(b"", "alice"), "again": Work(lambda: "good")}
        return steps.get(result) or (Challenge(b"more") if result == "more" else Failure("refused"))


@pytest.mark.parametrize(("result", "code"), [("good", 0), ("again", 0), ("more", 0)])
def test_an_answer_waits_for_the_work(result: str, code: int) -> None:
    server = GatedListener(more={"SLOW": lambda: Slow(lambda: result)})
    peer = server.connect()
    peer.handshake("SLOW")
    assert peer.authenticate(b"x").error_code.value == code
    assert (server.authenticated == ["User:alice"]) == (result != "more")
    server.loop.close()


def test_work_that_refuses_is_answered_after_the_delay() -> None:
    server = GatedListener(more={"SLOW": lambda: Slow(lambda: "bad")})
    peer = server.connect()
    peer.handshake("SLOW")
    assert peer.authenticate(b"x") is None
    peer.loop.pass_time(round(DELAY_SECONDS * 1000))
    answer = peer.kafka_answer("sasl_authenticate", 2)
    assert answer.error_code.value == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert peer.is_closed()
    server.loop.close()


def test_a_bug_in_a_mechanism_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError("a bug")

    server = GatedListener(more={"SLOW": lambda: Slow(fail)})
    peer = server.connect()
    peer.handshake("SLOW")
    assert peer.authenticate(b"x") is None
    assert peer.is_closed()
    assert not server.authenticated
    assert "a bug in a SASL mechanism" in caplog.text
    server.loop.close()


@pytest.mark.parametrize("expires_at_ms", [None, 1 << 80])
def test_a_bug_after_the_work_closes_the_connection(
    caplog: pytest.LogCaptureFixture, expires_at_ms: int | None
) -> None:
    class Late(Slow):
        def resume(self, result: Any) -> Step:
            if expires_at_ms is None:
                raise RuntimeError("a bug")
            return Success(b"", "alice", expires_at_ms)  # its lifetime does not fit into the answer

    server = GatedListener(more={"SLOW": lambda: Late(lambda: "good")})
    peer = server.connect()
    peer.handshake("SLOW")
    assert peer.authenticate(b"x") is None
    assert peer.is_closed()
    assert not server.authenticated
    assert "a bug in a SASL mechanism" in caplog.text
    server.loop.close()


def test_a_closed_connection_drops_its_work() -> None:
    executor = HeldExecutor()
    server = GatedListener(more={"SLOW": lambda: Slow(lambda: "good")}, executor=executor)
    peer = server.connect()
    peer.handshake("SLOW")
    assert peer.authenticate(b"x") is None
    peer.loop.run(lambda: peer.connection.connection_lost(None))
    executor.run_one()
    peer.loop.settle()
    assert not server.authenticated
    server.loop.close()

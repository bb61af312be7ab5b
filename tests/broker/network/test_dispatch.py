"""A request whose handler fails, immediately or later, gets one response and affects no other request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.dispatch import LARGE_REQUEST_BYTES, Dispatcher
from barnabas.broker.network.response_frame import CloseConnection, LateResponse, ResponseFrame
from barnabas.broker.network.session import Session
from barnabas.broker.network.unsaid_refusals import log_unsaid
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.repeated_warnings import BUG_LINES, RepeatedWarnings
from barnabas.config.listeners import Listener
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.topics.metadata import MetadataRequest, MetadataResponse, TopicMetadata
from barnabas.protocol.messages.topics.topics import CreateTopicsRequest, DeleteTopicsRequest
from tests.support.kafka.kafka_wire import answer_of, metadata_request, request_frame
from tests.support.native.native_frames import answer_fields, native_request

TOO_MUCH = MetadataResponse(cluster_id="cluster", topics=[TopicMetadata(name="t" * 30_000)] * 600)
"""A header of 18 MB."""

SMALL = MetadataResponse(cluster_id="cluster", topics=[TopicMetadata(name="topic")])


def frame() -> memoryview:
    return memoryview(bytearray(request_frame(metadata_request(4, "topic"), 7)))[4:]


def codes_of(answer: LateResponse) -> dict[str, int]:
    """Return the codes of the topics of an answer to Metadata."""
    assert isinstance(answer, ResponseFrame)
    correlation_id, found = answer_of(
        "metadata", 4, b"".join((answer.header, *cast("tuple[bytes, ...]", answer.parts)))[4:]
    )
    assert correlation_id == 7
    return {each.name: each.error_code for each in found.topics}


def code_of(answer: LateResponse) -> int:
    """Return the code of the only topic that was asked for."""
    (code,) = codes_of(answer).values()
    return code


def serve(give: Callable[[Deferred[Any]], object], request: memoryview | None = None) -> LateResponse:
    """Return the response to a request whose handler returns the result of `give`."""

    async def run() -> LateResponse:
        deferred: Deferred[Any] = Deferred()
        answers: list[LateResponse] = []
        dispatcher = Dispatcher(
            {ApiKey.METADATA: lambda session, request: give(deferred)}, BrokerProbes(), asyncio.get_running_loop()
        )
        outcome = dispatcher.serve(Session(Listener("PLAINTEXT", "127.0.0.1", 0)), request or frame())
        if not isinstance(outcome, Deferred):
            return outcome
        outcome.then(answers.append)
        while not answers:
            await asyncio.sleep(0)
        return answers[0]

    return asyncio.run(run())


def raising(error: Exception) -> Callable[[Deferred[Any]], object]:
    def give(deferred: Deferred[Any]) -> object:
        raise error

    return give


def returning(response: object) -> Callable[[Deferred[Any]], object]:
    return lambda deferred: response


def deferring(value: object) -> Callable[[Deferred[Any]], object]:
    """Return a handler whose value arrives in a later turn of the loop."""

    def give(deferred: Deferred[Any]) -> object:
        asyncio.get_running_loop().call_soon(deferred.resolve, value)
        return deferred

    return give


def awaiting(value: object) -> Callable[[Deferred[Any]], object]:
    async def work() -> object:
        await asyncio.sleep(0)
        if isinstance(value, Exception):
            raise value
        return value

    return lambda deferred: work()


@pytest.mark.parametrize("give", [returning(SMALL), deferring(SMALL), awaiting(SMALL)])
def test_a_response_is_answered_now_or_later(give: Callable[[Deferred[Any]], object]) -> None:
    assert code_of(serve(give)) == ErrorCode.NONE


REFUSED = BrokerError(ErrorCode.POLICY_VIOLATION, "no")


@pytest.mark.parametrize("give", [raising(REFUSED), deferring(REFUSED), awaiting(REFUSED)])
def test_a_refusal_is_the_apis_own_error_answer(give: Callable[[Deferred[Any]], object]) -> None:
    assert code_of(serve(give)) == ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.POLICY_VIOLATION])
def test_a_refusal_that_tells_the_client_nothing_has_a_line_of_the_log(
    caplog: pytest.LogCaptureFixture, code: ErrorCode
) -> None:
    request = memoryview(request_frame(metadata_request(12, "t"), 1))[4:]
    assert isinstance(serve(raising(BrokerError(code, "no ids are left")), request), ResponseFrame)
    assert [record.getMessage().partition(" is refused: ")[2] for record in caplog.records] == [
        f"{code.name}: no ids are left"
    ]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (CreateTopicsRequest(topics=[], version=7), ErrorCode.POLICY_VIOLATION),
        (DeleteTopicsRequest(version=5), ErrorCode.INVALID_REQUEST),
        (MetadataRequest.of_names(None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, ErrorCode.LOG_DIR_NOT_FOUND),
    ],
)
async def test_a_refusal_whose_message_or_code_tells_the_reason_has_no_line_of_the_log(
    caplog: pytest.LogCaptureFixture, request_: Any, code: ErrorCode
) -> None:
    session = Session(Listener("PLAINTEXT", "127.0.0.1", 0))
    log_unsaid(RepeatedWarnings(asyncio.get_running_loop()), session, 3, BrokerError(code, "why"), request_)
    assert not caplog.records


async def test_a_version_without_a_message_has_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    session, loop = Session(Listener("PLAINTEXT", "127.0.0.1", 0)), asyncio.get_running_loop()
    request = DeleteTopicsRequest(version=4)
    log_unsaid(RepeatedWarnings(loop), session, 20, BrokerError(ErrorCode.INVALID_REQUEST, "why"), request)
    assert [record.getMessage().partition(" is refused: ")[2] for record in caplog.records] == ["INVALID_REQUEST: why"]


@pytest.mark.parametrize("give", [raising(KeyError("bug")), deferring(KeyError("bug")), awaiting(KeyError("bug"))])
def test_a_bug_is_answered_and_logged_once(
    give: Callable[[Deferred[Any]], object], caplog: pytest.LogCaptureFixture
) -> None:
    assert code_of(serve(give)) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_a_client_that_repeats_a_bug_gets_few_lines_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        errors: list[Exception] = [KeyError("bug")] * 100 + [ValueError("another bug")] * 100

        def handle(session: object, request: object) -> object:
            raise errors.pop()

        dispatcher = Dispatcher({ApiKey.METADATA: handle}, BrokerProbes(), asyncio.get_running_loop())
        session = Session(Listener("PLAINTEXT", "127.0.0.1", 0))
        while errors:
            assert code_of(cast("LateResponse", dispatcher.serve(session, frame()))) == ErrorCode.UNKNOWN_SERVER_ERROR

    asyncio.run(run())
    found = [type(record.exc_info[1]) for record in caplog.records if record.exc_info is not None]
    assert found == [ValueError] * BUG_LINES + [KeyError] * BUG_LINES


@pytest.mark.parametrize("give", [returning(TOO_MUCH), deferring(TOO_MUCH), awaiting(TOO_MUCH)])
def test_an_answer_that_does_not_fit_a_native_frame_is_an_invalid_request(
    give: Callable[[Deferred[Any]], object], caplog: pytest.LogCaptureFixture
) -> None:
    answer = serve(give, memoryview(native_request(ApiKey.METADATA, {"topics": None}))[4:])
    assert isinstance(answer, ResponseFrame)
    assert answer_fields(answer.header[4:])[3] == ErrorCode.INVALID_REQUEST
    # asyncio's debug mode reports a slow turn on a busy machine.
    assert not [record for record in caplog.records if record.name != "asyncio"]


def test_an_answer_that_nobody_waits_for_any_more_is_dropped() -> None:
    async def run() -> None:
        deferred: Deferred[Any] = Deferred()
        handlers = {ApiKey.METADATA: lambda session, request: deferred}
        dispatcher = Dispatcher(handlers, BrokerProbes(), asyncio.get_running_loop())
        outcome = dispatcher.serve(Session(Listener("PLAINTEXT", "127.0.0.1", 0)), frame())
        assert isinstance(outcome, Deferred)
        outcome.then(lambda answer: pytest.fail("answered"))
        outcome.cancel()
        assert deferred.done
        deferred.resolve(SMALL)

    asyncio.run(run())


@pytest.mark.parametrize("give", [deferring(REFUSED), awaiting(REFUSED)])
def test_a_late_answer_that_cannot_be_made_at_all_closes_the_connection(
    give: Callable[[Deferred[Any]], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> bytes:
        raise KeyError("bug")

    monkeypatch.setattr(MetadataRequest, "refused", broken)
    assert isinstance(serve(give), CloseConnection)


def large_frame() -> bytearray:
    frame = bytearray(request_frame(metadata_request(4, *(f"topic-{number:040d}" for number in range(2000))), 7)[4:])
    assert len(frame) > LARGE_REQUEST_BYTES
    return frame


@pytest.mark.parametrize(
    ("give", "code"),
    [(give(SMALL), ErrorCode.NONE) for give in (returning, deferring, awaiting)]
    + [(give(REFUSED), ErrorCode.POLICY_VIOLATION) for give in (raising, deferring, awaiting)]
    + [(give(KeyError("bug")), ErrorCode.UNKNOWN_SERVER_ERROR) for give in (raising, deferring, awaiting)],
)
def test_a_large_request_is_answered_as_a_small_one(give: Callable[[Deferred[Any]], object], code: ErrorCode) -> None:
    assert set(codes_of(serve(give, memoryview(large_frame()))).values()) == {code}


def test_a_large_request_that_does_not_decode_closes_the_connection_as_a_broken_frame() -> None:
    answer = serve(returning(SMALL), memoryview(large_frame())[:-100])
    assert isinstance(answer, CloseConnection)
    assert answer.reason == "bad_frame"


def test_a_large_request_is_dropped_with_its_frame_when_the_client_leaves_before_it_is_decoded() -> None:
    async def run() -> list[object]:
        handled: list[object] = []
        busy = threading.Event()
        with ThreadPoolExecutor(1) as threads:
            threads.submit(busy.wait)
            dispatcher = Dispatcher(
                {ApiKey.METADATA: lambda session, request: handled.append(request)},
                BrokerProbes(),
                asyncio.get_running_loop(),
                None,
                threads,
            )
            frame = large_frame()
            view = memoryview(frame)
            outcome = dispatcher.serve(Session(Listener("PLAINTEXT", "127.0.0.1", 0)), view)
            assert isinstance(outcome, Deferred)
            await asyncio.sleep(0)
            outcome.cancel()
            view.release()
            frame.clear()  # refused as long as there is a view
            busy.set()
            await asyncio.gather(*dispatcher._tasks)
        return handled

    assert asyncio.run(run()) == []


def test_a_client_that_leaves_cancels_the_wait_of_a_large_request() -> None:
    async def run() -> None:
        deferred: Deferred[Any] = Deferred()
        handlers = {ApiKey.METADATA: lambda session, request: deferred}
        dispatcher = Dispatcher(handlers, BrokerProbes(), asyncio.get_running_loop())
        outcome = dispatcher.serve(Session(Listener("PLAINTEXT", "127.0.0.1", 0)), memoryview(large_frame()))
        assert isinstance(outcome, Deferred)
        await asyncio.gather(*dispatcher._tasks)
        outcome.cancel()
        assert deferred.done

    asyncio.run(run())

"""Warnings that clients cause: few lines and a count, however often a client repeats a bad request."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from barnabas.broker.repeated_warnings import (
    ANY_HOST,
    BUG_LINES,
    LINES,
    MAX_EVENTS,
    MAX_LINES,
    OTHERS,
    Event,
    RepeatedWarnings,
)
from tests.support.manual_loop import ManualLoop

logger = logging.getLogger(__name__)


@pytest.fixture
def loop() -> Iterator[ManualLoop]:
    loop = ManualLoop()
    yield loop
    loop.close()


def test_further_warnings_are_counted_until_a_window_has_none(
    loop: ManualLoop, caplog: pytest.LogCaptureFixture
) -> None:
    warnings = RepeatedWarnings(loop)
    event = Event("192.0.2.7", "a connection was closed", " reason=bad_frame")

    def warn(times: int) -> list[str]:
        caplog.clear()
        for number in range(times):
            warnings.warn(logger, event, "frame %d", number)
        return caplog.messages

    assert warn(LINES + 5) == [f"frame {number}" for number in range(LINES)]
    warnings.warn(logger, event._replace(host="192.0.2.8"), "of another host")
    assert caplog.messages[-1] == "of another host"
    loop.pass_time(10_001)
    assert caplog.messages[-1] == "a connection was closed 5 more times in 10 s, host=192.0.2.7 reason=bad_frame"
    assert not warn(3)
    loop.pass_time(10_000)
    assert caplog.messages == ["a connection was closed 3 more times in 10 s, host=192.0.2.7 reason=bad_frame"]
    loop.pass_time(20_000)
    assert len(warn(1)) == 1


def test_an_event_of_any_host_is_counted_without_one(loop: ManualLoop, caplog: pytest.LogCaptureFixture) -> None:
    warnings = RepeatedWarnings(loop)
    for number in range(LINES + 2):
        warnings.warn(logger, Event(ANY_HOST, "a producer was refused", " error=X"), "%d", number)
    loop.pass_time(10_001)
    assert caplog.messages[-1] == "a producer was refused 2 more times in 10 s, error=X"


def test_a_bug_has_few_tracebacks_and_its_count_is_an_error(loop: ManualLoop, caplog: pytest.LogCaptureFixture) -> None:
    warnings = RepeatedWarnings(loop)
    event = Event("192.0.2.7", "a bug in the handler of api 3")
    for _ in range(50):
        warnings.bug(logger, event, KeyError("x"), "a bug in %s", "Metadata")
    assert [record.exc_info is not None for record in caplog.records] == [True] * BUG_LINES
    warnings.bug(logger, event, ValueError("x"), "another bug")
    assert caplog.messages[-1] == "another bug"
    loop.pass_time(10_001)
    counts = f"a bug in the handler of api 3 (KeyError) {50 - BUG_LINES} more times in 10 s, host=192.0.2.7"
    assert caplog.messages[-1] == counts
    assert caplog.records[-1].levelno == logging.ERROR


def test_many_hosts_have_few_lines(loop: ManualLoop, caplog: pytest.LogCaptureFixture) -> None:
    warnings = RepeatedWarnings(loop)
    for number in range(3 * MAX_EVENTS):
        for _ in range(LINES):
            warnings.warn(logger, Event(f"host-{number}", "a frame was refused"), "refused")
    # Each counted host has a line at least, and together they have no more than the first ones may have.
    assert MAX_LINES <= len(caplog.records) <= MAX_LINES + MAX_EVENTS
    loop.pass_time(10_001)
    assert f"a frame was refused {2 * MAX_EVENTS * LINES - 1} more times in 10 s, host={OTHERS}" in caplog.messages
    loop.pass_time(30_000)
    caplog.clear()
    for _ in range(2 * LINES):
        warnings.warn(logger, Event("host", "a frame was refused"), "refused")
    assert len(caplog.records) == LINES, "quiet windows return the lines"

"""Stalls of the event loop: their division into causes, and a real loop that is held up."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from barnabas.broker.metrics import loop_stalls
from barnabas.broker.metrics.loop_stalls import LOG_SECONDS, Collections, LoopStallTimer, divide
from barnabas.broker.probes import LoopStallProbe

DIVISIONS = [
    ("gc", {"late": 0.1, "cpu": 0.1, "run_delay": 0.0, "gc_here": 0.08, "gc_elsewhere": 0.0}),
    ("gc", {"late": 0.1, "cpu": 0.01, "run_delay": 0.0, "gc_here": 0.0, "gc_elsewhere": 0.08}),
    ("running", {"late": 0.1, "cpu": 0.1, "run_delay": 0.0, "gc_here": 0.02, "gc_elsewhere": 0.0}),
    ("processor", {"late": 0.1, "cpu": 0.02, "run_delay": 0.07, "gc_here": 0.0, "gc_elsewhere": 0.0}),
    ("blocked", {"late": 0.1, "cpu": 0.02, "run_delay": 0.01, "gc_here": 0.0, "gc_elsewhere": 0.0}),
]


@pytest.mark.parametrize(("cause", "observed"), DIVISIONS)
def test_the_largest_part_is_the_cause(cause: str, observed: dict[str, float]) -> None:
    parts = divide(**observed)
    assert parts.cause == cause
    assert sum(parts) == pytest.approx(0.1, abs=0.011)


Stall = Callable[[Callable[[], object]], "asyncio.Future[None]"]


@pytest.fixture
def idle_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take the other causes away: no waits for a processor, however busy the machine is, and no garbage collection."""
    monkeypatch.setattr(LoopStallTimer, "_read_run_delay", lambda _: 0.0)
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
async def stalls(idle_machine: None) -> AsyncIterator[tuple[LoopStallProbe, Stall]]:
    """Return a probe, and a function that holds up the loop until the timer has noticed."""
    probe = LoopStallProbe()
    loop = asyncio.get_running_loop()
    timer = LoopStallTimer(loop, probe)
    timer.start()

    async def stall(action: Callable[[], object]) -> None:
        while timer.due - time.monotonic() > 0.02:
            await asyncio.sleep(0.005)
        before = sum(probe.counts.values())
        action()
        while sum(probe.counts.values()) == before:
            await asyncio.sleep(0)

    yield probe, lambda action: asyncio.ensure_future(stall(action))
    timer.stop()
    callbacks = len(gc.callbacks)
    timer.stop()
    assert len(gc.callbacks) == callbacks


async def test_a_loop_that_waits_is_blocked(stalls: tuple[LoopStallProbe, Stall]) -> None:
    probe, stall = stalls
    await asyncio.wait_for(stall(lambda: time.sleep(0.2)), 30)
    assert probe.counts["blocked"] >= 1
    assert probe.seconds["blocked"] >= 0.1
    assert probe.longest_seconds >= 0.1


def test_garbage_collection_is_counted_by_thread() -> None:
    collections = Collections()
    try:
        gc.collect()
        here, elsewhere = collections.take()
        assert here > 0
        assert elsewhere == 0
        thread = threading.Thread(target=gc.collect)
        thread.start()
        thread.join()
        assert collections.take()[1] > 0
        assert collections.take() == (0, 0)
    finally:
        collections.stop()
    gc.collect()
    assert collections.take() == (0, 0)


async def test_a_long_stall_is_logged_with_its_cause_and_the_loops_stack(
    stalls: tuple[LoopStallProbe, Stall], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, stall = stalls
    looks = threading.Semaphore(0)
    system_call = loop_stalls._system_call

    def look(native_id: int) -> str:
        looks.release()
        return system_call(native_id)

    def hold_up_the_loop() -> None:
        for _ in range(2):  # the watching thread has its turn late on a busy machine; its second look follows a sample
            assert looks.acquire(timeout=30)
        time.sleep(LOG_SECONDS)

    monkeypatch.setattr(loop_stalls, "_system_call", look)
    await asyncio.wait_for(stall(hold_up_the_loop), 60)
    (line,) = [each.message for each in caplog.records if "hold_up_the_loop" in each.message]
    assert "the event loop stalled" in line
    assert "cause=blocked" in line
    assert "system_call=?" not in line

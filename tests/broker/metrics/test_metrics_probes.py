"""The counters, and the timer that measures the event loop's lag."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable

import pytest

from barnabas.broker.metrics.loop_lag import LoopLagTimer
from barnabas.broker.probes import REQUEST_LATENCY_BOUNDS_SECONDS, BrokerProbes, LoopLagProbe


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [
        (0.0, 0),
        (REQUEST_LATENCY_BOUNDS_SECONDS[0], 0),
        (REQUEST_LATENCY_BOUNDS_SECONDS[0] * 1.001, 1),
        (REQUEST_LATENCY_BOUNDS_SECONDS[-1], len(REQUEST_LATENCY_BOUNDS_SECONDS) - 1),
        (1_000.0, len(REQUEST_LATENCY_BOUNDS_SECONDS)),
    ],
)
def test_a_latency_falls_into_the_first_bucket_whose_bound_is_not_below_it(seconds: float, bucket: int) -> None:
    probe = BrokerProbes().api("produce")
    probe.observe(seconds)
    assert [index for index, count in enumerate(probe.counts) if count] == [bucket]
    assert probe.sum_seconds == seconds


def test_a_probe_is_made_once_and_kept() -> None:
    probes = BrokerProbes()
    assert probes.api("fetch") is probes.api("fetch")
    assert probes.topic("orders") is probes.topic("orders")


def test_a_forgotten_topic_starts_again_at_zero() -> None:
    probes = BrokerProbes()
    probes.topic("orders").bytes_in += 10
    probes.forget_topic("orders")
    probes.forget_topic("never-seen")
    assert probes.topic("orders").bytes_in == 0


def test_open_connections_are_the_accepted_less_the_closed_and_never_the_refused() -> None:
    connections = BrokerProbes().connections
    for _ in range(3):
        connections.count_accepted()
    connections.count_closed("client")
    connections.count_refused("max_connections")
    assert (connections.open, connections.accepted) == (2, 3)
    assert (connections.closed, connections.refused) == ({"client": 1}, {"max_connections": 1})


def test_the_probes_need_no_prometheus() -> None:
    code = "import sys, barnabas.broker.probes; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


class SteppedLoop:
    """An event loop whose `call_later` timer a test fires by `run_timer`, `late` seconds after its time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.delay = 0.0
        self.callback: Callable[[], None] = lambda: None
        self.cancelled = False

    def call_later(self, delay: float, callback: Callable[[], None]) -> SteppedLoop:
        self.delay, self.callback = delay, callback
        return self

    def cancel(self) -> None:
        self.cancelled = True

    def run_timer(self, *, late: float) -> None:
        self.now += self.delay + late
        self.callback()


def lag_timer(loop: SteppedLoop, probe: LoopLagProbe) -> LoopLagTimer:
    return LoopLagTimer(loop, probe, interval_seconds=0.5, monotonic=lambda: loop.now)  # type: ignore[arg-type]


def test_the_lag_is_how_much_too_late_each_timer_fires() -> None:
    loop, probe = SteppedLoop(), LoopLagProbe()
    lag_timer(loop, probe).start()
    loop.run_timer(late=0.2)
    loop.run_timer(late=0.0)
    loop.run_timer(late=0.3)
    assert probe.sum_seconds == pytest.approx(0.5)
    assert sum(probe.counts) == 3


def test_a_timer_that_fires_early_counts_as_on_time() -> None:
    loop, probe = SteppedLoop(), LoopLagProbe()
    lag_timer(loop, probe).start()
    loop.run_timer(late=-0.001)
    assert probe.sum_seconds == 0
    assert probe.counts[0] == 1


def test_the_heart_beats_from_start_to_stop() -> None:
    loop, probe = SteppedLoop(), LoopLagProbe()
    timer = lag_timer(loop, probe)
    assert probe.last_beat is None
    timer.start()
    assert probe.last_beat == pytest.approx(100.0)
    loop.run_timer(late=0.0)
    assert probe.last_beat == pytest.approx(100.5)
    timer.stop()
    assert probe.last_beat is None
    assert loop.cancelled


async def test_a_real_loop_that_is_held_up_shows_it() -> None:
    probe = LoopLagProbe()
    clock = iter([0.0, 0.051, 0.102])
    beats = asyncio.Event()

    def monotonic() -> float:
        now = next(clock)
        if now > 0.1:
            beats.set()
        return now

    timer = LoopLagTimer(asyncio.get_running_loop(), probe, interval_seconds=0.001, monotonic=monotonic)
    timer.start()
    await asyncio.wait_for(beats.wait(), 30)
    timer.stop()
    assert probe.sum_seconds == pytest.approx(0.1)

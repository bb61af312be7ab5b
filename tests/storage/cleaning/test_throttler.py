"""The throttle keeps all threads together to the rate, and can be woken."""

from __future__ import annotations

import math
import threading

from barnabas.broker.storage.cleaning.throttler import BURST_SECONDS, Throttler
from barnabas.broker.storage.services.clock import SystemClock
from tests.support.storage.bench import ManualClock


class _SleepingClock(ManualClock):
    """Clock that is advanced by waits, which are recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeps: list[float] = []

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now_ms += math.ceil(seconds * 1000)


def _throttler(bytes_per_second: float) -> tuple[Throttler, _SleepingClock]:
    clock = _SleepingClock()
    return Throttler(bytes_per_second, clock, clock.wait), clock


def test_ten_seconds_of_bytes_take_ten_seconds() -> None:
    throttler, clock = _throttler(1000)
    for _ in range(100):
        throttler.note(100)
    assert abs(sum(clock.sleeps) - 10) <= BURST_SECONDS
    assert abs(throttler.seconds_throttled - sum(clock.sleeps)) < 0.2


def test_idle_time_counts_for_a_burst_only() -> None:
    throttler, clock = _throttler(1000)
    clock.now_ms += 3_600_000
    throttler.note(2000)
    assert round(sum(clock.sleeps), 3) == 1.0


def test_below_the_rate_there_is_no_sleep() -> None:
    throttler, clock = _throttler(1000)
    for _ in range(100):
        clock.now_ms += 1000
        throttler.note(999)
    assert clock.sleeps == []


def test_the_default_rate_is_unlimited() -> None:
    throttler, clock = _throttler(1.7976931348623157e308)
    throttler.note(1 << 60)
    assert clock.sleeps == []


def test_a_sleeping_thread_is_counted_while_it_sleeps() -> None:
    clock = _SleepingClock()
    counts: list[int] = []

    def wait(condition: threading.Condition, seconds: float) -> None:
        counts.append(throttler.threads_throttled)
        clock.wait(condition, seconds)

    throttler = Throttler(1000, clock, wait)
    throttler.note(5000)
    assert counts == [1]
    assert throttler.threads_throttled == 0


def test_a_new_rate_ends_the_sleep_and_drops_the_debt_at_the_old_one() -> None:
    clock = _SleepingClock()
    throttler = Throttler(1.0, clock, lambda condition, seconds: throttler.set_rate(1e9))
    throttler.note(1_000_000)  # would be eleven days
    assert throttler.bytes_per_second == 1e9
    throttler.note(1000)


def test_a_woken_sleep_leaves_its_bytes_accounted_for() -> None:
    clock = _SleepingClock()
    waits: list[float] = []

    def wake(condition: threading.Condition, seconds: float) -> None:
        waits.append(seconds)
        throttler.wake()

    throttler = Throttler(1.0, clock, wake)
    throttler.note(101)
    throttler.note(10)
    assert [round(each) for each in waits] == [101, 111]


def test_a_sleep_of_days_on_another_thread_ends_when_it_is_woken() -> None:
    throttler = Throttler(1.0, SystemClock())
    thread = threading.Thread(target=throttler.note, args=(1_000_000,), daemon=True)
    thread.start()
    while thread.is_alive():  # it may not have reached the lock yet
        throttler.wake()
        thread.join(0.01)
    assert throttler.seconds_throttled < 1_000_000

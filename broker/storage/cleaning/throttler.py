"""Holds the cleaner's reads and writes together to log.cleaner.io.max.bytes.per.second, over all its threads.

What was read or written is noted after the fact; the noting thread then sleeps until the rate is met again. Bytes that
were not used in the last BURST_SECONDS may be made up for, older ones are lost, so that a broker that was idle for a
day does not compact at full speed for a day. A sleep ends early on `wake`: whoever stops a round, or changes the rate,
must not wait for a sleep of minutes. Source: Kafka Throttler (which sleeps under its lock and cannot be woken).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from barnabas.broker.storage.services.clock import Clock

BURST_SECONDS = 1.0
"""How much unused time counts: more than the time between two notes of a thread that works."""

_MAX_WAIT_SECONDS = 3600.0
"""A lock cannot wait for ever: a rate of one byte a day is looked at again each hour."""

Wait = Callable[[threading.Condition, float], object]
"""Sleeps on the condition, which is held, for so many seconds or until it is notified."""


class Throttler:
    """One for all threads of a cleaner. Thread-safe; the counters are for the metrics."""

    def __init__(
        self, bytes_per_second: float, clock: Clock, wait: Wait = lambda condition, seconds: condition.wait(seconds)
    ) -> None:
        """`bytes_per_second` is above 0. `wait` is injected by tests."""
        self.bytes_total = 0
        self.seconds_throttled = 0.0
        self._bytes_per_second = bytes_per_second
        self._clock = clock
        self._wait = wait
        self._condition = threading.Condition()
        self._paid_until = clock.monotonic()
        """Up to when the bytes noted so far use the rate up."""
        self._wakes = 0

    @property
    def bytes_per_second(self) -> float:
        """The rate at this moment."""
        return self._bytes_per_second

    def set_rate(self, bytes_per_second: float) -> None:
        """Another rate from now on; what was used at the old one is forgotten, and sleepers wake."""
        with self._condition:
            self._bytes_per_second = bytes_per_second
            self._paid_until = self._clock.monotonic()
            self._wakes += 1
            self._condition.notify_all()

    def wake(self) -> None:
        """End all sleeps now: a round is to stop. The bytes stay noted, so another thread is held as before."""
        with self._condition:
            self._wakes += 1
            self._condition.notify_all()

    def note(self, size_bytes: int) -> None:
        """`size_bytes` were read or written: sleep until the rate allows more."""
        with self._condition:
            self.bytes_total += size_bytes
            now = started = self._clock.monotonic()
            earliest = max(self._paid_until, now - BURST_SECONDS)
            self._paid_until = due = earliest + size_bytes / self._bytes_per_second
            wakes = self._wakes
            while now < due and self._wakes == wakes:
                self._wait(self._condition, min(due - now, _MAX_WAIT_SECONDS))
                now = self._clock.monotonic()
            self.seconds_throttled += now - started

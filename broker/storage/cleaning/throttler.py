"""Throttle for the cleaner's reads and writes: log.cleaner.io.max.bytes.per.second over all its threads.

Bytes are accounted for after they were read or written; the calling thread then sleeps until the rate is met again.
Capacity unused in the last BURST_SECONDS can be used later, older capacity is lost: a broker that was idle for a day
must not compact at full speed for a day. `wake` ends a sleep early, because a sleep can take minutes, and stopping a
round or changing the rate must not wait for it. Source: Kafka Throttler (which sleeps under its lock and cannot be
woken).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from barnabas.broker.storage.services.clock import Clock

BURST_SECONDS = 1.0
"""Unused time that counts: more than the time between two calls of `note` by a busy thread."""

_MAX_WAIT_SECONDS = 3600.0
"""Longest single wait: at a rate of one byte a day the wait is repeated each hour."""

Wait = Callable[[threading.Condition, float], object]
"""Waits on the condition, which is held, for a number of seconds or until it is notified."""


class Throttler:
    """Throttle shared by all cleaner threads. Thread-safe; `seconds_throttled` is for the metrics."""

    def __init__(
        self, bytes_per_second: float, clock: Clock, wait: Wait = lambda condition, seconds: condition.wait(seconds)
    ) -> None:
        """`bytes_per_second` must be positive. `wait` is injected by tests."""
        self.seconds_throttled = 0.0
        self.threads_throttled = 0
        """Threads that sleep now."""
        self._bytes_per_second = bytes_per_second
        self._clock = clock
        self._wait = wait
        self._condition = threading.Condition()
        self._paid_until = clock.monotonic()
        """Time (monotonic) up to which the accounted bytes use the rate."""
        self._wakes = 0

    @property
    def bytes_per_second(self) -> float:
        """The current rate."""
        return self._bytes_per_second

    def set_rate(self, bytes_per_second: float) -> None:
        """Change the rate, drop the debt at the old rate, and wake sleeping threads."""
        with self._condition:
            self._bytes_per_second = bytes_per_second
            self._paid_until = self._clock.monotonic()
            self._wakes += 1
            self._condition.notify_all()

    def wake(self) -> None:
        """End all sleeps, because a round has to stop. The bytes stay accounted for: other threads sleep as before."""
        with self._condition:
            self._wakes += 1
            self._condition.notify_all()

    def note(self, size_bytes: int) -> None:
        """Account for `size_bytes` read or written, and sleep until the rate allows more."""
        with self._condition:
            now = started = self._clock.monotonic()
            earliest = max(self._paid_until, now - BURST_SECONDS)
            self._paid_until = due = earliest + size_bytes / self._bytes_per_second
            wakes = self._wakes
            self.threads_throttled += 1
            try:
                while now < due and self._wakes == wakes:
                    self._wait(self._condition, min(due - now, _MAX_WAIT_SECONDS))
                    now = self._clock.monotonic()
            finally:
                self.threads_throttled -= 1
            self.seconds_throttled += now - started

"""Rate over the samples of the last seconds, and the time that brings it back to its bound.

Numbers are Kafka's to the millisecond: a sample begins with the first value after the end of the one before it; a
sample that overlaps the observed windows counts whole; a rate younger than all windows but one is divided by these
windows, so that a burst at the start is allowed. Source: Kafka's Rate, SampledStat, WindowedSum, QuotaUtils.

The current sample and the sum are in a Tally, into which compiled code counts.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from barnabas.broker.quotas.tally import Tally

SECOND_MS: Final = 1000

FOREVER_MS: Final = 0x7FFF_FFFF
"""The longest throttle time, and that of a quota of nothing: throttle_time_ms is an int32."""


class WindowSizes(NamedTuple):
    """quota.window.num and quota.window.size.seconds: the number of samples, and the length of each."""

    samples: int = 11
    sample_seconds: int = 1

    @property
    def sample_ms(self) -> int:
        """Length of a sample."""
        return self.sample_seconds * SECOND_MS

    @property
    def total_ms(self) -> int:
        """Length of all samples."""
        return self.samples * self.sample_ms


class Rate:
    """A sum of values per second. Times are ms of one clock that never goes backwards."""

    __slots__ = (
        "_current",
        "_ends",
        "_expired_from",
        "_lasts",
        "_oldest",
        "_starts",
        "_values",
        "_windows",
        "least_seconds",
        "tally",
    )

    def __init__(self, windows: WindowSizes) -> None:
        self._windows = windows
        self.least_seconds = (windows.samples - 1) * windows.sample_seconds
        """Time by which the sum is divided at least."""
        self.tally = Tally()
        self._starts: list[int] = []
        self._lasts: list[int] = []
        """Times of the last values. That of the current sample is in the tally."""
        self._values: list[float] = []
        """Sums of the samples. That of the current one is in the tally."""
        self._current = 0
        self._ends = 0
        """The current sample takes no values from this time on."""
        self._oldest = 0
        self._expired_from = 0
        """No sample expires before this time."""

    def record(self, value: float, now_ms: int) -> None:
        """Add a value, which is negative to take one back."""
        if not self._starts:
            self._add_sample(now_ms)
        elif now_ms >= self._ends:
            self._advance(now_ms)
        tally = self.tally
        tally.sample += value
        tally.last_ms = now_ms
        tally.total += value

    def samples(self) -> list[tuple[int, int, float]]:
        """Return start, time of the last value, and sum of each sample."""
        self._store_current()
        return list(zip(self._starts, self._lasts, self._values, strict=True))

    def per_second(self, now_ms: int) -> float:
        """Return the rate now."""
        elapsed_ms = self._elapsed_ms(now_ms)
        return self.tally.total / (elapsed_ms / SECOND_MS)

    def record_and_throttle_ms(self, value: float, bound: float, now_ms: int) -> int:
        """Add a value; return `throttle_ms`."""
        self.record(value, now_ms)
        if now_ms < self._expired_from and self.tally.total <= bound * self.least_seconds:
            return 0  # whatever the exact time is
        return self.throttle_ms(bound, now_ms)

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """Return the time without values after which the rate is at `bound`; 0 if it is not above."""
        per_second = self.per_second(now_ms)
        if not per_second > bound:  # a bound may be anything that a record can contain, also NaN
            return 0
        if bound <= 0:
            return FOREVER_MS
        return math.floor(min((per_second - bound) / bound * self._elapsed_ms(now_ms), FOREVER_MS) + 0.5)

    def is_idle(self, now_ms: int) -> bool:
        """Return whether no sample counts any more: a new rate would be equal."""
        self._store_current()
        return not self._lasts or now_ms - max(self._lasts) >= self._windows.total_ms

    def _elapsed_ms(self, now_ms: int) -> int:
        """Expire samples, and return the time by which their sum is divided."""
        if not self._starts:
            self._add_sample(now_ms)
        if now_ms >= self._expired_from:
            self._expire(now_ms)
        sample_ms = self._windows.sample_ms
        elapsed_ms = now_ms - self._oldest
        missing = self._windows.samples - 1 - elapsed_ms // sample_ms
        if missing > 0:
            elapsed_ms += missing * sample_ms
        return max(elapsed_ms, 1)

    def _store_current(self) -> None:
        if self._starts:
            self._values[self._current] = self.tally.sample
            self._lasts[self._current] = self.tally.last_ms

    def _advance(self, now_ms: int) -> None:
        self._store_current()
        self._current = (self._current + 1) % (self._windows.samples + 1)
        if self._current == len(self._starts):
            self._add_sample(now_ms)
        else:
            self._reset(self._current, now_ms)
            self._summarize()

    def _add_sample(self, now_ms: int) -> None:
        self._starts.append(now_ms)
        self._lasts.append(now_ms)
        self._values.append(0.0)
        self._summarize()

    def _expire(self, now_ms: int) -> None:
        self._store_current()
        for index, last in enumerate(self._lasts):
            if now_ms - last >= self._windows.total_ms:
                self._reset(index, now_ms)
        self._summarize()

    def _reset(self, index: int, now_ms: int) -> None:
        self._starts[index] = self._lasts[index] = now_ms
        self._values[index] = 0.0

    def _summarize(self) -> None:
        """Compute what follows from the samples, after a change of any but the current one's sum."""
        self._oldest = min(self._starts)
        self._ends = self._starts[self._current] + self._windows.sample_ms
        self._expired_from = min(self._lasts) + self._windows.total_ms
        tally = self.tally
        tally.total = math.fsum(self._values)
        tally.sample = self._values[self._current]
        tally.last_ms = self._lasts[self._current]
        tally.plain_until_ms = min(self._ends, self._expired_from)

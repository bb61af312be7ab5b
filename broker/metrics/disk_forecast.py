"""When a file system is full at the rate of the last hours: a line through samples of its free space."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

INTERVAL_S: Final = 60.0
"""Samples closer together than this are not kept."""
MAX_SAMPLES: Final = 360
"""Six hours, so that retention's saw teeth even out."""
MIN_SPAN_S: Final = 600.0
"""Without a forecast before: a minute's burst is no trend."""


class DiskForecast:
    """The free space of one file system over time. Times are seconds of any one clock."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque(maxlen=MAX_SAMPLES)

    def observe(self, now: float, free_bytes: int) -> None:
        """Add a sample, unless the last one is younger than a minute."""
        if not self._samples or now - self._samples[-1][0] >= INTERVAL_S:
            self._samples.append((now, free_bytes))

    def seconds_until_full(self, free_bytes: int) -> float | None:
        """Return the time in which `free_bytes` are used up: infinite if they do not shrink, None if not known yet."""
        samples = self._samples
        if not samples or samples[-1][0] - samples[0][0] < MIN_SPAN_S:
            return None
        mean_time = sum(time for time, _ in samples) / len(samples)
        mean_free = sum(free for _, free in samples) / len(samples)
        covariance = sum((time - mean_time) * (free - mean_free) for time, free in samples)
        variance = sum((time - mean_time) ** 2 for time, _ in samples)
        bytes_per_second = -covariance / variance
        return free_bytes / bytes_per_second if bytes_per_second > 0 else math.inf

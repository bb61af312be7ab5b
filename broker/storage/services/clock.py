"""The two clocks of the log engine, as one injected part.

Wall time is for record timestamps, retention and file ages (milliseconds since 1970, as in Kafka's files); it may jump.
Monotonic time is for waits and deadlines (seconds, not comparable between processes). Tests inject their own clock.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Source of time for storage."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970-01-01 UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""
        ...


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def wall_ms(self) -> int:
        """Return milliseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""
        return time.monotonic()

"""The two clocks of the log engine, as one injected part.

Wall time stamps records, retention and file ages (milliseconds since 1970, as in Kafka's files); it may jump.
Monotonic time orders waits and deadlines (seconds, no meaning between processes). Tests inject their own.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where storage gets its time from."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        ...


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        return time.monotonic()

"""Measures how late the event loop runs its callbacks, with a periodic timer.

One timer every half second: 0.002 % of a core. libuv's timers count whole milliseconds, so a quiet loop shows lags
of up to one millisecond; lags that matter are far above that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from barnabas.broker.probes import LoopLagProbe

INTERVAL_SECONDS: Final = 0.5


class LoopLagTimer:
    """Feeds a `LoopLagProbe` from a running loop until `stop`. Create and stop it in the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        probe: LoopLagProbe,
        *,
        interval_seconds: float = INTERVAL_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loop = loop
        self._probe = probe
        self._interval = interval_seconds
        self._monotonic = monotonic
        self._due = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Set the first timer."""
        now = self._monotonic()
        self._probe.last_beat = now
        self._set(now)

    def stop(self) -> None:
        """Cancel the timer; `last_beat` becomes None, so that it is no longer checked."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._probe.last_beat = None

    def _set(self, now: float) -> None:
        self._due = now + self._interval
        self._handle = self._loop.call_later(self._interval, self._beat)

    def _beat(self) -> None:
        now = self._monotonic()
        self._probe.observe(max(0.0, now - self._due))
        self._probe.last_beat = now
        self._set(now)

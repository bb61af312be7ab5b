"""Throttle: holds a connection's requests back for as long as the broker's last response demands (KIP-219)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

Buffers = list[bytes | memoryview]


class Throttle:
    """Frames wait here, in order, until the time is over. Call every method in the event loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, write: Callable[[Buffers], None]) -> None:
        """`write` gets the buffers of one frame at a time."""
        self._loop = loop
        self._write = write
        self._timer: asyncio.TimerHandle | None = None
        self._held: list[Buffers] = []
        self.until = 0.0
        """The loop's time when the throttle ends."""
        self.on_end: Callable[[], None] | None = None

    @property
    def is_active(self) -> bool:
        """Whether frames wait."""
        return self._timer is not None

    def begin(self, throttle_ms: int) -> None:
        """Hold frames back for this time from now on, or until a longer one that has begun before is over."""
        until = self._loop.time() + throttle_ms / 1000
        if self._timer is not None:
            if until <= self.until:
                return
            self._timer.cancel()
        self.until = until
        self._timer = self._loop.call_at(until, self._end)

    def send(self, buffers: Buffers) -> None:
        """Write a frame, now or when the throttle ends."""
        if self._timer is None:
            self._write(buffers)
        else:
            self._held.append(buffers)

    def cancel(self) -> None:
        """Forget the frames: the connection has ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._held.clear()

    def _end(self) -> None:
        self._timer = None
        held, self._held = self._held, []
        for buffers in held:
            self._write(buffers)
        if self.on_end is not None:
            self.on_end()

"""An event loop without timers, for waits that only an append or the test ends."""

from __future__ import annotations

from collections.abc import Callable


class NoTimers:
    """The part of an event loop that a wait uses. No timer fires."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []

    def call_later(self, delay: float, callback: Callable[[], None]) -> NoTimers:
        return self

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def cancel(self) -> None:
        pass

    def run_soon(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()

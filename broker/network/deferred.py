"""An answer that is not there yet: a long poll, a group commit, a change of metadata.

Lighter than an asyncio.Future: the callback runs inside `resolve`, not in a later turn of the loop, so a woken fetch
leaves in the same turn in which its record arrived. One thread (the event loop's) only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Deferred(Generic[T]):
    """A value that comes once, or never (`cancel`). At most one callback, set before or after the value came."""

    __slots__ = ("_callback", "_cancelled", "_on_cancel", "_resolved", "_value")

    def __init__(self, on_cancel: Callable[[], None] | None = None) -> None:
        """`on_cancel` is called when nobody waits for the value any more (the client has gone)."""
        self._callback: Callable[[T], None] | None = None
        self._on_cancel = on_cancel
        self._resolved = False
        self._cancelled = False
        self._value: T

    @property
    def done(self) -> bool:
        """Whether the value came or is no longer wanted."""
        return self._resolved or self._cancelled

    def resolve(self, value: T) -> None:
        """Give the value to whoever waits for it. After `cancel` it is dropped: the client has gone."""
        if self._cancelled:
            return
        if self._resolved:
            raise RuntimeError("a deferred answer was resolved twice")
        self._resolved = True
        if self._callback is not None:
            self._callback(value)
        else:
            self._value = value

    def then(self, callback: Callable[[T], None]) -> None:
        """Call `callback` with the value: now when it is there, else when it comes."""
        if self._resolved:
            callback(self._value)
        else:
            self._callback = callback

    def cancel(self) -> None:
        """The value is not wanted any more. Does nothing once it came."""
        if not self.done:
            self._cancelled = True
            self._callback = None
            if self._on_cancel is not None:
                self._on_cancel()

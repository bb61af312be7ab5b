"""A response that is not available yet: a long poll, a group commit, a metadata change.

Lighter than an asyncio.Future: the callback runs inside `resolve`, not in a later turn of the loop, so a woken fetch
is answered in the same turn in which its record arrived. For the event loop's thread only.

Because of that, `resolve` may serve the connection's next request before it returns, and that request may concern the
same group or partition: resolve only when the state is consistent again.

The class has a compiled twin (kernels/_deferred.pyx).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from barnabas.protocol.errors import BrokerError, without_frames
from barnabas.protocol.kernel_choice import load_compiled

T = TypeVar("T")


class PythonDeferred(Generic[T]):
    """A value that arrives once, or never (`cancel`). At most one callback, set before or after the value arrives."""

    __slots__ = ("_callback", "_cancelled", "_on_cancel", "_resolved", "_value")

    def __init__(self, on_cancel: Callable[[], None] | None = None) -> None:
        """`on_cancel` is called when the value is no longer needed (the client has disconnected)."""
        self._callback: Callable[[T], None] | None = None
        self._on_cancel = on_cancel
        self._resolved = False
        self._cancelled = False
        self._value: T

    @property
    def done(self) -> bool:
        """Whether the value has arrived or is no longer needed."""
        return self._resolved or self._cancelled

    @property
    def value(self) -> T:
        """The value, which has arrived before a callback was set."""
        if not self._resolved:
            raise RuntimeError("a deferred answer has no value yet")
        return self._value

    def resolve(self, value: T) -> None:
        """Pass the value to the callback. After `cancel` it is dropped."""
        if self._cancelled:
            return
        if self._resolved:
            raise RuntimeError("a deferred answer was resolved twice")
        self._resolved = True
        if isinstance(value, BrokerError):
            without_frames(value)
        self._on_cancel = None  # it and the callback refer to their request: with them, it would be in a cycle
        callback = self._callback
        if callback is not None:
            self._callback = None
            callback(value)
        else:
            self._value = value

    def then(self, callback: Callable[[T], None]) -> None:
        """Call `callback` with the value, now or when it arrives."""
        if self._resolved:
            callback(self._value)
        else:
            self._callback = callback

    def cancel(self) -> None:
        """Drop the callback and call `on_cancel`. Does nothing once the value has arrived."""
        if not self.done:
            self._cancelled = True
            self._callback = None
            on_cancel, self._on_cancel = self._on_cancel, None
            if on_cancel is not None:
                on_cancel()


def _compiled() -> type[PythonDeferred[Any]]:
    from barnabas.broker.network.kernels._deferred import Deferred

    return Deferred


if TYPE_CHECKING:
    Deferred = PythonDeferred
else:
    Deferred = load_compiled(_compiled) or PythonDeferred

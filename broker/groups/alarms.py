"""Wakes groups at their deadlines: at most one timer of the event loop for each.

A deadline that moved to later, as a session's does with each heartbeat, leaves the timer where it is; it then wakes the
group for nothing, once for each session timeout rather than once for each heartbeat.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Alarmed(Protocol):
    """A group of either protocol."""

    @property
    def wake_at(self) -> float:
        """When its first deadline may have passed, in seconds of the loop's clock."""
        ...


Group = TypeVar("Group", bound=Alarmed)


class GroupAlarms(Generic[Group]):
    """Calls `wake` with a group when the first of its deadlines may have passed; whoever is woken sets it again."""

    __slots__ = ("_is_silent", "_loop", "_set", "_wake")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, wake: Callable[[Group], None], *, is_silent: bool = False
    ) -> None:
        """`is_silent`: nobody is ever woken. The groups of a broker that only reads stay as they were found."""
        self._is_silent = is_silent
        self._loop = loop
        self._wake = wake
        self._set: dict[str, tuple[float, asyncio.TimerHandle]] = {}
        """By group id: when, and by what."""

    def set(self, group_id: str, group: Group) -> None:
        """At the group's next deadline, unless it is woken even before."""
        if self._is_silent:
            return
        wake_at = group.wake_at
        current = self._set.get(group_id)
        if current is not None:
            if current[0] <= wake_at:
                return
            current[1].cancel()
        elif wake_at == math.inf:
            return
        self._set[group_id] = (wake_at, self._loop.call_at(wake_at, self._ring, group_id, group))

    def forget(self, group_id: str) -> None:
        """Not any more."""
        alarm = self._set.pop(group_id, None)
        if alarm is not None:
            alarm[1].cancel()

    def _ring(self, group_id: str, group: Group) -> None:
        del self._set[group_id]
        self._wake(group)

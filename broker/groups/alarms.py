"""Wakes groups at their deadlines, with at most one timer of the event loop per group.

A deadline that moves to later, as a session's does with each heartbeat, leaves the timer unchanged. The group then
wakes too early, once per session timeout instead of once per heartbeat.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Generic, TypeVar

from barnabas.broker.groups.group import Group

AlarmedGroup = TypeVar("AlarmedGroup", bound=Group)


class GroupAlarms(Generic[AlarmedGroup]):
    """Calls `wake` with a group when its first deadline may have passed. The callee sets the next alarm."""

    __slots__ = ("_is_silent", "_loop", "_set", "_wake")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, wake: Callable[[AlarmedGroup], None], *, is_silent: bool = False
    ) -> None:
        """Create it without alarms. `is_silent`: never wake a group, because a read-only broker cannot change it."""
        self._is_silent = is_silent
        self._loop = loop
        self._wake = wake
        self._set: dict[str, tuple[float, asyncio.TimerHandle]] = {}
        """Time and timer by group id."""

    def set(self, group: AlarmedGroup) -> None:
        """Wake the group at its next deadline, unless an earlier alarm is set."""
        if self._is_silent:
            return
        group_id, wake_at = group.group_id, group.wake_at
        current = self._set.get(group_id)
        if current is not None:
            if current[0] <= wake_at:
                return
            current[1].cancel()
        elif wake_at == math.inf:
            return
        self._set[group_id] = (wake_at, self._loop.call_at(wake_at, self._ring, group_id, group))

    def forget(self, group_id: str) -> None:
        """Cancel the group's alarm, if it has one."""
        alarm = self._set.pop(group_id, None)
        if alarm is not None:
            alarm[1].cancel()

    def _ring(self, group_id: str, group: AlarmedGroup) -> None:
        del self._set[group_id]
        self._wake(group)

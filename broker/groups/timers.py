"""The deadlines of one group: each member's session, and the ends of phases of a rebalance.

Moving a deadline to later costs no search: `wake_at` may be too early, never too late, and a group that wakes too early
learns when to wake again. Times are in seconds of the injected clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

TimerKey = tuple[str, str]
"""What the deadline is for, and the member id, or an empty string for one of the whole group."""


class GroupClock(NamedTuple):
    """`now`: monotonic seconds, for deadlines. `wall_ms`: milliseconds since 1970, for records."""

    now: Callable[[], float]
    wall_ms: Callable[[], int]


def session_of(member_id: str) -> TimerKey:
    """Return the key of a member's session."""
    return ("session", member_id)


class GroupTimers:
    """At most one deadline for each key."""

    __slots__ = ("_deadlines", "_due", "_now", "wake_at")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._deadlines: dict[TimerKey, float] = {}
        self._due: list[TimerKey] = []
        """The deadlines that the last search found passed, the earliest last; some may have moved since."""
        self.wake_at = math.inf
        """No deadline is before this time."""

    def __contains__(self, key: object) -> bool:
        return key in self._deadlines

    def schedule(self, key: TimerKey, delay_ms: int) -> None:
        """Set the deadline of `key`, and replace an earlier one."""
        deadline = self._now() + delay_ms / 1000
        self._deadlines[key] = deadline
        self.wake_at = min(self.wake_at, deadline)

    def cancel(self, key: TimerKey) -> None:
        """Drop the deadline of `key`, if it has one."""
        self._deadlines.pop(key, None)

    def left_ms(self, key: TimerKey) -> int | None:
        """Return the time until the deadline of `key`, 0 once it has passed; None without one."""
        deadline = self._deadlines.get(key)
        return None if deadline is None else max(0, round((deadline - self._now()) * 1000))

    def clear(self) -> None:
        """Drop all deadlines."""
        self._deadlines.clear()
        self._due.clear()
        self.wake_at = math.inf

    def pop_all_due(self) -> list[TimerKey]:
        """Remove and return all deadlines that passed, the earliest first.

        For work that may set some of them again: they could be due before the last one was worked on.
        """
        due: list[TimerKey] = []
        while (key := self.pop_due()) is not None:
            due.append(key)
        return due

    def pop_due(self) -> TimerKey | None:
        """Remove and return the earliest deadline that passed; None if none has, and then `wake_at` is exact.

        One search finds all of them, because the sessions of thousands of members may end together.
        """
        now = self._now()
        if self.wake_at > now:
            return None
        while True:
            while self._due:
                key = self._due.pop()
                if self._deadlines.get(key, math.inf) <= now:
                    del self._deadlines[key]
                    return key
            due = [(deadline, key) for key, deadline in self._deadlines.items() if deadline <= now]
            if not due:
                self.wake_at = min(self._deadlines.values(), default=math.inf)
                return None
            due.sort(key=lambda each: each[0])
            self._due = [key for _, key in reversed(due)]

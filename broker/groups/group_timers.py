"""The deadlines of one group: each member's session, the end of the joining, the end of the syncing.

Moving one to later costs no search: `wake_at` may be too early, never too late, and who wakes for nothing is told when
to wake again. Times are those of the clock that was injected, in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

JOIN: Final = ("join", "")
SYNC: Final = ("sync", "")

TimerKey = tuple[str, str]


def session_of(member_id: str) -> TimerKey:
    """The key of a member's session."""
    return ("session", member_id)


class GroupTimers:
    """At most one deadline for each key."""

    __slots__ = ("_deadlines", "_now", "wake_at")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._deadlines: dict[TimerKey, float] = {}
        self.wake_at = math.inf
        """No deadline is before this."""

    def __contains__(self, key: object) -> bool:
        return key in self._deadlines

    def schedule(self, key: TimerKey, delay_ms: int) -> None:
        """In the place of the one that there was."""
        deadline = self._now() + delay_ms / 1000
        self._deadlines[key] = deadline
        self.wake_at = min(self.wake_at, deadline)

    def cancel(self, key: TimerKey) -> None:
        """Does nothing where there is none."""
        self._deadlines.pop(key, None)

    def clear(self) -> None:
        """None is left."""
        self._deadlines.clear()
        self.wake_at = math.inf

    def pop_due(self) -> TimerKey | None:
        """The deadline that passed first, taken out; None: none has, and `wake_at` is exact now."""
        if self.wake_at > self._now():
            return None
        key = min(self._deadlines, key=self._deadlines.__getitem__, default=None)
        self.wake_at = math.inf if key is None else self._deadlines[key]
        if key is None or self.wake_at > self._now():
            return None
        del self._deadlines[key]
        return key

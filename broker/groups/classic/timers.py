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

    __slots__ = ("_deadlines", "_due", "_now", "wake_at")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._deadlines: dict[TimerKey, float] = {}
        self._due: list[TimerKey] = []
        """What had passed when it was looked for last, the first one at the end; some may have moved since."""
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
        self._due.clear()
        self.wake_at = math.inf

    def pop_due(self) -> TimerKey | None:
        """The deadline that passed first, taken out; None: none has, and `wake_at` is exact now.

        They are looked for all at once: the sessions of thousands of members may end together.
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

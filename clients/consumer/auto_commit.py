"""When a consumer with a group commits by itself: at the first read after each auto_commit_interval_ms.

Only a read commits, never a timer beside it. A read says that the user is done with all records that it was given, and
so a crash repeats records and loses none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class AutoCommit:
    """Owned by one consumer. `due` is set, and `attention` called, when the interval has passed."""

    def __init__(self, interval_ms: int, attention: Callable[[], None]) -> None:
        self.due = False
        self._interval_s = interval_ms / 1000
        self._attention = attention
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Count the interval from now on; `due` no more."""
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._passed)

    def stop(self) -> None:
        """Never due again, until the next `begin`."""
        self.due = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _passed(self) -> None:
        self._timer = None
        self.due = True
        self._attention()

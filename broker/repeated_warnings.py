"""Warnings that clients cause, bounded: a client that repeats a bad request fills no disk.

The first LINES warnings of an event are logged, further ones are counted, and the count is logged every WINDOW_SECONDS.
A window without the event ends this. All events together get about MAX_LINES lines per window.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import asyncio

WINDOW_SECONDS: Final = 10.0

LINES: Final = 10
"""Lines of one event: its messages may differ in what the client has sent."""

BUG_LINES: Final = 2
"""Tracebacks of one event."""

MAX_LINES: Final = 500
"""Beyond this number, an event has one line."""

MAX_EVENTS: Final = 500
"""Different events that are counted by host."""

OTHERS: Final = "other hosts"
"""Stands for the hosts of all further events."""


ANY_HOST: Final = ""
"""The host of an event that is counted for all hosts together."""


class Event(NamedTuple):
    """A kind of failure and its host. `name` and `context` have few values: clients must not determine them."""

    host: str
    name: str
    """A sentence's beginning: "a connection was closed"."""
    context: str = ""
    """End of the line with the count, after the host: " reason=bad_frame"."""


class _Count:
    """Warnings of one event: logged ones, unlogged ones of this window, and whether this window has any."""

    __slots__ = ("is_recent", "lines", "logged", "unlogged")

    def __init__(self) -> None:
        self.lines = 0
        self.logged: set[str] = set()
        """The `distinct` texts that have a line."""
        self.unlogged = 0
        self.is_recent = False


class RepeatedWarnings:
    """Events of one part of the broker. For the event loop's thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._counts: dict[Event, _Count] = {}
        self._lines = 0
        """Sum of the counts' lines."""

    def warn(
        self,
        logger: logging.Logger,
        event: Event,
        message: str,
        *args: Any,
        lines: int = LINES,
        level: int = logging.WARNING,
        distinct: str | None = None,
    ) -> None:
        """Log `message`, or count it if the event has had its `lines`, or a line with the same `distinct` text."""
        if self._admits(logger, event, lines, level, distinct):
            logger.log(level, message, *args)

    def bug(self, logger: logging.Logger, event: Event, error: BaseException, message: str, *args: Any) -> None:
        """Log `message` with the traceback of `error` at level ERROR, or count it.

        The type of `error` is a part of the event: another bug in the same place has lines of its own.
        """
        event = event._replace(name=f"{event.name} ({type(error).__name__})")
        if self._admits(logger, event, BUG_LINES, logging.ERROR):
            logger.error(message, *args, exc_info=error)

    def _admits(
        self, logger: logging.Logger, event: Event, lines: int, level: int, distinct: str | None = None
    ) -> bool:
        """Return whether one more line of an event is logged; if not, it is counted."""
        if event not in self._counts and len(self._counts) >= MAX_EVENTS:
            event = event._replace(host=OTHERS)
        count = self._counts.get(event)
        if count is None:
            count = self._counts[event] = _Count()
            self._loop.call_later(WINDOW_SECONDS, self._end_window, logger, event, level)
        count.is_recent = True
        if count.lines and (count.lines >= lines or self._lines >= MAX_LINES or distinct in count.logged):
            count.unlogged += 1
            return False
        if distinct is not None:
            count.logged.add(distinct)
        count.lines += 1
        self._lines += 1
        return True

    def _end_window(self, logger: logging.Logger, event: Event, level: int) -> None:
        count = self._counts[event]
        if not count.is_recent:
            self._lines -= count.lines
            del self._counts[event]
            return
        if count.unlogged:
            logger.log(
                level,
                "%s %d more times in %d s%s%s",
                event.name,
                count.unlogged,
                WINDOW_SECONDS,
                "," if event.host == ANY_HOST else f", host={event.host}",
                event.context,
            )
        count.unlogged, count.is_recent = 0, False
        self._loop.call_later(WINDOW_SECONDS, self._end_window, logger, event, level)

"""Warnings that clients cause, bounded: a client that repeats a bad request fills no disk.

The first LINES warnings of an event are logged, further ones are counted, and the count is logged every WINDOW_SECONDS.
A window without the event ends this. All events together get about MAX_LINES lines per window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import asyncio
    import logging

WINDOW_SECONDS: Final = 10.0

LINES: Final = 10
"""Lines of one event: its messages may differ in what the client has sent."""

MAX_LINES: Final = 500
"""Beyond this number, an event has one line."""

MAX_EVENTS: Final = 500
"""Different events that are counted by host."""

OTHERS: Final = "other hosts"
"""Stands for the hosts of all further events."""


class Event(NamedTuple):
    """A kind of failure and its host. `name` and `context` have few values: clients must not determine them."""

    host: str
    name: str
    """A sentence's beginning: "a connection was closed"."""
    context: str = ""
    """End of the line with the count, after the host: " reason=bad_frame"."""


class _Count:
    """Warnings of one event: logged ones, unlogged ones of this window, and whether this window has any."""

    __slots__ = ("is_recent", "lines", "unlogged")

    def __init__(self) -> None:
        self.lines = 0
        self.unlogged = 0
        self.is_recent = False


class RepeatedWarnings:
    """Events of one part of the broker. For the event loop's thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._counts: dict[Event, _Count] = {}
        self._lines = 0
        """Sum of the counts' lines."""

    def warn(self, logger: logging.Logger, event: Event, message: str, *args: Any, lines: int = LINES) -> None:
        """Log `message`, or count it if the event has had its `lines`."""
        if event not in self._counts and len(self._counts) >= MAX_EVENTS:
            event = event._replace(host=OTHERS)
        count = self._counts.get(event)
        if count is None:
            count = self._counts[event] = _Count()
            self._loop.call_later(WINDOW_SECONDS, self._end_window, logger, event)
        count.is_recent = True
        if count.lines and (count.lines >= lines or self._lines >= MAX_LINES):
            count.unlogged += 1
            return
        count.lines += 1
        self._lines += 1
        logger.warning(message, *args)

    def _end_window(self, logger: logging.Logger, event: Event) -> None:
        count = self._counts[event]
        if not count.is_recent:
            self._lines -= count.lines
            del self._counts[event]
            return
        if count.unlogged:
            logger.warning(
                "%s %d more times in %d s, host=%s%s",
                event.name,
                count.unlogged,
                WINDOW_SECONDS,
                event.host,
                event.context,
            )
        count.unlogged, count.is_recent = 0, False
        self._loop.call_later(WINDOW_SECONDS, self._end_window, logger, event)

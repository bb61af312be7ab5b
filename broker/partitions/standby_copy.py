"""What the standby has of one partition, and what waits for it (standby.min.acks=1).

The standby's fetch offset is the end of its copy, as a follower's is. The high watermark is at most that offset, so
that no reader sees what a takeover could lose. Appends beyond it are kept here in their order, with their sizes and
times: the oldest one tells whether the standby is in time.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.storage.log.core import LogCore
    from barnabas.protocol.errors import BrokerError

Replicated = Callable[["BrokerError | None"], None]
"""Called with None once the standby has the records, or with why nobody waits for that any more."""


class _Append(NamedTuple):
    end_offset: int
    size_bytes: int
    appended_at: float


class _Wait(NamedTuple):
    """A wait for `offset`, ordered by it, then by its number."""

    offset: int
    number: int
    gives_up: bool
    then: Replicated


class StandbyCopy:
    """The standby's copy of one log. Event loop only, but for `LogCore.replicated_end`, which any thread reads."""

    __slots__ = ("_appends", "_core", "_numbers", "_release", "_waits", "unreplicated_bytes")

    def __init__(
        self, core: LogCore, replicated_end: int, now: float, release: Callable[[list[Replicated]], None]
    ) -> None:
        """`replicated_end`: the first high watermark. `release` calls what has waited, later in the event loop."""
        self._core = core
        self._release = release
        self._appends: deque[_Append] = deque()
        self._waits: list[_Wait] = []
        self._numbers = 0
        self.unreplicated_bytes = 0
        """Size of the appends that the standby does not have."""
        core.replicated_end = replicated_end
        missing = core.log_end_offset - replicated_end
        if missing > 0:
            self.appended(core.log_end_offset, missing, now)  # their size is not known: at least a byte each

    @property
    def oldest_append(self) -> float | None:
        """When the first record was appended that the standby does not have; None if it has everything."""
        return self._appends[0].appended_at if self._appends else None

    @property
    def has_waits(self) -> bool:
        """Whether anything waits for the standby."""
        return bool(self._waits)

    @property
    def end(self) -> int:
        """Batches below this are at the standby."""
        replicated_end = self._core.replicated_end
        assert replicated_end is not None, "set as long as there is a copy"
        return replicated_end

    def appended(self, end_offset: int, size_bytes: int, now: float) -> int:
        """Note an append; return the bytes of it that consumers may read at once: none, unless it is replicated."""
        if end_offset <= self.end:  # by a mirror's thread: the standby was faster than the event loop
            return size_bytes
        self._appends.append(_Append(end_offset, size_bytes, now))
        self.unreplicated_bytes += size_bytes
        return 0

    def fetched(self, offset: int) -> int | None:
        """Note that the standby has everything below `offset`.

        Returns the bytes that consumers may read from now on, None if the standby had it before.
        """
        if offset <= self.end:
            return None
        self._core.replicated_end = offset
        visible = 0
        appends = self._appends
        while appends and appends[0].end_offset <= offset:
            visible += appends.popleft().size_bytes
        self.unreplicated_bytes -= visible
        released: list[Replicated] = []
        while self._waits and self._waits[0].offset <= offset:
            released.append(heapq.heappop(self._waits).then)
        if released:
            self._release(released)
        return visible

    def forget_appends(self) -> int:
        """Forget the appends after a truncation; return their bytes."""
        forgotten, self.unreplicated_bytes = self.unreplicated_bytes, 0
        self._appends.clear()
        return forgotten

    def wait(self, offset: int, then: Replicated, *, gives_up: bool) -> None:
        """Call `then` once the standby has everything below `offset`, immediately if it has.

        `gives_up`: with an error as soon as the standby is out of time; otherwise only when the broker stops.
        """
        if offset <= self.end:
            then(None)
            return
        self._numbers += 1
        heapq.heappush(self._waits, _Wait(offset, self._numbers, gives_up, then))

    def give_up(self, error: BrokerError, *, is_final: bool) -> None:
        """End the waits that give up, with `is_final` all waits."""
        ended = [each for each in self._waits if is_final or each.gives_up]
        if ended:
            self._waits = [each for each in self._waits if not (is_final or each.gives_up)]
            heapq.heapify(self._waits)
            self._release([lambda _, each=each: each.then(error) for each in ended])  # type: ignore[misc]

    def end_requirement(self) -> int:
        """Let consumers read everything and answer what waits; return the bytes that become visible."""
        self._core.replicated_end = None
        waits, self._waits = self._waits, []
        if waits:
            self._release([each.then for each in waits])
        return self.forget_appends()

"""The memory of receive buffers that have grown for large requests: its bound, and which connection gets it.

A connection's first 256 KiB are its own. More is taken here, in steps that at most double the buffer, when the bytes
before have arrived: the size that a frame announces reserves nothing. While `queued.max.request.bytes` is exhausted, or
one host has half of it, a connection that needs more stops reading and waits. Three rules keep waiting finite:

    one frame may always finish     otherwise frames that are all half received would wait for each other. The first
                                    connection that finds no memory may exceed the bound, by one frame; then the next
    slow senders are cut off        a connection that has memory while others wait must receive 1/64 of it in 5 s, and
                                    64 KiB: 100 kbit/s for small requests, a rate that ends large ones in minutes
    empty buffers are given back    when they exceed 4 MiB, when others wait, or when the connection is idle

So all connections together take at most 256 KiB each, the bound, and one frame (socket.request.max.bytes).
Kafka's bound (org.apache.kafka.common.memory.SimpleMemoryPool) counts the announced sizes and has no deadline: clients
that announce large requests and send nothing starve the others there.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.broker.repeated_warnings import Event

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ConnectionProbe
    from barnabas.broker.repeated_warnings import RepeatedWarnings

logger = logging.getLogger(__name__)

HOST_SHARE: Final = 2
"""The connections of one host take at most this fraction (1/2) of the bound."""

GROWTHS_PER_TURN: Final = 32
"""Buffers that begin to grow in one turn of the event loop: each is copied, which takes 0.2 ms."""

CHECK_SECONDS: Final = 5.0
"""Interval of the checks for slow senders, while connections wait."""

MIN_CHECK_BYTES: Final = 64 * 1024
CHECK_FRACTION: Final = 64
"""Bytes that a connection with memory must receive between two checks, and the fraction (1/64) of its memory."""

_MEMORY_SHARE: Final = 4
_DEFAULT_MAX: Final = 512 * 1024 * 1024
_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def default_limit() -> int:
    """Return 512 MiB, but at most a quarter of the memory of the machine and of this process's control group."""
    available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        available = min(available, int(_CGROUP_LIMIT.read_text(encoding="ascii")))
    except (OSError, ValueError):  # no control group of version 2, or one without a limit ("max")
        pass
    return min(available // _MEMORY_SHARE, _DEFAULT_MAX)


class Holder(Protocol):
    """What ReceiveMemory needs of a connection."""

    session: Session

    @property
    def receiving(self) -> tuple[int, int] | None:
        """The number of the buffer's changes of size, and the bytes in it, while it receives; None if it does not."""
        ...

    def memory_available(self) -> None:
        """Try again to take memory."""
        ...

    def release_idle(self) -> None:
        """Release the memory if the buffer is empty."""
        ...

    def abort(self, reason: str) -> None:
        """Close immediately."""
        ...


class ReceiveMemory:
    """Distributes the memory among the connections. In the event loop only."""

    def __init__(
        self,
        limit_bytes: int,
        loop: asyncio.AbstractEventLoop,
        probe: ConnectionProbe,
        warnings: RepeatedWarnings,
    ) -> None:
        self._limit_bytes = probe.receive_memory_limit = limit_bytes
        self._loop = loop
        self._probe = probe
        self._warnings = warnings
        self._held: dict[Holder, int] = {}
        self._of_host: dict[str, int] = {}
        self._waiting: dict[Holder, None] = {}
        """In the order in which they began to wait."""
        self._growths = 0
        """Buffers that have begun to grow in this turn of the loop, or found no memory."""
        self._postponed: dict[Holder, None] = {}
        """Connections whose buffers begin to grow in a later turn."""
        self._finisher: Holder | None = None
        """The connection that may exceed the bound."""
        self._seen: dict[Holder, tuple[int, int]] = {}
        """`receiving` of the holders at the last check."""
        self._check: asyncio.TimerHandle | None = None

    @property
    def is_short(self) -> bool:
        """Whether connections wait, or one exceeds the bound: empty buffers are to be released."""
        return self._finisher is not None or bool(self._waiting)

    def take(self, holder: Holder, size_bytes: int) -> bool:
        """Take memory for a buffer that grows, or return False and call `memory_available` later."""
        if holder not in self._held and not self._may_begin(holder):
            return False
        if holder is not self._finisher and not self._fits(holder, size_bytes):
            if self._finisher is None:
                self._finisher = holder
            else:
                self._waiting[holder] = None
                self._probe.waiting_for_memory = len(self._waiting)
                if self._check is None:
                    self._check = self._loop.call_later(CHECK_SECONDS, self._check_holders)
                return False
        self._stop_waiting(holder)
        self._add(holder, size_bytes)
        return True

    def release(self, holder: Holder, keep_bytes: int = 0) -> None:
        """Release the memory of a connection except for `keep_bytes`, also its place in the queue.

        Connections that wait try again.
        """
        self._stop_waiting(holder)
        self._postponed.pop(holder, None)
        self._seen.pop(holder, None)
        size_bytes = self._held.pop(holder, 0)
        if self._finisher is holder:
            self._finisher = None
        if size_bytes:
            host = holder.session.host
            self._of_host[host] -= size_bytes
            if not self._of_host[host]:
                del self._of_host[host]
            self._probe.receive_memory -= size_bytes
        if keep_bytes:
            self._add(holder, keep_bytes)
        if self._waiting:
            self._loop.call_soon(self._offer)  # not from here: a connection that continues may release, too

    def _may_begin(self, holder: Holder) -> bool:
        """Return whether a buffer may grow for the first time in this turn; if not, it tries again in a later one."""
        if self._growths == 0:
            self._loop.call_soon(self._next_turn)
        elif self._growths >= GROWTHS_PER_TURN:
            self._postponed[holder] = None
            return False
        self._growths += 1
        return True

    def _next_turn(self) -> None:
        self._growths = 0
        for holder in list(self._postponed)[:GROWTHS_PER_TURN]:
            self._postponed.pop(holder, None)
            holder.memory_available()
        if self._postponed and not self._growths:  # none of them needed memory: each was busy, or is closed
            self._loop.call_soon(self._next_turn)

    def _add(self, holder: Holder, size_bytes: int) -> None:
        host = holder.session.host
        self._held[holder] = self._held.get(holder, 0) + size_bytes
        self._of_host[host] = self._of_host.get(host, 0) + size_bytes
        self._probe.receive_memory += size_bytes

    def _fits(self, holder: Holder, size_bytes: int) -> bool:
        """Return whether the bound and the host's share permit it; the finisher's memory does not count."""
        total, of_host = self._probe.receive_memory, self._of_host.get(holder.session.host, 0)
        finisher = self._finisher
        if finisher is not None:
            beyond = self._held.get(finisher, 0)
            total -= beyond
            if finisher.session.host == holder.session.host:
                of_host -= beyond
        limit = self._limit_bytes
        return total + size_bytes <= limit and of_host + size_bytes <= limit // HOST_SHARE

    def _stop_waiting(self, holder: Holder) -> None:
        if holder in self._waiting:
            del self._waiting[holder]
            self._probe.waiting_for_memory = len(self._waiting)

    def _offer(self) -> None:
        for holder in list(self._waiting):
            if holder in self._waiting:
                holder.memory_available()

    def _check_holders(self) -> None:
        """Release empty buffers, and cut off connections that have received too little since the last check."""
        self._check = None
        before, self._seen = self._seen, {}
        for holder in list(self._held):
            holder.release_idle()
            now = None if holder in self._waiting else holder.receiving
            if now is None or holder not in self._held:
                continue
            self._seen[holder] = now
            seen = before.get(holder)
            required = max(MIN_CHECK_BYTES, self._held[holder] // CHECK_FRACTION)
            if seen is not None and seen[0] == now[0] and now[1] - seen[1] < required:
                self._warnings.warn(
                    logger,
                    Event(holder.session.host, "a connection was closed", " reason=slow_request"),
                    "closing the connection of %s: it sends a large request slowly while others wait for memory"
                    " (queued.max.request.bytes)",
                    holder.session,
                )
                holder.abort("slow_request")
        if self._waiting:
            self._check = self._loop.call_later(CHECK_SECONDS, self._check_holders)
            self._offer()
        else:
            self._seen.clear()

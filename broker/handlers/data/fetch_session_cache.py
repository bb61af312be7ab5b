"""The fetch sessions of a broker, and which of them gives way to a new one when the cache is full.

A new session A takes the place of
1. the session that has been unused for the longest time, if that is more than two minutes;
2. otherwise the least valuable session B (consumers' before followers', then the fewest partitions), if A is worth more
   than B. A consumer's session may do so only two minutes after B was created, a follower's session at any time if B
   is a consumer's.

Differs from Kafka: one cache of `max.incremental.fetch.session.cache.slots` sessions, not eight of an eighth each; and
all sessions together have at most MAX_PARTITIONS partitions, so that no client can fill the memory with names.

No I/O. Source: Kafka's FetchSessionCacheShard.java. Event loop only.
"""

from __future__ import annotations

import os
from bisect import bisect_left, insort
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.handlers.data.fetch_session import FetchSession
    from barnabas.broker.probes import FetchSessionProbe

EVICTION_SECONDS: Final = 120.0
"""How long a session must be unused, or must exist, before another one may replace it."""

MAX_PARTITIONS: Final = 500_000
"""Limit of partitions in all sessions. Each takes about half a kilobyte."""

MAX_SESSION_PARTITIONS: Final = 50_000
"""Limit of partitions in one session: as many as one request may have."""

_LAST_ID: Final = 2**31 - 1

_Value = tuple[bool, int, int]
"""What a session is worth: is it a follower's, number of partitions, session id."""


class FetchSessionCache:
    """Sessions by id, the one that has been unused for the longest time first."""

    def __init__(self, max_sessions: int, monotonic: Callable[[], float], probe: FetchSessionProbe) -> None:
        self._max_sessions = max_sessions
        self._monotonic = monotonic
        self._probe = probe
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._reserved = 0
        self._evictable: list[_Value] = []
        """Sessions that any larger session may replace, sorted."""
        self._evictable_by_followers: list[_Value] = []
        """Sessions that a follower's session may replace, sorted."""

    def get(self, session_id: int) -> FetchSession | None:
        """Return a session."""
        return self._sessions.get(session_id)

    def make_room(self, size: int, *, is_privileged: bool) -> bool:
        """Evict sessions until a new one of `size` partitions fits; return whether it does."""
        size_limit = MAX_PARTITIONS - self._reserved
        while len(self._sessions) >= self._max_sessions or self._probe.partitions + size > size_limit:
            if not self._evict((is_privileged, size, 0)):
                return False
        return True

    def reserve(self, size: int) -> None:
        """Keep room for `size` partitions of a session that is being created; negative: no longer."""
        self._reserved += size

    def new_session_id(self) -> int:
        """Return an unused positive id."""
        while True:
            # Not `secrets`, which would load hmac, hashlib and random at every start.
            session_id = int.from_bytes(os.urandom(4)) & _LAST_ID
            if session_id and session_id not in self._sessions:
                return session_id

    def add(self, session: FetchSession) -> None:
        """Add a session, for which `make_room` has found room."""
        self._sessions[session.session_id] = session
        self._probe.sessions += 1
        self.touch(session)

    def touch(self, session: FetchSession) -> None:
        """Record the use of a session, and its number of partitions."""
        now = self._monotonic()
        session.last_used = now
        self._sessions.move_to_end(session.session_id)
        size = len(session.partitions)
        is_evictable = now - session.created > EVICTION_SECONDS
        if size == session.cached_size and is_evictable == session.is_evictable:
            return
        self._unlist(session)
        self._probe.partitions += size - max(0, session.cached_size)
        session.cached_size = size
        session.is_evictable = is_evictable
        value = _value(session)
        if is_evictable:
            insort(self._evictable, value)
        if is_evictable or not session.is_privileged:
            insort(self._evictable_by_followers, value)

    def remove(self, session: FetchSession) -> None:
        """Remove and close a session of the cache."""
        del self._sessions[session.session_id]
        self._unlist(session)
        self._probe.sessions -= 1
        self._probe.partitions -= session.cached_size
        session.close()

    def has_room_for_more(self, session: FetchSession) -> bool:
        """Return whether a session that an update has extended is within the limits of partitions."""
        size = len(session.partitions)
        more = size - session.cached_size
        return size <= MAX_SESSION_PARTITIONS and (
            more <= 0 or self._probe.partitions + self._reserved + more <= MAX_PARTITIONS
        )

    def _evict(self, value: _Value) -> bool:
        """Remove the session that gives way to one of this value; return whether there was one."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if self._monotonic() - oldest.last_used <= EVICTION_SECONDS:
            candidates = self._evictable_by_followers if value[0] else self._evictable
            if not candidates or value < candidates[0]:
                return False
            oldest = self._sessions[candidates[0][2]]
        self.remove(oldest)
        self._probe.evictions += 1
        return True

    def _unlist(self, session: FetchSession) -> None:
        value = _value(session)
        for values in (self._evictable, self._evictable_by_followers):
            index = bisect_left(values, value)
            if index < len(values) and values[index] == value:
                del values[index]


def _value(session: FetchSession) -> _Value:
    return (session.is_privileged, session.cached_size, session.session_id)

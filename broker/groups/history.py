"""The latest events of each group: who joined, left or timed out, and why rebalances began.

In memory only, bounded in groups, events and text: at most about 10 MB.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from barnabas.protocol.messages.groups.explain_group import GroupEvent, GroupEventKind

MAX_GROUPS: Final = 1_000
"""Groups with events; the one without events for longest is forgotten first."""
MAX_EVENTS: Final = 32
"""Events of a group."""
MAX_TEXT: Final = 128
"""Characters of a client's text."""


class EventMember(NamedTuple):
    """The member that an event is about."""

    member_id: str
    client_id: str
    client_host: str


class GroupHistories:
    """The events by group. In the event loop only."""

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        self._wall_ms = wall_ms
        self._events: dict[str, deque[GroupEvent]] = {}

    def add(self, group_id: str, kind: GroupEventKind, member: EventMember | None = None, detail: str = "") -> None:
        """Add an event that happens now."""
        events = self._events.pop(group_id, None)
        if events is None:
            events = deque(maxlen=MAX_EVENTS)
            if len(self._events) >= MAX_GROUPS:
                del self._events[next(iter(self._events))]
        self._events[group_id] = events  # as the newest one
        member_id, client_id, client_host = ("", "", "") if member is None else (each[:MAX_TEXT] for each in member)
        host = client_host.removeprefix("/")
        events.append(GroupEvent(self._wall_ms(), kind.value, member_id, client_id, host, detail[:MAX_TEXT]))

    def of(self, group_id: str) -> Sequence[GroupEvent]:
        """Return the latest events of a group, the oldest first; none after a restart."""
        return list(self._events.get(group_id, ()))

"""What a classic group wants done. The group itself does no I/O and sends no response.

A waiter is the value that a caller passed with a request that may have to wait. The group returns it once, with the
response. The caller reports the outcome of a `WriteGroup` to `ClassicGroup.written`, with its `write_id`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.groups.values import GroupMetadataValue
from barnabas.protocol.messages.groups.join_group import JoinGroupResponse
from barnabas.protocol.messages.groups.sync_group import SyncGroupResponse

Waiter: TypeAlias = Any

WhenWritten = Callable[[ErrorCode], None]
"""Called with NONE once the record is durable, or with the error of a failed write."""


class Respond(NamedTuple):
    """Send a response to a waiter."""

    waiter: Waiter
    response: JoinGroupResponse | SyncGroupResponse


class WriteGroup(NamedTuple):
    """Write the group's record: what a restart restores."""

    write_id: int
    value: GroupMetadataValue


Action: TypeAlias = Respond | WriteGroup


class Outbox:
    """The actions of a group in their order, until the caller takes them, and the writes whose outcome is open.

    The caller takes them after a request or a deadline has been handled, so that no client sees a group halfway.
    """

    __slots__ = ("_actions", "_next_write", "_writes")

    def __init__(self) -> None:
        self._actions: list[Action] = []
        self._writes: dict[int, WhenWritten] = {}
        self._next_write = 0

    def respond(self, waiter: Waiter, response: JoinGroupResponse | SyncGroupResponse) -> None:
        """Respond to a request."""
        self._actions.append(Respond(waiter, response))

    def write(self, value: GroupMetadataValue, when_written: WhenWritten) -> None:
        """Write a record and call `when_written` with the outcome."""
        self._next_write += 1
        self._writes[self._next_write] = when_written
        self._actions.append(WriteGroup(self._next_write, value))

    def written(self, write_id: int, error: ErrorCode) -> None:
        """Report the outcome of a write."""
        self._writes.pop(write_id)(error)

    def take(self) -> list[Action]:
        """Remove and return all actions."""
        actions, self._actions = self._actions, []
        return actions

"""What the clients of a soak did and saw, in the order in which they learned it.

Each event has numbers of one clock (`tick`): an operation that ended at 7 happened before one that began at 9. Clients
append from several threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

Place = tuple[str, int]
"""Topic and partition."""

StoredRecord = tuple[int, bytes | None, bytes]
"""Offset, key and value."""

COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"
ACCEPTED, RELEASED, REJECTED = "accepted", "released", "rejected"


class Write(NamedTuple):
    """An acknowledged record of one idempotent session; `number` rises with the order of sends to its partition."""

    session: str
    number: int
    place: Place
    offset: int
    value: bytes


@dataclass
class Transaction:
    """One transaction. `ending` is the tick before the call that ends it, `ended` the one after its answer."""

    name: str
    began: int
    writes: list[tuple[Place, bytes]] = field(default_factory=list)
    reads: list[bytes] = field(default_factory=list)
    """Values that the transaction consumed."""
    outcome: str = UNKNOWN
    ending: int | None = None
    ended: int | None = None
    is_abandoned: bool = False
    """Whether its producer went away without ending it, so that the broker has to."""


class Poll(NamedTuple):
    """Records that one call returned. A session of a reader begins where its position was set anew."""

    session: str
    place: Place
    tick: int
    records: list[tuple[int, bytes]]
    """Offsets and values."""


class Commit(NamedTuple):
    """An acknowledged commit of a group's offset, or (`is_read`) one that was fetched."""

    group: str
    place: Place
    offset: int
    began: int
    ended: int
    is_read: bool = False


class GroupSeen(NamedTuple):
    """A group that was in a list which was asked for at `began`."""

    group: str
    began: int


class Delivery(NamedTuple):
    """A record that a member of a share group got: it was acquired after `since`, and returned before `tick`."""

    session: str
    place: Place
    since: int
    tick: int
    offset: int
    value: bytes
    deliveries: int
    """As the broker counts them."""


class Acknowledgement(NamedTuple):
    """A call that acknowledged a delivery. `ended` None: it failed, and may have been carried out or not."""

    delivery: Delivery
    kind: str
    began: int
    ended: int | None


class KeyedWrite(NamedTuple):
    """A write to a compacted topic; the writes of a key have rising numbers and are never concurrent."""

    place: Place
    key: bytes
    number: int
    is_acknowledged: bool


@dataclass
class History:
    """Events of one round. The lists are in the order of arrival."""

    writes: list[Write] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    keyed: list[KeyedWrite] = field(default_factory=list)
    deleted: dict[str, int] = field(default_factory=dict)
    """When the answer to a group's deletion came."""
    seen: list[GroupSeen] = field(default_factory=list)
    """Groups that are deleted at some time."""
    deliveries: list[Delivery] = field(default_factory=list)
    acknowledgements: list[Acknowledgement] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Errors that clients got and went on after."""
    fatal: list[str] = field(default_factory=list)
    """Errors that idempotent producers cannot go on after."""
    tick: Callable[[], int] = field(default_factory=lambda: itertools.count(1).__next__)


@dataclass
class Final:
    """What is stored at the end of a round: read with read_committed, with all transactions ended."""

    records: dict[Place, list[StoredRecord]] = field(default_factory=dict)
    starts: dict[Place, int] = field(default_factory=dict)
    """Log start offsets at the end."""
    offsets: dict[tuple[str, Place], int] = field(default_factory=dict)
    """Committed offsets by group and partition."""
    open: list[str] = field(default_factory=list)
    """Transactions that are open although their timeouts have passed."""

"""Acknowledgements that wait to be sent to one broker, and the callers that wait for their answers.

A call's acknowledgements are sent with the next request. Those that no caller waits for (accepted because the reader
moved on) may be sent later, with the next fetch, at most IMPLICIT_DELAY_S.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.clients.share.held_records import HeldRecord
from barnabas.protocol.messages.share.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
)

IMPLICIT_DELAY_S: Final = 1.0
"""Far below the shortest lock that Kafka allows, 15 s."""

TopicIdPartition = tuple[bytes, int]


class Acknowledgement(IntEnum):
    """What becomes of a record; the values are those on the wire."""

    GAP = 0
    """There is no record at this offset."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Outcome:
    """The answers to one call's acknowledgements: `future` is done with the last one, and has the first error."""

    def __init__(self, count: int) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._left = count
        self._error: Exception | None = None

    def settle(self, error: Exception | None) -> None:
        """Take the answer to one of them."""
        self._left -= 1
        self._error = self._error or error
        if self._left == 0 and not self.future.done():  # done: its caller was cancelled
            if self._error is None:
                self.future.set_result(None)
            else:
                self.future.set_exception(self._error)


class Pending(NamedTuple):
    """One acknowledgement. `outcome` None: nobody waits for its answer."""

    kind: Acknowledgement
    held: HeldRecord
    outcome: Outcome | None


Taken = Mapping[TopicIdPartition, Mapping[int, Pending]]
"""Acknowledgements by partition and offset."""


class PendingAcknowledgements:
    """Those for one broker. Times are the event loop's."""

    def __init__(self) -> None:
        self.due_at: float | None = None
        """When they have to be sent at the latest; None without any."""
        self._pending: defaultdict[TopicIdPartition, dict[int, Pending]] = defaultdict(dict)
        self._renewals = 0

    @property
    def partitions(self) -> Iterable[TopicIdPartition]:
        """The partitions that have some."""
        return self._pending.keys()

    @property
    def has_renewals(self) -> bool:
        """Whether locks are to be extended, which a fetch cannot do."""
        return self._renewals > 0

    def add(self, pending: Pending, now: float) -> None:
        """Add one, which replaces one for the same record."""
        held = pending.held
        of_partition = self._pending[held.topic_id, held.topic_partition.partition]
        replaced = of_partition.get(held.offset)
        if replaced is not None:
            self._renewals -= replaced.kind is Acknowledgement.RENEW
            if replaced.outcome is not None:
                replaced.outcome.settle(None)
        of_partition[held.offset] = pending
        self._renewals += pending.kind is Acknowledgement.RENEW
        due_at = now if pending.outcome is not None else now + IMPLICIT_DELAY_S
        self.due_at = due_at if self.due_at is None else min(self.due_at, due_at)

    def add_again(self, pending: Pending, now: float) -> None:
        """Add one that was sent before, unless a later one for the same record waits, which replaces it."""
        held = pending.held
        if held.offset not in self._pending[held.topic_id, held.topic_partition.partition]:
            self.add(pending, now)
        elif pending.outcome is not None:
            pending.outcome.settle(None)

    def take(self) -> Taken:
        """Remove and return all."""
        taken = self._pending
        self._pending = defaultdict(dict)
        self._renewals = 0
        self.due_at = None
        return taken


def topics_of(taken: Taken) -> list[AcknowledgeTopic]:
    """Return the part of a request."""
    topics: dict[bytes, list[AcknowledgePartition]] = {}
    for (topic_id, partition), of_partition in taken.items():
        row = AcknowledgePartition(partition=partition, batches=_batches(of_partition))
        topics.setdefault(topic_id, []).append(row)
    return [AcknowledgeTopic(topic_id=each, partitions=partitions) for each, partitions in topics.items()]


def without_renewals(taken: Taken, error: Exception) -> Taken:
    """Refuse renewals; return the others."""
    kept: dict[TopicIdPartition, dict[int, Pending]] = {}
    for key, of_partition in taken.items():
        for offset, pending in of_partition.items():
            if pending.kind is not Acknowledgement.RENEW:
                kept.setdefault(key, {})[offset] = pending
            elif pending.outcome is not None:
                pending.outcome.settle(error)
    return kept


def _batches(of_partition: Mapping[int, Pending]) -> list[AcknowledgementBatch]:
    """Return offsets in order, neighbours together; a batch whose types are all the same has the type once."""
    runs: list[tuple[int, list[int]]] = []
    for offset in sorted(of_partition):
        kind = int(of_partition[offset].kind)
        if runs and runs[-1][0] + len(runs[-1][1]) == offset:
            runs[-1][1].append(kind)
        else:
            runs.append((offset, [kind]))
    return [
        AcknowledgementBatch(
            first_offset=first,
            last_offset=first + len(kinds) - 1,
            types=kinds if len(set(kinds)) > 1 else kinds[:1],
        )
        for first, kinds in runs
    ]

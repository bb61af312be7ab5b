"""What coordinators promise with flush.acks.all: committed offsets, and outcomes of transactions.

After a start an offset is the one that was acknowledged last, or one of those whose commit was under way. A transaction
that was acknowledged is there in all its partitions, or in none if it was aborted; one that was being ended is there
everywhere or nowhere; one that was not ended is nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.protocol.records.end_marker import decode_end_marker, is_end_marker
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.storage.bench import read_batches
from tests.support.storage.metadata_store import Opened
from tests.torture.crash_states.coordinators import Coordinators, Place

Offsets = Mapping[Place, "int | None"]
"""Committed offsets; None: deleted."""


class Committing(NamedTuple):
    """A group's offsets are about to be committed or deleted."""

    group: str
    offsets: Offsets


class Committed(NamedTuple):
    """They were, and the client was told."""

    group: str
    offsets: Offsets


class Transaction(NamedTuple):
    """One transaction: the offsets of its records, and the offsets that it commits for a group."""

    number: int
    records: Mapping[Place, tuple[int, ...]]
    group: str
    offsets: Offsets


class Writing(NamedTuple):
    """Records of a transaction are about to be appended."""

    transaction: Transaction


class Ending(NamedTuple):
    """The transaction is about to be ended."""

    transaction: Transaction
    is_commit: bool


class Ended(NamedTuple):
    """It was, and the client was told."""

    transaction: Transaction


CoordinatorNote = Committing | Committed | Writing | Ending | Ended


class Outcomes:
    """The promises of the coordinators after some events of a recording."""

    def __init__(self) -> None:
        self.offsets: dict[tuple[str, Place], list[int | None]] = {}
        """The values that an offset may have; the first one is what was acknowledged last."""
        self.transactions: dict[int, tuple[Transaction, bool | None, bool]] = {}
        """Each with its outcome (None: no end was asked for), and whether that was acknowledged."""

    def add(self, said: CoordinatorNote) -> None:
        """Take a note into account."""
        match said:
            case Committing(group, offsets):
                self._try(group, offsets)
            case Committed(group, offsets):
                self._set(group, offsets)
            case Writing(transaction):
                self.transactions[transaction.number] = (transaction, None, False)
            case Ending(transaction, is_commit):
                self.transactions[transaction.number] = (transaction, is_commit, False)
                if is_commit:
                    self._try(transaction.group, transaction.offsets)
            case Ended(transaction):
                outcome = self.transactions[transaction.number][1]
                self.transactions[transaction.number] = (transaction, outcome, True)
                if outcome:
                    self._set(transaction.group, transaction.offsets)

    def key(self) -> tuple[object, ...]:
        """Return what is promised, to compare it."""
        offsets = tuple((name, tuple(values)) for name, values in sorted(self.offsets.items()))
        return offsets, tuple((number, said[1], said[2]) for number, said in sorted(self.transactions.items()))

    def _try(self, group: str, offsets: Offsets) -> None:
        for place, value in offsets.items():
            self.offsets.setdefault((group, place), [None]).append(value)

    def _set(self, group: str, offsets: Offsets) -> None:
        for place, value in offsets.items():
            self.offsets[group, place] = [value]


def broken_outcomes(opened: Opened, outcomes: Outcomes) -> Iterator[str]:
    """Yield what the coordinators of a started broker do not keep. They complete what they find prepared."""
    if not outcomes.offsets and not outcomes.transactions:
        return
    clients = Coordinators(opened)
    try:
        for (group, place), allowed in outcomes.offsets.items():
            found = clients.offset_of(group, TopicPartition(*place))
            if found not in allowed:
                yield f"group {group} has offset {found} of {place}, allowed are {allowed}"
        for transaction, is_commit, is_acknowledged in outcomes.transactions.values():
            name = f"transaction {transaction.number}"
            visible, open_at = [], []
            for place, offsets in transaction.records.items():
                log = opened.log_manager.get(TopicPartition(*place))
                assert log is not None, place
                committed, pending = _read_committed(log)
                visible += [offset in committed for offset in offsets]
                open_at += [place for offset in offsets if offset in pending]
            visible += [
                clients.offset_of(transaction.group, TopicPartition(*place)) == value
                for place, value in transaction.offsets.items()
                if outcomes.offsets.get((transaction.group, place), [None])[-1] == value
            ]
            if is_acknowledged and is_commit and not all(visible):
                yield f"{name} was committed, and not all of it can be read: {visible}"
            if not is_commit and any(visible):
                yield f"{name} was not committed, and can be read: {visible}"
            if any(visible) != all(visible):
                yield f"{name} is there in part: {visible}"
            if is_acknowledged and open_at:
                yield f"{name} has ended, and is open in {open_at}"
    finally:
        clients.close()


def _read_committed(log: PartitionLog) -> tuple[set[int], set[int]]:
    """Return the offsets of transactional records that were committed, and of those whose transaction is open."""
    pending: dict[int, set[int]] = {}
    committed: set[int] = set()
    for batch in read_batches(log):
        if not batch.is_transactional:
            continue
        if not batch.is_control:
            pending.setdefault(batch.producer_id, set()).update(range(batch.base_offset, batch.next_offset))
            continue
        for record in read_records(batch):
            if is_end_marker(record.key):
                ended = pending.pop(batch.producer_id, set())
                committed |= ended if decode_end_marker(record.key, record.value).is_commit else set()
    return committed, set().union(*pending.values())

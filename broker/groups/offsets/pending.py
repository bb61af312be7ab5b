"""Offsets that open transactions committed: a map that only replay changes. No I/O.

    (partition of `__consumer_offsets`, producer id) -> {(group, topic, partition) -> record offset, value}

The transaction's end marker in that partition makes them visible or drops them; a transaction with several groups has
a marker in each of their partitions. Of several commits of one offset the last record counts, whatever the order of
the markers: a pending offset is superseded by a later plain commit, and by the later offset of another transaction
that commits first. A superseded offset stays pending, because Kafka answers UNSTABLE_OFFSET_COMMIT until the marker is
written. Source: Kafka's OffsetMetadataManager (pendingTransactionalOffsets, openTransactions).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.broker.groups.offsets.committed import PartitionKey
from barnabas.protocol.groups.keys import OffsetCommitKey
from barnabas.protocol.groups.values import OffsetCommitValue
from barnabas.protocol.uuids import ZERO_UUID

GroupTransaction = tuple[int, int]
"""Partition of `__consumer_offsets`, and producer id."""


class PendingOffset(NamedTuple):
    """An offset of an open transaction.

    record_offset   of its record in the partition of `__consumer_offsets`
    is_superseded   a later record counts, even if the transaction commits
    """

    value: OffsetCommitValue
    record_offset: int
    is_superseded: bool = False


class PendingRecord(NamedTuple):
    """A pending offset with its keys."""

    transaction: GroupTransaction
    key: OffsetCommitKey
    pending: PendingOffset


_NO_PARTITIONS: Final[Collection[PartitionKey]] = frozenset()
_NO_OFFSETS: Final[Mapping[OffsetCommitKey, PendingOffset]] = MappingProxyType({})


class PendingOffsets:
    """Offsets of open transactions. Without any it is false."""

    def __init__(self) -> None:
        self._transactions: dict[GroupTransaction, dict[OffsetCommitKey, PendingOffset]] = {}
        self._groups: dict[str, dict[PartitionKey, set[GroupTransaction]]] = {}
        """The transactions with a pending offset, by group and partition; no level is ever empty."""

    def __bool__(self) -> bool:
        return bool(self._transactions)

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def group_ids(self) -> Iterable[str]:
        """Return the groups that have a pending offset."""
        return self._groups

    def of(self, group_id: str) -> Collection[PartitionKey]:
        """Return the partitions in which a group has pending offsets."""
        found = self._groups.get(group_id)
        return _NO_PARTITIONS if found is None else found.keys()

    def of_transaction(self, transaction: GroupTransaction) -> Mapping[OffsetCommitKey, PendingOffset]:
        """Return the pending offsets of one transaction, possibly none."""
        return self._transactions.get(transaction, _NO_OFFSETS)

    def of_topics(self, topics: Mapping[str, bytes]) -> Iterator[OffsetCommitKey]:
        """Return the pending offsets in topics of these names that have these ids, or no known id."""
        for offsets in self._transactions.values():
            for key, (value, _, _) in offsets.items():
                topic_id = topics.get(key.topic)
                if topic_id is not None and value.topic_id in (topic_id, ZERO_UUID):
                    yield key

    def put(self, record: PendingRecord) -> None:
        """Add an offset, or replace that of the same transaction and key."""
        transaction, key, pending = record
        self._transactions.setdefault(transaction, {})[key] = pending
        partitions = self._groups.setdefault(key.group, {})
        partitions.setdefault((key.topic, key.partition), set()).add(transaction)

    def replay_plain(self, key: OffsetCommitKey, *, is_tombstone: bool) -> None:
        """Apply a later record without a transaction: a commit supersedes pending offsets, a tombstone removes them."""
        for transaction in list(self._with(key)):
            if is_tombstone:
                self._remove(transaction, key)
            else:
                self._supersede(transaction, key)

    def end(self, transaction: GroupTransaction, *, is_commit: bool) -> list[tuple[OffsetCommitKey, OffsetCommitValue]]:
        """Apply an end marker: remove the transaction's offsets, and return those that are committed by it."""
        committed = []
        for key, pending in list(self.of_transaction(transaction).items()):
            self._remove(transaction, key)
            if not is_commit or pending.is_superseded:
                continue
            committed.append((key, pending.value))
            for other in self._with(key):
                if self._transactions[other][key].record_offset < pending.record_offset:
                    self._supersede(other, key)
        return committed

    def clear(self) -> None:
        """Drop everything: `__consumer_offsets` was deleted."""
        self._transactions.clear()
        self._groups.clear()

    def _with(self, key: OffsetCommitKey) -> Collection[GroupTransaction]:
        """Return the transactions with a pending offset of this key."""
        return self._groups.get(key.group, {}).get((key.topic, key.partition), ())

    def _supersede(self, transaction: GroupTransaction, key: OffsetCommitKey) -> None:
        offsets = self._transactions[transaction]
        offsets[key] = offsets[key]._replace(is_superseded=True)

    def _remove(self, transaction: GroupTransaction, key: OffsetCommitKey) -> None:
        offsets = self._transactions[transaction]
        del offsets[key]
        if not offsets:
            del self._transactions[transaction]
        partitions, partition = self._groups[key.group], (key.topic, key.partition)
        partitions[partition].discard(transaction)
        if not partitions[partition]:
            del partitions[partition]
            if not partitions:
                del self._groups[key.group]

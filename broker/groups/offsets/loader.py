"""Reads one partition of `__consumer_offsets` at a start: the newest value of every key. Runs on a thread.

Of each key the last record counts, and only last records are decoded, so that a log that was not compacted for long
costs little more than a compacted one. Records of a transaction count from its commit marker on, unless a newer record
was written before it. Records of aborted transactions do not count, and offsets of open transactions stay pending.
Records of groups that belong to another partition, because they are older than a growth of the topic, are skipped as in
Kafka. Source: Kafka's CoordinatorLoaderImpl, OffsetMetadataManager.replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.coordinator_log.reading import stored_batches
from barnabas.broker.groups.log.records import GroupRecord, replay_rank
from barnabas.broker.groups.offsets.committed import PartitionKey
from barnabas.broker.groups.offsets.pending import PendingOffset, PendingRecord
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups.consumer_group_values import ConsumerGroupPartitionMetadataValue
from barnabas.protocol.groups.keys import (
    ConsumerGroupKey,
    ConsumerGroupPartitionMetadataKey,
    GroupMetadataKey,
    OffsetCommitKey,
    ShareGroupKey,
    UnknownKey,
    decode_key,
)
from barnabas.protocol.groups.values import (
    GroupMetadataValue,
    OffsetCommitValue,
    decode_value,
)
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.end_marker import decode_end_marker, is_end_marker
from barnabas.protocol.records.reader import read_records

if TYPE_CHECKING:
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.protocol.topic_partition import TopicPartition


class LoadedPartition(NamedTuple):
    """The content of a partition.

    pending           offsets of transactions that are open at the end of the log
    consumer_groups   records of consumer groups, in the order of their replay
    share_groups      records of share groups, in the order of their replay
    streams_groups    likewise
    records           number of records read, including superseded ones
    skipped           number of records of groups that belong to another partition, or of a kind that is not known
    """

    offsets: dict[str, dict[PartitionKey, OffsetCommitValue]]
    pending: list[PendingRecord]
    groups: dict[str, GroupMetadataValue]
    consumer_groups: list[GroupRecord]
    share_groups: list[GroupRecord]
    streams_groups: list[GroupRecord]
    records: int
    skipped: int


def load_offsets_partition(
    partition_log: ReadableLog, belongs: Callable[[str], bool], buffer_bytes: int
) -> LoadedPartition:
    """Read up to the high watermark. `belongs` returns whether a group belongs to this partition.

    Raises DecodeError, BrokerError KAFKA_STORAGE_ERROR, StorageError and OSError. Then the partition cannot be served:
    skipping a value would move a group's offset back.
    """
    latest = _Latest()
    for batch in stored_batches(partition_log, buffer_bytes):
        latest.add(batch)
    return _Decoder(partition_log.topic_partition, belongs).decode(latest)


class _Latest:
    """The last record of every key, as bytes: its offset and value. Those of open transactions are by producer id."""

    def __init__(self) -> None:
        self.values: dict[bytes, tuple[int, bytes | None]] = {}
        self.open_transactions: dict[int, dict[bytes, tuple[int, bytes | None]]] = {}
        self.records = 0

    def add(self, batch: RecordBatch) -> None:
        """Add the next batch of the log."""
        if batch.is_control:
            self._end_transaction(batch)
            return
        records = read_records(batch)
        self.records += len(records)
        values = self.values
        if batch.is_transactional:
            values = self.open_transactions.setdefault(batch.producer_id, {})
        elif self.open_transactions:
            self._remove_from_transactions(record.key for record in records if record.value is None)
        for record in records:
            if record.key is not None:
                values[record.key] = (record.offset, record.value)

    def _end_transaction(self, batch: RecordBatch) -> None:
        for record in read_records(batch):
            if not is_end_marker(record.key):
                continue
            pending = self.open_transactions.pop(batch.producer_id, {})
            if decode_end_marker(record.key, record.value).is_commit:
                for key, (offset, value) in pending.items():
                    newest = self.values.get(key)
                    if newest is None or newest[0] < offset:
                        self.values[key] = (offset, value)

    def _remove_from_transactions(self, deleted: Iterable[bytes | None]) -> None:
        """Remove keys that a tombstone outside of transactions deletes: it deletes pending offsets, too."""
        for key in deleted:
            for pending in self.open_transactions.values():
                if key is not None:
                    pending.pop(key, None)


class _Decoder:
    """Decodes the last records of one partition."""

    def __init__(self, topic_partition: TopicPartition, belongs: Callable[[str], bool]) -> None:
        self._topic_partition = topic_partition
        self._belongs = cache(belongs)
        self._skipped = 0
        self._offsets: dict[str, dict[PartitionKey, OffsetCommitValue]] = {}
        self._pending: list[PendingRecord] = []
        self._groups: dict[str, GroupMetadataValue] = {}
        self._consumer_groups: list[GroupRecord] = []
        self._share_groups: list[GroupRecord] = []
        self._streams_groups: list[GroupRecord] = []

    def decode(self, latest: _Latest) -> LoadedPartition:
        """Return the decoded content. Raises DecodeError."""
        for data, (offset, value) in latest.values.items():
            try:
                self._add(data, value)
            except DecodeError as error:
                raise self._at(offset, error) from error
        for producer_id, records in latest.open_transactions.items():
            for data, (offset, value) in records.items():
                newest, _ = latest.values.get(data, (-1, None))
                try:
                    self._add_pending(producer_id, data, offset, value, is_superseded=newest > offset)
                except DecodeError as error:
                    raise self._at(offset, error) from error
        self._consumer_groups.sort(key=replay_rank)
        self._share_groups.sort(key=replay_rank)
        self._streams_groups.sort(key=replay_rank)
        return LoadedPartition(
            self._offsets,
            self._pending,
            self._groups,
            self._consumer_groups,
            self._share_groups,
            self._streams_groups,
            latest.records,
            self._skipped,
        )

    def _add(self, data: bytes, value: bytes | None) -> None:
        key = decode_key(data)
        if type(key) is OffsetCommitKey:  # first, because nearly all are
            group = key.group
            if not self._belongs(group):
                self._skipped += 1
            elif value is not None:
                offsets = self._offsets.get(group)
                if offsets is None:
                    offsets = self._offsets[group] = {}
                offsets[key.topic, key.partition] = OffsetCommitValue.from_bytes(value)
        elif isinstance(key, UnknownKey):
            self._skipped += value is not None
        elif not self._belongs(key.group):
            self._skipped += 1
        elif value is None:
            return
        elif isinstance(key, GroupMetadataKey):
            self._groups[key.group] = GroupMetadataValue.from_bytes(value)
        elif isinstance(key, ShareGroupKey):
            self._share_groups.append(GroupRecord(key, decode_value(key, value)))
        elif isinstance(key, ConsumerGroupPartitionMetadataKey):
            # Of Kafka before 4.1: only that there is one counts, and the value may be large.
            self._consumer_groups.append(GroupRecord(key, ConsumerGroupPartitionMetadataValue(topics=())))
        elif isinstance(key, ConsumerGroupKey):
            self._consumer_groups.append(GroupRecord(key, decode_value(key, value)))
        else:
            self._streams_groups.append(GroupRecord(key, decode_value(key, value)))

    def _add_pending(
        self, producer_id: int, data: bytes, offset: int, value: bytes | None, *, is_superseded: bool
    ) -> None:
        """Add a record of an open transaction: Kafka writes nothing but offsets in one."""
        key = decode_key(data)
        if value is None:
            return
        if not isinstance(key, OffsetCommitKey) or not self._belongs(key.group):
            self._skipped += 1
            return
        pending = PendingOffset(OffsetCommitValue.from_bytes(value), offset, is_superseded)
        self._pending.append(PendingRecord((self._topic_partition.partition, producer_id), key, pending))

    def _at(self, offset: int, error: DecodeError) -> DecodeError:
        return DecodeError(f"{self._topic_partition}, record at offset {offset}: {error}")

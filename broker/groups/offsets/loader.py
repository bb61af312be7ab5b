"""Reads one partition of `__consumer_offsets` at a start: the newest value of every key. Runs on a thread.

Of each key the last record counts, and only last records are decoded, so that a log that was not compacted for long
costs little more than a compacted one. Records of a transaction count from its commit marker on, unless a newer record
was written before it. Records of aborted and open transactions do not count (transactions are not served here, but
Kafka may have written them). Records of groups that belong to another partition, because they are older than a growth
of the topic, are skipped as in Kafka. Source: Kafka's CoordinatorLoaderImpl, OffsetMetadataManager.replay.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.groups.consumer.loading import consumer_group_record, replay_rank
from barnabas.broker.groups.offsets.committed import PartitionKey
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups.keys import GroupMetadataKey, OffsetCommitKey, UnknownKey, decode_key
from barnabas.protocol.groups.metadata import GroupMetadataValue, decode_group_metadata
from barnabas.protocol.groups.offsets import OffsetCommitValue, decode_offset_commit
from barnabas.protocol.records.batch import RecordBatch, iter_batches
from barnabas.protocol.records.end_marker import decode_end_marker, is_end_marker
from barnabas.protocol.records.reader import read_records

if TYPE_CHECKING:
    from barnabas.broker.groups.log.records import GroupRecord
    from barnabas.broker.storage.log.readable_log import ReadableLog

logger = logging.getLogger(__name__)


class LoadedPartition(NamedTuple):
    """The content of a partition.

    consumer_groups   records of consumer groups, in the order of their replay
    records           number of records read, including superseded ones
    skipped           number of records of share and streams groups, or of groups that belong to another partition
    """

    offsets: dict[str, dict[PartitionKey, OffsetCommitValue]]
    groups: dict[str, GroupMetadataValue]
    consumer_groups: list[GroupRecord]
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
    offset, end = partition_log.log_start_offset, partition_log.high_watermark
    while offset < end:
        found = partition_log.read(offset, buffer_bytes, upper_bound=end, at_least_one_batch=True)
        if found is None:
            break
        read_to = offset
        for batch in iter_batches(found.read()):
            latest.add(batch)
            read_to = batch.next_offset
        if read_to <= offset:
            raise DecodeError(f"{partition_log.topic_partition} has no whole batch at offset {offset}")
        offset = read_to
    if latest.open_transactions:
        logger.warning(
            "%s ends within transactions, whose offsets do not count here, producers=%s",
            partition_log.topic_partition,
            sorted(latest.open_transactions),
        )
    return _decode(latest, belongs, str(partition_log.topic_partition))


class _Latest:
    """The last record of every key, as bytes: its offset and value."""

    def __init__(self) -> None:
        self.values: dict[bytes, tuple[int, bytes | None]] = {}
        self.open_transactions: dict[int, list[tuple[bytes, int, bytes | None]]] = {}
        self.records = 0

    def add(self, batch: RecordBatch) -> None:
        """Add the next batch of the log."""
        if batch.is_control:
            self._end_transaction(batch)
            return
        records = read_records(batch)
        self.records += len(records)
        if batch.is_transactional:
            pending = self.open_transactions.setdefault(batch.producer_id, [])
            pending.extend((each.key, each.offset, each.value) for each in records if each.key is not None)
            return
        values = self.values
        for record in records:
            if record.key is not None:
                values[record.key] = (record.offset, record.value)

    def _end_transaction(self, batch: RecordBatch) -> None:
        for record in read_records(batch):
            if not is_end_marker(record.key):
                continue
            pending = self.open_transactions.pop(batch.producer_id, ())
            if decode_end_marker(record.key, record.value).is_commit:
                for key, offset, value in pending:
                    newest = self.values.get(key)
                    if newest is None or newest[0] < offset:
                        self.values[key] = (offset, value)


def _decode(latest: _Latest, belongs: Callable[[str], bool], name: str) -> LoadedPartition:
    offsets: dict[str, dict[PartitionKey, OffsetCommitValue]] = {}
    groups: dict[str, GroupMetadataValue] = {}
    consumer_groups: list[GroupRecord] = []
    skipped = 0
    own: dict[str, bool] = {}
    for data, (offset, value) in latest.values.items():
        try:
            key = decode_key(data)
            if not isinstance(key, UnknownKey):
                group_id = key.group
                is_own = own.get(group_id)
                if is_own is None:
                    is_own = own[group_id] = belongs(group_id)
                if not is_own:
                    skipped += 1
                elif value is None:
                    continue
                elif isinstance(key, OffsetCommitKey):
                    offsets.setdefault(group_id, {})[key.topic, key.partition] = decode_offset_commit(value)
                elif isinstance(key, GroupMetadataKey):
                    groups[group_id] = decode_group_metadata(value)
                else:
                    consumer_groups.append(consumer_group_record(key, value))
            elif value is not None:
                skipped += 1
        except DecodeError as error:
            raise DecodeError(f"{name}, record at offset {offset}: {error}") from error
    consumer_groups.sort(key=replay_rank)
    return LoadedPartition(offsets, groups, consumer_groups, latest.records, skipped)

"""Reads one partition of `__share_group_state` at a start: all its records, in order. Runs on a thread.

Records of unknown types and versions are skipped, as in Kafka, and so are those of keys that belong to another
partition: they are older than a growth of the topic, and no request finds them any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.coordinator_log.reading import stored_batches
from barnabas.broker.share.shard import ShareRecord, StateShard
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.share.state_records import SharePartitionKey, ShareSnapshotKey, decode_key, decode_value

if TYPE_CHECKING:
    from barnabas.broker.storage.log.readable_log import ReadableLog


class LoadedShard(NamedTuple):
    """`records`: number of records read; `skipped`: those that are not served."""

    records: int
    skipped: int


def load_shard(
    partition_log: ReadableLog,
    shard: StateShard,
    belongs: Callable[[SharePartitionKey], bool],
    buffer_bytes: int,
    updates_per_snapshot: int,
) -> LoadedShard:
    """Replay a partition into a shard that nothing else uses yet.

    `belongs` returns whether a key belongs to this partition.

    Raises DecodeError, BrokerError KAFKA_STORAGE_ERROR, StorageError and OSError.
    """
    count = skipped = 0
    for batch in stored_batches(partition_log, buffer_bytes):
        if batch.is_control:
            continue
        for record in read_records(batch):
            count += 1
            try:
                decoded = _decode(record.key, record.value)
            except DecodeError as error:
                name = partition_log.topic_partition
                raise DecodeError(f"{name}, record at offset {record.offset}: {error}") from error
            if decoded is None or not belongs(decoded.key):
                skipped += 1
            else:
                shard.replay(decoded, record.offset, updates_per_snapshot)
    return LoadedShard(count, skipped)


def _decode(key_data: bytes | None, value_data: bytes | None) -> ShareRecord | None:
    """Return a record; None for one that is not served. Raises DecodeError."""
    if key_data is None:
        raise DecodeError("a share partition's record has no key")
    found = decode_key(key_data)
    if found is None:
        return None
    record_type, key = found
    if value_data is None:
        return ShareRecord(key, None) if record_type == ShareSnapshotKey.number else None
    value = decode_value(record_type, value_data)
    return None if value is None else ShareRecord(key, value)

"""Reads one partition of `__transaction_state` at a start: the last state of every transactional id. Runs on a thread.

Only last records are decoded. Records of unknown versions are skipped, as in Kafka. Ids that belong to another
partition are older than a growth of the topic: no request finds them any more, but their transactions must end. Source:
Kafka's TransactionStateManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.coordinator_log.reading import stored_batches
from barnabas.broker.transactions.metadata import TransactionMetadata
from barnabas.broker.transactions.records import decode_metadata
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.transactions.records import TransactionLogValue, transactional_id_of

if TYPE_CHECKING:
    from barnabas.broker.storage.log.readable_log import ReadableLog


class LoadedStates(NamedTuple):
    """States by id. `records`: number of records read; `skipped`: ids and records that are not served.

    unreachable   states, open or prepared, of ids that belong to another partition
    """

    states: dict[str, TransactionMetadata]
    unreachable: list[TransactionMetadata]
    records: int
    skipped: int


def load_states(partition_log: ReadableLog, belongs: Callable[[str], bool], buffer_bytes: int) -> LoadedStates:
    """Read up to the high watermark. `belongs` returns whether an id belongs to this partition.

    Raises DecodeError, BrokerError KAFKA_STORAGE_ERROR, StorageError and OSError.
    """
    values: dict[bytes, tuple[int, bytes]] = {}
    count = skipped = 0
    for batch in stored_batches(partition_log, buffer_bytes):
        if batch.is_control:
            continue
        for record in read_records(batch):
            count += 1
            key, value = record.key, record.value
            if key is None:
                raise DecodeError(f"{partition_log.topic_partition}: the record at offset {record.offset} has no key")
            if value is None:
                values.pop(key, None)
            elif TransactionLogValue.knows(value):
                values[key] = (record.offset, value)
            else:
                skipped += 1
    states: dict[str, TransactionMetadata] = {}
    unreachable = []
    for data, (offset, value) in values.items():
        try:
            transactional_id = transactional_id_of(data)
            if transactional_id is None:
                skipped += 1
                continue
            metadata = decode_metadata(transactional_id, value)
            if belongs(transactional_id):
                states[transactional_id] = metadata
            else:
                skipped += 1
                if not metadata.state.has_no_transaction:
                    unreachable.append(metadata)
        except DecodeError as error:
            raise DecodeError(f"{partition_log.topic_partition}, record at offset {offset}: {error}") from error
    return LoadedStates(states, unreachable, count, skipped)

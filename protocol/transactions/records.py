"""Records of `__transaction_state`: the state of one transactional id.

Kafka 4.3 writes version 1 of the value from transaction.version 1 on, and never the next producer epoch. Records of
other types or versions are of a later Kafka. Source: Kafka's TransactionLogKey.json, TransactionLogValue.json.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from barnabas.protocol.wire.fields import tagged
from barnabas.protocol.wire.records import RecordKey, RecordValue, head_of
from barnabas.protocol.wire.structures import Struct
from barnabas.protocol.wire.types import Int8, Int16, Int32, Int64, Nullable, String


class TransactionLogKey(RecordKey, number=0, frozen=True, kw_only=False):
    """A transactional id; its tombstone deletes it."""

    transactional_id: String


class TransactionPartitions(Struct, frozen=True, kw_only=False):
    """Partitions of one topic, in the order of the record."""

    topic: String
    partition_ids: tuple[Int32, ...]


class TransactionLogValue(RecordValue, newest=1, flexible=1, frozen=True, kw_only=False):
    """The state of a transactional id. `transaction_status`: the number of Kafka's TransactionState.

    transaction_partitions       None in the state Empty
    client_transaction_version   transaction.version that the client knows
    """

    producer_id: Int64
    producer_epoch: Int16
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: Annotated[tuple[TransactionPartitions, ...] | None, Nullable()]
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    previous_producer_id: Int64 = tagged(0, default=-1, since=1)
    next_producer_id: Int64 = tagged(1, default=-1, since=1)
    client_transaction_version: Int16 = tagged(2, default=0, since=1)
    next_producer_epoch: Int16 = tagged(3, default=-1, since=1)

    @property
    def partitions(self) -> Iterator[tuple[str, int]]:
        """The partitions one by one: topic and number."""
        return ((each.topic, number) for each in self.transaction_partitions or () for number in each.partition_ids)


def transactional_id_of(key: bytes) -> str | None:
    """Return the transactional id of a key, None for a key of another type. Raises DecodeError."""
    if head_of(key) != TransactionLogKey.number:
        return None
    return TransactionLogKey.from_bytes(key).transactional_id

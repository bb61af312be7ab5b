"""Translation between TransactionMetadata and the records of `__transaction_state`. Source: Kafka's TransactionLog."""

from __future__ import annotations

from barnabas.broker.transactions.metadata import NO_PARTITIONS, TransactionMetadata, by_topic, ordered
from barnabas.broker.transactions.state import TransactionState
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.transactions.records import TransactionLogValue, TransactionPartitions


def encode_metadata(metadata: TransactionMetadata, transaction_version: int) -> bytes:
    """Encode a state at the cluster's transaction.version. Raises ValueError for a name that is too long."""
    topics = None
    if metadata.state is not TransactionState.EMPTY:
        partitions = metadata.partitions
        topics = partitions.of_topics
        if topics is None:
            topics = partitions.of_topics = tuple(
                [TransactionPartitions(topic, tuple(numbers)) for topic, numbers in by_topic(partitions)]
            )
    return TransactionLogValue(
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.timeout_ms,
        metadata.state,
        topics,
        metadata.update_ms,
        metadata.start_ms,
        metadata.previous_producer_id,
        metadata.next_producer_id,
        metadata.client_version,
    ).to_bytes(1 if transaction_version >= 1 else 0)


def decode_metadata(transactional_id: str, data: bytes) -> TransactionMetadata:
    """Decode a state. Raises DecodeError."""
    value = TransactionLogValue.from_bytes(data)
    try:
        state = TransactionState(value.transaction_status)
    except ValueError as error:
        raise DecodeError(f"a transaction's state has the unknown status {value.transaction_status}") from error
    partitions = NO_PARTITIONS
    if state is not TransactionState.EMPTY and value.transaction_partitions:
        partitions = ordered(value.partitions)
    return TransactionMetadata(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        partitions,
        value.transaction_last_update_timestamp_ms,
        value.transaction_start_timestamp_ms,
        value.previous_producer_id,
        value.next_producer_id,
        client_version=value.client_transaction_version,
    )

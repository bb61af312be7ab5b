"""Translation between TransactionMetadata and the records of `__transaction_state`. Source: Kafka's TransactionLog."""

from __future__ import annotations

from barnabas.broker.transactions.metadata import NO_EPOCH, NO_PARTITIONS, TransactionMetadata, by_topic, ordered
from barnabas.broker.transactions.state import TransactionState
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.transactions.values import (
    TransactionLogValue,
    decode_transaction_value,
    encode_topics,
    encode_transaction_value,
)

_new_tuple = tuple.__new__


def encode_metadata(metadata: TransactionMetadata, transaction_version: int) -> bytearray:
    """Encode a state at the cluster's transaction.version. Raises ValueError for a name that is too long."""
    version = 1 if transaction_version >= 1 else 0
    (
        _,
        producer_id,
        producer_epoch,
        timeout_ms,
        state,
        partitions,
        update_ms,
        start_ms,
        previous_producer_id,
        next_producer_id,
        _,
        client_version,
    ) = metadata
    topics = None
    if state is not TransactionState.EMPTY:
        topics = partitions.encoded_topics.get(version)
        if topics is None:
            topics = partitions.encoded_topics[version] = bytes(encode_topics(by_topic(partitions), version))
    return encode_transaction_value(
        _new_tuple(
            TransactionLogValue,
            (
                producer_id,
                producer_epoch,
                timeout_ms,
                state,
                None,
                update_ms,
                start_ms,
                previous_producer_id,
                next_producer_id,
                client_version,
                NO_EPOCH,
            ),
        ),
        version,
        topics,
    )


def decode_metadata(transactional_id: str, data: bytes) -> TransactionMetadata:
    """Decode a state. Raises DecodeError."""
    value = decode_transaction_value(data)
    try:
        state = TransactionState(value.status)
    except ValueError as error:
        raise DecodeError(f"a transaction's state has the unknown status {value.status}") from error
    partitions = NO_PARTITIONS
    if state is not TransactionState.EMPTY and value.topics:
        partitions = ordered((topic, number) for topic, numbers in value.topics for number in numbers)
    return TransactionMetadata(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.timeout_ms,
        state,
        partitions,
        value.update_ms,
        value.start_ms,
        value.previous_producer_id,
        value.next_producer_id,
        client_version=value.client_version,
    )

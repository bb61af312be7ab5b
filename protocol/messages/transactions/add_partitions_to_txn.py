"""AddPartitionsToTxn (key 24): partitions that a transaction is about to write.

A client names one transaction. From version 4 on, brokers send the requests of several transactions as one, and may
only verify that the partitions belong to the transactions. Both are the same neutral request.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class TxnTopic:
    """Partitions of one topic."""

    name: str
    partitions: list[int]


@dataclass(slots=True)
class TxnPartitions:
    """Partitions of one transaction. `verify_only`: add nothing, check that they are part of it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    topics: list[TxnTopic]
    verify_only: bool = False


@dataclass(slots=True)
class AddPartitionsToTxnRequest:
    """`is_batched`: the request has version 4 or later."""

    transactions: list[TxnPartitions]
    is_batched: bool = False


@dataclass(slots=True)
class TxnPartitionResult:
    """NONE, or why this partition was not added. OPERATION_NOT_ATTEMPTED where another partition was refused."""

    partition: int
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class TxnTopicResult:
    """Results of one topic."""

    name: str
    partitions: list[TxnPartitionResult]


@dataclass(slots=True)
class TxnResult:
    """Results of one transaction."""

    transactional_id: str
    topics: list[TxnTopicResult]


@dataclass(slots=True)
class AddPartitionsToTxnResponse:
    """In the order of the request; `error` is that of a whole batched request."""

    transactions: list[TxnResult]
    error: ErrorCode = ErrorCode.NONE


def refuse_partitions(request: AddPartitionsToTxnRequest, error: ErrorCode) -> AddPartitionsToTxnResponse:
    """Return a response with the error for every partition, and for the request if it is batched."""
    transactions = [refuse_transaction(each, error) for each in request.transactions]
    return AddPartitionsToTxnResponse(transactions, error if request.is_batched else ErrorCode.NONE)


def refuse_transaction(transaction: TxnPartitions, error: ErrorCode) -> TxnResult:
    """Return a result with the error for every partition of one transaction."""
    topics = [
        TxnTopicResult(topic.name, [TxnPartitionResult(each, error) for each in topic.partitions])
        for topic in transaction.topics
    ]
    return TxnResult(transaction.transactional_id, topics)

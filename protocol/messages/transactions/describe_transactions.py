"""DescribeTransactions (key 65): the state of transactional ids, with the partitions of their transactions."""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnTopic


@dataclass(slots=True)
class DescribeTransactionsRequest:
    """The ids to describe."""

    transactional_ids: list[str]


@dataclass(slots=True)
class TransactionDescription:
    """`start_time_ms`: when the transaction began, -1 if none is open. `state`: Kafka's name, empty on an error."""

    transactional_id: str
    error: ErrorCode = ErrorCode.NONE
    state: str = ""
    timeout_ms: int = 0
    start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: list[TxnTopic] = field(default_factory=list)


@dataclass(slots=True)
class DescribeTransactionsResponse:
    """In the order of the request."""

    transactions: list[TransactionDescription]

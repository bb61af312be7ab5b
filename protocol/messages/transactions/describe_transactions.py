"""DescribeTransactions (key 65): the state of transactional ids, with the partitions of their transactions."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnTopic
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int16, Int32, Int64, String


class TransactionDescription(Struct):
    """`start_time_ms`: when the transaction began, -1 if none is open. `state`: Kafka's name, empty on an error."""

    error: Error = ErrorCode.NONE
    transactional_id: String
    state: String = ""
    timeout_ms: Int32 = 0
    start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: Sequence[TxnTopic] = ()


class DescribeTransactionsResponse(Struct, flexible=0):
    """In the order of the request."""

    throttle_ms: Int32 = 0
    transactions: Sequence[TransactionDescription]


class DescribeTransactionsRequest(Request[DescribeTransactionsResponse], api=ApiKey.DESCRIBE_TRANSACTIONS, flexible=0):
    """The ids to describe."""

    transactional_ids: Sequence[String]

    def refused(self, code: ErrorCode, message: str) -> DescribeTransactionsResponse:
        """The code for every transactional id."""
        return DescribeTransactionsResponse(
            transactions=[TransactionDescription(transactional_id=each, error=code) for each in self.transactional_ids]
        )

"""AddPartitionsToTxn (key 24): partitions that a transaction is about to write.

A client names one transaction. From version 4 on, brokers send the requests of several transactions as one, and may
only verify that the partitions belong to the transactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.transactions.old_errors import FENCED_FROM, without_fencing
from barnabas.protocol.wire.fields import since, until
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Int16, Int32, Int64, String

_BATCHED_FROM: Final = 4


class TxnPartitionResult(Struct):
    """NONE, or why this partition was not added. OPERATION_NOT_ATTEMPTED where another partition was refused."""

    partition: Int32
    error: Error = ErrorCode.NONE


class TxnTopicResult(Struct):
    """Results of one topic."""

    name: String
    partitions: Sequence[TxnPartitionResult]


class TxnResult(Struct):
    """Results of one transaction."""

    transactional_id: String
    topics: Sequence[TxnTopicResult]


class AddPartitionsToTxnResponse(Struct, flexible=3):
    """In the order of the request; `error` is that of a whole batched request, `topics` are of the only transaction."""

    throttle_ms: Int32 = 0
    error: Error = since(4, default=ErrorCode.NONE)
    transactions: Sequence[TxnResult] = since(4, default=())
    topics: Sequence[TxnTopicResult] = until(3, default=())

    def encode(self, version: int) -> bytes:
        """Replace the error that a client of the version does not know."""
        if version < FENCED_FROM:
            for topic in self.topics:
                for each in topic.partitions:
                    each.error = without_fencing(each.error)
        return super().encode(version)


class TxnTopic(Struct):
    """Partitions of one topic."""

    name: String
    partitions: Sequence[Int32]


class TxnPartitions(Struct):
    """Partitions of one transaction. `verify_only`: add nothing, check that they are part of it."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    verify_only: Bool = False
    topics: Sequence[TxnTopic]

    def refused(self, error: ErrorCode) -> TxnResult:
        """Return a result with the error for every partition."""
        return TxnResult(transactional_id=self.transactional_id, topics=refused_topics(self.topics, error))


class AddPartitionsToTxnRequest(Request[AddPartitionsToTxnResponse], api=ApiKey.ADD_PARTITIONS_TO_TXN, flexible=3):
    """`transactions` of a broker, or the other fields of a client. `asked`: of both."""

    transactions: Sequence[TxnPartitions] = since(4, default=())
    transactional_id: String = until(3, default="")
    producer_id: Int64 = until(3, default=0)
    producer_epoch: Int16 = until(3, default=0)
    topics: Sequence[TxnTopic] = until(3, default=())

    @property
    def is_batched(self) -> bool:
        """Whether a broker sent it."""
        return self.version >= _BATCHED_FROM

    @property
    def asked(self) -> Sequence[TxnPartitions]:
        """The transactions."""
        if self.is_batched:
            return self.transactions
        return [
            TxnPartitions(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                topics=self.topics,
            )
        ]

    def answered(self, results: Sequence[TxnResult]) -> AddPartitionsToTxnResponse:
        """Return the answer of the version."""
        if self.is_batched:
            return AddPartitionsToTxnResponse(transactions=results)
        (only,) = results
        return AddPartitionsToTxnResponse(topics=only.topics)

    def refused(self, code: ErrorCode, message: str) -> AddPartitionsToTxnResponse:
        """The code for the batched request, or for every partition."""
        if self.is_batched:
            return AddPartitionsToTxnResponse(error=code)
        return AddPartitionsToTxnResponse(topics=refused_topics(self.topics, code))


def refused_topics(topics: Sequence[TxnTopic], error: ErrorCode) -> list[TxnTopicResult]:
    """Return results with the error for every partition."""
    return [
        TxnTopicResult(
            name=topic.name, partitions=[TxnPartitionResult(partition=each, error=error) for each in topic.partitions]
        )
        for topic in topics
    ]

"""WriteTxnMarkers (key 27): end markers for the partitions of transactions.

Kafka's coordinators send it to other brokers, and its tools to end a hanging transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnTopic, TxnTopicResult, refused_topics
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Int8, Int16, Int32, Int64


class TxnMarkerResult(Struct):
    """Results of one producer's marker."""

    producer_id: Int64
    topics: Sequence[TxnTopicResult]


class WriteTxnMarkersResponse(Struct, flexible=1):
    """In the order of the request."""

    markers: Sequence[TxnMarkerResult]


class TxnMarker(Struct):
    """The end of one producer's transaction.

    `transaction_version`: 2 if the producer takes a new epoch for each transaction, so that the marker's epoch must be
    above that of its data (KIP-1228); 0 if unknown.
    """

    producer_id: Int64
    producer_epoch: Int16
    is_commit: Bool
    topics: Sequence[TxnTopic]
    coordinator_epoch: Int32
    transaction_version: Int8 = since(2, default=0)


class WriteTxnMarkersRequest(Request[WriteTxnMarkersResponse], api=ApiKey.WRITE_TXN_MARKERS, flexible=1):
    """Markers of any number of producers."""

    markers: Sequence[TxnMarker]

    def refused(self, code: ErrorCode, message: str) -> WriteTxnMarkersResponse:
        """The code for every partition."""
        return WriteTxnMarkersResponse(
            markers=[
                TxnMarkerResult(producer_id=marker.producer_id, topics=refused_topics(marker.topics, code))
                for marker in self.markers
            ]
        )

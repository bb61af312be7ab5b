"""WriteTxnMarkers (key 27): end markers for the partitions of transactions.

Kafka's coordinators send it to other brokers, and its tools to end a hanging transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnPartitionResult, TxnTopic, TxnTopicResult


@dataclass(slots=True)
class TxnMarker:
    """The end of one producer's transaction.

    `transaction_version`: 2 if the producer takes a new epoch for each transaction, so that the marker's epoch must be
    above that of its data (KIP-1228, version 2 of the request); 0 if unknown.
    """

    producer_id: int
    producer_epoch: int
    is_commit: bool
    topics: list[TxnTopic]
    coordinator_epoch: int
    transaction_version: int = 0


@dataclass(slots=True)
class WriteTxnMarkersRequest:
    """Markers of any number of producers."""

    markers: list[TxnMarker]


@dataclass(slots=True)
class TxnMarkerResult:
    """Results of one producer's marker."""

    producer_id: int
    topics: list[TxnTopicResult] = field(default_factory=list)


@dataclass(slots=True)
class WriteTxnMarkersResponse:
    """In the order of the request."""

    markers: list[TxnMarkerResult]


def refuse_markers(request: WriteTxnMarkersRequest, error: ErrorCode) -> WriteTxnMarkersResponse:
    """Return a response with the error for every partition."""
    return WriteTxnMarkersResponse(
        [
            TxnMarkerResult(
                marker.producer_id,
                [
                    TxnTopicResult(topic.name, [TxnPartitionResult(each, error) for each in topic.partitions])
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )

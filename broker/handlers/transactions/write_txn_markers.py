"""WriteTxnMarkers (key 27): writes end markers, for administrators that end hanging transactions.

CLUSTER_AUTHORIZATION_FAILED unless the client may ALTER the cluster or do CLUSTER_ACTION on it. Each marker is written
to each of its partitions for itself: UNKNOWN_TOPIC_OR_PARTITION for a partition that does not
exist or whose log directory is offline; INVALID_PRODUCER_EPOCH below the producer's epoch, with transaction version 2
also at it; TRANSACTION_COORDINATOR_FENCED for a coordinator epoch below that of the producer's last marker;
NOT_LEADER_OR_FOLLOWER for a partition of `__consumer_offsets` that is being loaded. Transactions that a coordinator
knows are not touched: it writes their markers itself. Source: Kafka's KafkaApis.handleWriteTxnMarkersRequest.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.handlers.authorization import ensure_cluster_allowed, is_cluster_allowed
from barnabas.broker.handlers.turns import Turns, in_turns_then_deferred
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.broker.storage.log.append import TransactionEnd
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation
from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnPartitionResult, TxnTopicResult
from barnabas.protocol.messages.transactions.write_txn_markers import (
    TxnMarker,
    TxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.protocol.records.end_marker import EndMarker

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.coordinator_log.log import Appended
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.transactions.markers import EndMarkers

logger = logging.getLogger(__name__)

_CODES: Final = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""Codes of the group coordinator that the senders of markers do not know."""


class WriteTxnMarkersHandler:
    """Serves WriteTxnMarkers."""

    def __init__(self, markers: EndMarkers, probe: ApiProbe) -> None:
        self._markers = markers
        self._probe = probe

    def __call__(
        self, session: Session, request: WriteTxnMarkersRequest
    ) -> WriteTxnMarkersResponse | Deferred[WriteTxnMarkersResponse] | Coroutine[Any, Any, WriteTxnMarkersResponse]:
        """Answer one WriteTxnMarkers request as the module docstring specifies; of many partitions in several turns."""
        return in_turns_then_deferred(self._write_all(session, request))

    async def _write_all(
        self, session: Session, request: WriteTxnMarkersRequest
    ) -> WriteTxnMarkersResponse | Deferred[WriteTxnMarkersResponse]:
        api = ApiKey.WRITE_TXN_MARKERS
        if not is_cluster_allowed(session, Operation.ALTER, api, log_denied=False):
            ensure_cluster_allowed(session, Operation.CLUSTER_ACTION, api)
        waits: list[tuple[TxnPartitionResult, Appended]] = []
        turns = Turns()
        results: list[TxnMarkerResult] = []
        for marker in request.markers:
            if turns.is_over:
                await turns.next()
            results.append(await self._write(turns, session, marker, waits))
        response = WriteTxnMarkersResponse(markers=results)
        if not waits:
            return response
        answer: Deferred[WriteTxnMarkersResponse] = Deferred()
        left = len(waits)

        def flushed(result: TxnPartitionResult, error: BrokerError | None) -> None:
            nonlocal left
            if error is not None:
                self._refuse(result, error)
            left -= 1
            if left == 0:
                answer.resolve(response)

        for result, wait in waits:
            wait.then(lambda error, result=result: flushed(result, error))  # type: ignore[misc]
        return answer

    async def _write(
        self, turns: Turns, session: Session, marker: TxnMarker, waits: list[tuple[TxnPartitionResult, Appended]]
    ) -> TxnMarkerResult:
        end = TransactionEnd(
            marker.producer_id,
            marker.producer_epoch,
            EndMarker(marker.is_commit, marker.coordinator_epoch),
            marker.transaction_version,
        )
        topics = []
        for topic in marker.topics:
            results = []
            for number in topic.partitions:
                if turns.is_over:
                    await turns.next()
                result = TxnPartitionResult(partition=number)
                results.append(result)
                try:
                    wait = self._markers.append((topic.name, number), end)
                except BrokerError as error:
                    self._refuse(result, error, is_unavailable=error.code is ErrorCode.KAFKA_STORAGE_ERROR)
                    continue
                if wait is not None:
                    waits.append((result, wait))
                logger.info(
                    "wrote an end marker for %s, partition=%s-%d producer_id=%d producer_epoch=%d outcome=%s",
                    session,
                    printable(topic.name),
                    number,
                    marker.producer_id,
                    marker.producer_epoch,
                    "commit" if marker.is_commit else "abort",
                )
            topics.append(TxnTopicResult(name=topic.name, partitions=results))
        return TxnMarkerResult(producer_id=marker.producer_id, topics=topics)

    def _refuse(self, result: TxnPartitionResult, error: BrokerError, *, is_unavailable: bool = False) -> None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_unavailable else _CODES.get(error.code, error.code)
        result.error = code
        self._probe.count_error(code.name.lower())

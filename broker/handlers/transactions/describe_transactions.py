"""DescribeTransactions (key 65): the state of transactional ids, with the partitions of their transactions.

TRANSACTIONAL_ID_AUTHORIZATION_FAILED for an id that the client may not DESCRIBE; INVALID_REQUEST for an empty id;
COORDINATOR_LOAD_IN_PROGRESS while its partition is loaded, COORDINATOR_NOT_AVAILABLE if that failed;
TRANSACTIONAL_ID_NOT_FOUND for an unknown one. Topics that the client may not DESCRIBE are left out.
Differs from Kafka: INVALID_REQUEST for each occurrence of an id that is listed more than ten times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.handlers.authorization import ensure_allowed, is_allowed
from barnabas.broker.handlers.repetitions import DESCRIBED_MAX, repeated, repetition_error
from barnabas.broker.handlers.turns import Turns, in_turns
from barnabas.broker.transactions.metadata import by_topic
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnTopic
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionDescription,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.transactions.log import TransactionLog


class DescribeTransactionsHandler:
    """Serves DescribeTransactions."""

    def __init__(self, log: TransactionLog, probe: ApiProbe) -> None:
        self._log = log
        self._probe = probe

    def __call__(
        self, session: Session, request: DescribeTransactionsRequest
    ) -> DescribeTransactionsResponse | Coroutine[Any, Any, DescribeTransactionsResponse]:
        """Answer one DescribeTransactions request as the module docstring specifies; of many ids in several turns."""
        return in_turns(self._describe_all(session, request))

    async def _describe_all(
        self, session: Session, request: DescribeTransactionsRequest
    ) -> DescribeTransactionsResponse:
        turns = Turns()
        found = []
        refused = repeated(request.transactional_ids, DESCRIBED_MAX)
        for transactional_id in request.transactional_ids:
            if turns.is_over:
                await turns.next()
            try:
                ensure_allowed(
                    session,
                    Operation.DESCRIBE,
                    ResourceType.TRANSACTIONAL_ID,
                    transactional_id,
                    ApiKey.DESCRIBE_TRANSACTIONS,
                )
                if transactional_id in refused:
                    raise repetition_error("transactional id", DESCRIBED_MAX)
                found.append(self._describe(session, transactional_id))
            except BrokerError as error:
                self._probe.count_error(error.code.name.lower())
                found.append(TransactionDescription(transactional_id=transactional_id, error=error.code))
        return DescribeTransactionsResponse(transactions=found)

    def _describe(self, session: Session, transactional_id: str) -> TransactionDescription:
        if not transactional_id:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        self._log.coordinator_log.ensure_loaded(transactional_id)
        metadata = self._log.states.get(transactional_id)
        if metadata is None:
            raise BrokerError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "the transactional id is unknown")
        return TransactionDescription(
            transactional_id=transactional_id,
            error=ErrorCode.NONE,
            state=metadata.state.label,
            timeout_ms=metadata.timeout_ms,
            start_time_ms=metadata.start_ms,
            producer_id=metadata.producer_id,
            producer_epoch=metadata.producer_epoch,
            topics=[
                TxnTopic(name=topic, partitions=numbers)
                for topic, numbers in by_topic(metadata.partitions)
                if is_allowed(session, Operation.DESCRIBE, ResourceType.TOPIC, topic, ApiKey.DESCRIBE_TRANSACTIONS)
            ],
        )

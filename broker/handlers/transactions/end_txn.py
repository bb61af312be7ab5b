"""EndTxn (key 26): commits or aborts a transaction.

Order of checks: the client may WRITE the transactional id (TRANSACTIONAL_ID_AUTHORIZATION_FAILED). Then, all by the
transaction's state machine: the transactional id is not empty (INVALID_REQUEST); its partition is loaded
(COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE); the id and its producer id are known
(INVALID_PRODUCER_ID_MAPPING); the epoch is current, or that of a repeated request (PRODUCER_FENCED); the last
transaction's end is complete (CONCURRENT_TRANSACTIONS); the state permits the outcome (INVALID_TXN_STATE).

Differs from Kafka: the answer comes after the markers, so the next transaction never gets CONCURRENT_TRANSACTIONS,
unless a marker cannot be written. At a transaction.version below 2, version 5 answers the unchanged id and epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import ensure_allowed
from barnabas.broker.handlers.transactions.counting import counted
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.network.deferred import Deferred
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.transactions.coordinator import TransactionCoordinator
    from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse


class EndTxnHandler:
    """Serves EndTxn."""

    def __init__(self, transactions: TransactionCoordinator, probe: ApiProbe) -> None:
        self._transactions = transactions
        self._probe = probe

    def __call__(self, session: Session, request: EndTxnRequest) -> EndTxnResponse | Deferred[EndTxnResponse]:
        """Answer one EndTxn request as the module docstring specifies; a Deferred only while a flush is due."""
        ensure_allowed(
            session, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id, ApiKey.END_TXN
        )
        return counted(self._transactions.end(request), self._probe)

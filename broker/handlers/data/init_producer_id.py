"""InitProducerId (key 22): an id and an epoch for an idempotent or transactional producer.

Ids come in blocks of 1,000 from the metadata log and are never reused, not even after a crash. KAFKA_STORAGE_ERROR
(retriable) if the metadata log cannot be written.

Order of checks: the client may WRITE the transactional id, and for two-phase commit TWO_PHASE_COMMIT it
(TRANSACTIONAL_ID_AUTHORIZATION_FAILED); without one, it may do IDEMPOTENT_WRITE on the cluster or WRITE any topic
(CLUSTER_AUTHORIZATION_FAILED); not a producer id without its epoch, or the reverse (INVALID_REQUEST). Then, with a
transactional id, which the transaction coordinator serves: it is not empty (INVALID_REQUEST); two-phase commit is
allowed (TRANSACTIONAL_ID_AUTHORIZATION_FAILED); no prepared transaction is to be kept (UNSUPPORTED_VERSION, as in Kafka
4.3); the timeout is at most transaction.max.timeout.ms (INVALID_TRANSACTION_TIMEOUT); the id's partition of
`__transaction_state` is loaded (COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE); the last transaction's end is
complete (CONCURRENT_TRANSACTIONS); the given producer id and epoch are the current ones, or those of a repeated request
(PRODUCER_FENCED). An open transaction is aborted, which fences its producer; the answer is CONCURRENT_TRANSACTIONS, as
in Kafka, and the client's next request gets the id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import denial, ensure_allowed, is_cluster_allowed
from barnabas.broker.handlers.transactions.counting import counted
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.network.deferred import Deferred
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.producer_ids import ProducerIds
    from barnabas.broker.transactions.coordinator import TransactionCoordinator


class InitProducerIdHandler:
    """Serves InitProducerId."""

    def __init__(self, producer_ids: ProducerIds, transactions: TransactionCoordinator, probe: ApiProbe) -> None:
        self._producer_ids = producer_ids
        self._transactions = transactions
        self._probe = probe

    def __call__(
        self, session: Session, request: InitProducerIdRequest
    ) -> Deferred[InitProducerIdResponse] | Coroutine[None, None, InitProducerIdResponse] | InitProducerIdResponse:
        """Answer one InitProducerId request as the module docstring specifies."""
        _ensure_allowed(session, request)
        if (request.producer_id == -1) != (request.producer_epoch == -1):
            message = f"producer id {request.producer_id} with epoch {request.producer_epoch}: one without the other"
            raise BrokerError(ErrorCode.INVALID_REQUEST, message)
        if request.transactional_id is not None:
            return counted(self._transactions.initialize(request), self._probe)
        taken = self._producer_ids.take()
        return self._next_id() if taken is None else InitProducerIdResponse(producer_id=taken, producer_epoch=0)

    async def _next_id(self) -> InitProducerIdResponse:
        return InitProducerIdResponse(producer_id=await self._producer_ids.next_id(), producer_epoch=0)


def _ensure_allowed(session: Session, request: InitProducerIdRequest) -> None:
    access, api = session.access, ApiKey.INIT_PRODUCER_ID
    if access is None:
        return
    if request.transactional_id is not None:
        kind = ResourceType.TRANSACTIONAL_ID
        ensure_allowed(session, Operation.WRITE, kind, request.transactional_id, api)
        if request.enable_2pc:
            ensure_allowed(session, Operation.TWO_PHASE_COMMIT, kind, request.transactional_id, api)
    elif not is_cluster_allowed(session, Operation.IDEMPOTENT_WRITE, api, log_denied=False) and not access.allows_any(
        Operation.WRITE, ResourceType.TOPIC
    ):
        raise denial(ResourceType.CLUSTER)

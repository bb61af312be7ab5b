"""InitProducerId (key 22): an id and epoch 0 for an idempotent producer.

Ids come in blocks of 1,000 from the metadata log and are never reused, not even after a crash. A transactional id is
refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED while transactions are not served: every client treats that code as
fatal, whereas librdkafka retries forever after any other code but INVALID_TRANSACTION_TIMEOUT and
CLUSTER_AUTHORIZATION_FAILED. INVALID_REQUEST for an empty transactional id, and for a producer id without its epoch or
the reverse; both together matter only with a transactional id, as in Kafka. KAFKA_STORAGE_ERROR (retriable) if the
metadata log cannot be written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session
    from barnabas.broker.producer_ids import ProducerIds


class InitProducerIdHandler:
    """Serves InitProducerId."""

    def __init__(self, producer_ids: ProducerIds) -> None:
        self._producer_ids = producer_ids

    async def __call__(self, session: Session, request: InitProducerIdRequest) -> InitProducerIdResponse:
        """Answer one InitProducerId request as the module docstring specifies."""
        if (request.producer_id == -1) != (request.producer_epoch == -1):
            message = f"producer id {request.producer_id} with epoch {request.producer_epoch}: one without the other"
            raise BrokerError(ErrorCode.INVALID_REQUEST, message)
        if request.transactional_id == "":
            raise BrokerError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        if request.transactional_id is not None:
            raise BrokerError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                f"transactions are not served here, transactional.id={printable(request.transactional_id)}",
            )
        return InitProducerIdResponse(await self._producer_ids.next_id(), 0)

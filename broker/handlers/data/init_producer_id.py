"""InitProducerId (key 22): an id and epoch 0 for an idempotent producer.

Ids come in blocks of 1,000 from the metadata log and are never reused, after no crash either. A transactional id is
refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED while transactions are not served: librdkafka would ask again for
ever after any other code that says so, and every client takes this one for fatal. An empty one is INVALID_REQUEST, and
so is a producer id without its epoch; both together mean something with a transactional id only, as in Kafka.
KAFKA_STORAGE_ERROR (retriable) when the metadata log cannot be written.
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
        """The answer to one request; the contract is at the top of the file."""
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

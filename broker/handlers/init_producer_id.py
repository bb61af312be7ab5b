"""InitProducerId (key 22): an id and epoch 0 for an idempotent producer.

Ids come in blocks of 1,000 from the metadata log and are never reused, after no crash either. Transactional ids are not
served yet. KAFKA_STORAGE_ERROR (retriable) when the metadata log cannot be written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from barnabas.broker.producer_ids import ProducerIds
    from barnabas.broker.session import Session


class InitProducerIdHandler:
    """Serves InitProducerId."""

    def __init__(self, producer_ids: ProducerIds) -> None:
        self._producer_ids = producer_ids

    async def __call__(self, session: Session, request: InitProducerIdRequest) -> InitProducerIdResponse:
        """The answer to one request; the contract is at the top of the file."""
        return InitProducerIdResponse(await self._producer_ids.next_id(), 0)

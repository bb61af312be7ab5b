"""InitProducerId (key 22): an id under which a producer's batches are recognised when they come twice."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class InitProducerIdRequest:
    """With a `transactional_id` the producer wants transactions.

    `producer_id` and `producer_epoch` are what it has already, both -1 for nothing.
    """

    transactional_id: str | None = None
    producer_id: int = -1
    producer_epoch: int = -1


@dataclass(slots=True)
class InitProducerIdResponse:
    """An id that nobody had before and nobody will have again, and its first epoch."""

    producer_id: int
    producer_epoch: int
    error: ErrorCode = ErrorCode.NONE

"""InitProducerId (key 22): an id under which a producer's batches are recognised when they come twice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class InitProducerIdRequest:
    """With a `transactional_id` the producer wants transactions."""

    transactional_id: str | None = None


@dataclass(slots=True)
class InitProducerIdResponse:
    """An id that nobody had before and nobody will have again, and its first epoch."""

    producer_id: int
    producer_epoch: int

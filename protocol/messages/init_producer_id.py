"""InitProducerId (key 22): an id under which a producer's batches are recognised when they come twice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class InitProducerIdRequest:
    """Nothing to say: transactions are not served yet."""


@dataclass(slots=True)
class InitProducerIdResponse:
    """An id that nobody had before and nobody will have again, and its first epoch."""

    producer_id: int
    producer_epoch: int

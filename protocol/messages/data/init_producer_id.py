"""InitProducerId (key 22): an id by which a producer's duplicate batches are detected."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode

DEFAULT_TRANSACTION_TIMEOUT_MS = 60_000
"""Of Kafka's producers: transaction.timeout.ms."""


@dataclass(slots=True)
class InitProducerIdRequest:
    """A producer with a `transactional_id` wants transactions.

    `producer_id` and `producer_epoch` are its present ones, both -1 without. `transaction_timeout_ms` is when the
    coordinator aborts a transaction that its producer does not end; without a transactional id it means nothing.
    `two_phase`: an external coordinator decides, so no timeout aborts the transaction (KIP-939's enable2Pc; only the
    native dialect has it, because InitProducerId version 6 is unstable in Kafka).
    """

    transactional_id: str | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    transaction_timeout_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS
    two_phase: bool = False


@dataclass(slots=True)
class InitProducerIdResponse:
    """A unique, never reused id and its first epoch."""

    producer_id: int
    producer_epoch: int
    error: ErrorCode = ErrorCode.NONE

"""AddOffsetsToTxn (key 25): the group whose offsets a transaction is about to commit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class AddOffsetsToTxnRequest:
    """Adds the partition of `__consumer_offsets` that holds the group to the transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str


@dataclass(slots=True)
class AddOffsetsToTxnResponse:
    """NONE, or why the transaction does not include the group."""

    error: ErrorCode = ErrorCode.NONE

"""EndTxn (key 26): commits or aborts a transaction."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class EndTxnRequest:
    """`bumps_epoch`: the request has version 5 or later, whose producer takes a new epoch for each transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    bumps_epoch: bool = False


@dataclass(slots=True)
class EndTxnResponse:
    """The id and epoch of the producer's next transaction; both -1 unless the request bumps the epoch."""

    error: ErrorCode = ErrorCode.NONE
    producer_id: int = -1
    producer_epoch: int = -1

"""EndTxn (key 26): commits or aborts a transaction."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.transactions.old_errors import FENCED_FROM, without_fencing
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Int16, Int32, Int64, String

_EPOCH_BUMP_FROM: Final = 5


class EndTxnResponse(Struct, flexible=3):
    """The id and epoch of the producer's next transaction; both -1 unless the request bumps the epoch."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    producer_id: Int64 = since(5, default=-1)
    producer_epoch: Int16 = since(5, default=-1)

    def encode(self, version: int) -> bytes:
        """Replace the error that a client of the version does not know."""
        if version < FENCED_FROM:
            self.error = without_fencing(self.error)
        return super().encode(version)


class EndTxnRequest(Request[EndTxnResponse], api=ApiKey.END_TXN, flexible=3):
    """The end of the producer's open transaction."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    is_commit: Bool

    @property
    def bumps_epoch(self) -> bool:
        """Whether the producer takes a new epoch for each transaction, from the answer (KIP-890)."""
        return self.version >= _EPOCH_BUMP_FROM

    def refused(self, code: ErrorCode, message: str) -> EndTxnResponse:
        """The code, and no id."""
        return EndTxnResponse(error=code)

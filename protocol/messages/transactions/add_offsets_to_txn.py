"""AddOffsetsToTxn (key 25): the group whose offsets a transaction is about to commit."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.transactions.old_errors import FENCED_FROM, without_fencing
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int16, Int32, Int64, String


class AddOffsetsToTxnResponse(Struct, flexible=3):
    """NONE, or why the transaction does not include the group."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE

    def encode(self, version: int) -> bytes:
        """Replace the error that a client of the version does not know."""
        if version < FENCED_FROM:
            self.error = without_fencing(self.error)
        return super().encode(version)


class AddOffsetsToTxnRequest(Request[AddOffsetsToTxnResponse], api=ApiKey.ADD_OFFSETS_TO_TXN, flexible=3):
    """Adds the partition of `__consumer_offsets` that holds the group to the transaction."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String

    def refused(self, code: ErrorCode, message: str) -> AddOffsetsToTxnResponse:
        """The code."""
        return AddOffsetsToTxnResponse(error=code)

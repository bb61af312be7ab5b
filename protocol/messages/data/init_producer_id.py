"""InitProducerId (key 22): an id by which a producer's duplicate batches are detected."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.transactions.old_errors import without_fencing
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Int16, Int32, Int64, NullableString

DEFAULT_TRANSACTION_TIMEOUT_MS: Final = 60_000
"""Of Kafka's producers: transaction.timeout.ms."""

_FENCED_FROM: Final = 4


class InitProducerIdResponse(Struct, flexible=2):
    """A unique, never reused id and its first epoch; both -1 on an error.

    The ongoing transaction is that of a request with `keep_prepared_txn`, which is refused.
    """

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    producer_id: Int64 = -1
    producer_epoch: Int16 = -1
    ongoing_producer_id: Int64 = since(6, default=-1)
    ongoing_producer_epoch: Int16 = since(6, default=-1)

    def encode(self, version: int) -> bytes:
        """Replace the error that a client of the version does not know."""
        if version < _FENCED_FROM:
            self.error = without_fencing(self.error)
        return super().encode(version)


class InitProducerIdRequest(Request[InitProducerIdResponse], api=ApiKey.INIT_PRODUCER_ID, flexible=2):
    """A producer with a `transactional_id` wants transactions.

    `producer_id` and `producer_epoch` are its present ones, both -1 without. `transaction_timeout_ms` is when the
    coordinator aborts a transaction that its producer does not end; without a transactional id it means nothing.
    `enable_2pc`: an external coordinator decides, so no timeout aborts the transaction (KIP-939).
    """

    transactional_id: NullableString = None
    transaction_timeout_ms: Int32 = DEFAULT_TRANSACTION_TIMEOUT_MS
    producer_id: Int64 = since(3, default=-1)
    producer_epoch: Int16 = since(3, default=-1)
    enable_2pc: Bool = since(6, default=False)
    keep_prepared_txn: Bool = since(6, default=False)

    def refused(self, code: ErrorCode, message: str) -> InitProducerIdResponse:
        """The code, and no id."""
        return InitProducerIdResponse(error=code)

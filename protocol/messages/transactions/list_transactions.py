"""ListTransactions (key 66): transactional ids and the states of their transactions."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int32, Int64, NullableString, String


class TransactionListing(Struct):
    """One transactional id."""

    transactional_id: String
    producer_id: Int64
    state: String


class ListTransactionsResponse(Struct, flexible=0):
    """`unknown_states`: names in the filter that Kafka does not have."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    unknown_states: Sequence[String] = ()
    transactions: Sequence[TransactionListing] = ()


class ListTransactionsRequest(Request[ListTransactionsResponse], api=ApiKey.LIST_TRANSACTIONS, flexible=0):
    """Filters that a transaction must pass.

    `states`: names as in Kafka (`Ongoing`), empty for all. `producer_ids`: empty for all. `duration_ms`: open for
    longer than this, negative for all. `transactional_id_pattern`: an RE2 expression, None or empty for all.
    """

    states: Sequence[String] = ()
    producer_ids: Sequence[Int64] = ()
    duration_ms: Int64 = since(1, default=-1)
    transactional_id_pattern: NullableString = since(2, default=None)

    @property
    def lowest(self) -> int:
        """The lowest version that has its filters. A broker of a lower one would list what they leave out."""
        if self.transactional_id_pattern:
            return 2
        return 1 if self.duration_ms >= 0 else 0

    def refused(self, code: ErrorCode, message: str) -> ListTransactionsResponse:
        """The code, and no transactions."""
        return ListTransactionsResponse(error=code)

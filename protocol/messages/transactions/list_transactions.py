"""ListTransactions (key 66): transactional ids and the states of their transactions."""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class ListTransactionsRequest:
    """Filters that a transaction must pass.

    `states`: names as in Kafka (`Ongoing`), empty for all. `producer_ids`: empty for all. `duration_ms`: open for
    longer than this, negative for all. `transactional_id_pattern`: an RE2 expression, None or empty for all.
    """

    states: list[str] = field(default_factory=list)
    producer_ids: list[int] = field(default_factory=list)
    duration_ms: int = -1
    transactional_id_pattern: str | None = None


@dataclass(slots=True)
class TransactionListing:
    """One transactional id."""

    transactional_id: str
    producer_id: int
    state: str


@dataclass(slots=True)
class ListTransactionsResponse:
    """`unknown_states`: names in the filter that Kafka does not have."""

    transactions: list[TransactionListing] = field(default_factory=list)
    unknown_states: list[str] = field(default_factory=list)
    error: ErrorCode = ErrorCode.NONE

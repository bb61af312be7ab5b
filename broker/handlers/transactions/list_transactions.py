"""ListTransactions (key 66): the transactional ids that the client may DESCRIBE and that pass the filters.

COORDINATOR_LOAD_IN_PROGRESS while any partition of `__transaction_state` is loaded; INVALID_REGULAR_EXPRESSION for a
pattern that RE2 does not accept. Unknown names of states are answered as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.groups.expressions.topic_regex import topic_regex
from barnabas.broker.handlers.authorization import is_allowed
from barnabas.broker.handlers.turns import Turns, in_turns
from barnabas.broker.transactions.state import STATES_BY_LABEL
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.messages.transactions.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionListing,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.network.session import Session
    from barnabas.broker.storage.services.clock import Clock
    from barnabas.broker.transactions.log import TransactionLog


class ListTransactionsHandler:
    """Serves ListTransactions."""

    def __init__(self, log: TransactionLog, clock: Clock) -> None:
        self._log = log
        self._clock = clock

    def __call__(
        self, session: Session, request: ListTransactionsRequest
    ) -> ListTransactionsResponse | Coroutine[Any, Any, ListTransactionsResponse]:
        """Answer one ListTransactions request as the module docstring specifies; of many in several turns."""
        return in_turns(self._list(session, request))

    async def _list(self, session: Session, request: ListTransactionsRequest) -> ListTransactionsResponse:
        turns = Turns()
        self._log.coordinator_log.ensure_all_loaded()
        pattern = topic_regex(request.transactional_id_pattern) if request.transactional_id_pattern else None
        states = {STATES_BY_LABEL[name] for name in request.states if name in STATES_BY_LABEL}
        producer_ids = frozenset(request.producer_ids)
        now_ms = self._clock.wall_ms()
        api, kind = ApiKey.LIST_TRANSACTIONS, ResourceType.TRANSACTIONAL_ID
        listed = []
        for transactional_id, metadata in list(self._log.states.items()):
            if turns.is_over:
                await turns.next()
            if (
                (not producer_ids or metadata.producer_id in producer_ids)
                and (not request.states or metadata.state in states)
                and (request.duration_ms < 0 or now_ms - metadata.start_ms > request.duration_ms)
                and (pattern is None or pattern.matches(transactional_id))
                and is_allowed(session, Operation.DESCRIBE, kind, transactional_id, api)
            ):
                listed.append(
                    TransactionListing(
                        transactional_id=transactional_id, producer_id=metadata.producer_id, state=metadata.state.label
                    )
                )
        return ListTransactionsResponse(
            transactions=listed, unknown_states=[name for name in request.states if name not in STATES_BY_LABEL]
        )

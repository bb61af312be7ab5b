"""Transactions that one process writes and another one ends.

A task writes its records in a transaction, flushes them, and returns a PreparedTransaction instead of ending it. A
coordinating process stores its decision about a set of them and then ends each, after a restart again:

    async with PreparedTransactions(config) as prepared:
        await prepared.ensure_open(transactions)
        ...                                     # store the decision
        await prepared.commit(transaction)      # also if it was committed before
        await prepared.abort("orders-7-attempt-2")

The broker must not abort the transaction by its timeout in between: initialize the producer with two-phase commit,
which has no timeout (`transaction.two.phase.commit.enable=true` on the broker), or with a long enough timeout.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import PreparedTransactionLostError, RefusedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.retrying import with_retries
from barnabas.clients.producer.transaction_requests import adds_first, highest_version
from barnabas.clients.transactions import describe_transactions, list_transactions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.groups.find_coordinator import TRANSACTION_KEY
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest
from barnabas.protocol.messages.transactions.list_transactions import ListTransactionsRequest

_OPEN: Final = "Ongoing"
_LOST_CODES: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)


class PreparedTransaction(NamedTuple):
    """An open transaction whose records are all stored, by its transactional id, producer id and epoch."""

    transactional_id: str
    producer_id: int
    epoch: int


class PreparedTransactions:
    """Ends transactions of other processes. Use it as an async context manager; its methods may run concurrently."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._cluster = Cluster(config)

    async def __aenter__(self) -> Self:
        try:
            await self._cluster.start()
        except BaseException:
            await self._cluster.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._cluster.close()

    @property
    def cluster_id(self) -> str:
        """The id of the connected cluster."""
        return self._cluster.cluster_id

    async def ensure_open(self, transactions: Sequence[PreparedTransaction]) -> None:
        """Check that transactions can still be committed, before the decision to commit all of them.

        Raises PreparedTransactionLostError for the first one that was ended or fenced; and as `commit`.
        """
        if not transactions:
            return
        ids = [each.transactional_id for each in transactions]
        described = await describe_transactions(self._cluster, self._config, ids)
        for transaction in transactions:
            found = described[transaction.transactional_id]
            if isinstance(found, RefusedError):
                if found.retriable:
                    raise found
                raise PreparedTransactionLostError(transaction.transactional_id, found.code)
            current = PreparedTransaction(found.transactional_id, found.producer_id, found.producer_epoch)
            if found.state != _OPEN or current != transaction:
                raise PreparedTransactionLostError(transaction.transactional_id, ErrorCode.INVALID_TXN_STATE)

    async def commit(self, transaction: PreparedTransaction) -> None:
        """Commit the transaction; return also if it was committed by an earlier call.

        Raises PreparedTransactionLostError if it was aborted or is unknown, and other ClientErrors after
        api_timeout_ms of lost connections and retriable errors.
        """
        request = EndTxnRequest(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
            is_commit=True,
        )
        try:
            await self._ask(request, f"commit of transaction {transaction.transactional_id}")
        except RefusedError as error:
            if error.code in _LOST_CODES:
                raise PreparedTransactionLostError(transaction.transactional_id, error.code) from error
            raise

    async def abort(self, transactional_id: str) -> None:
        """Abort the open transaction of a transactional id, if there is one, and fence its producer.

        Raises ClientError after api_timeout_ms of lost connections and retriable errors.
        """
        request = InitProducerIdRequest(transactional_id=transactional_id)
        await self._ask(request, f"abort of the transaction of {transactional_id}")

    async def open_ids(self, pattern: str) -> list[str]:
        """Return the transactional ids with an open transaction that match an RE2 expression as a whole.

        Raises ClientError after api_timeout_ms of lost connections and retriable errors.
        """
        request = ListTransactionsRequest(states=[_OPEN], transactional_id_pattern=pattern)
        listed = await list_transactions(self._cluster, self._config, request)
        return [each.transactional_id for each in listed]

    async def _ask(self, request: Any, what: str) -> None:
        async def attempt() -> None:
            connection = await self._cluster.coordinator(TRANSACTION_KEY, request.transactional_id)
            highest = highest_version(request.api_key, adds_first=adds_first(connection))
            response: Any = await connection.request(request, highest=highest)
            if response.error is not ErrorCode.NONE:
                raise RefusedError(response.error, f"{what} was refused")

        await with_retries(self._config, what, attempt, coordinated_by=self._cluster)

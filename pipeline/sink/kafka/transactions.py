"""Ends transactions that task attempts opened, by Kafka's protocol: `PreparedTransactions` for Apache Kafka.

Each request is sent to the coordinator of its transactional id. It is repeated while the coordinator moves, loads, or
completes an earlier transaction of the id, and after lost connections, for at most api_timeout_ms.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeVar

from barnabas.clients.addresses import Address, parse_bootstrap
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    PreparedTransactionLostError,
    ProtocolViolationError,
    RefusedError,
    reason_of,
)
from barnabas.clients.kafka.connection import KafkaConnection
from barnabas.clients.network.retrying import with_retries
from barnabas.clients.producer.prepared import PreparedTransaction
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import transaction_requests
from barnabas.protocol.kafka.client.metadata import METADATA
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.topics.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.transactions.describe_transactions import TransactionDescription

_NEEDED: Final = {ApiKey.METADATA: 4, **transaction_requests.VERSIONS}
_PURPOSE: Final = "exactlyOnce=transactions needs; Apache Kafka serves it since 3.0"

_OPEN: Final = "Ongoing"
_LOST_CODES: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)

T = TypeVar("T")


class KafkaTransactions:
    """Ends transactions of other processes. Use it as an async context manager; its methods may run concurrently."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._cluster_id = ""
        self._connections: dict[Address, KafkaConnection] = {}
        self._opening: defaultdict[Address, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._coordinators: dict[str, Address] = {}

    async def __aenter__(self) -> Self:
        async def attempt() -> str:
            connection = await self._any_connection()
            found: MetadataResponse = await connection.request(METADATA, MetadataRequest.of_names(()))
            return found.cluster_id or ""

        try:
            self._cluster_id = await with_retries(self._config, "Metadata", attempt)
        except BaseException:
            self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()

    @property
    def cluster_id(self) -> str:
        """The id of the connected cluster."""
        return self._cluster_id

    async def prepared(self, transactional_id: str) -> PreparedTransaction:
        """Return the open transaction of an id. Raises PreparedTransactionLostError without one; and as `commit`."""
        found = await self._describe(transactional_id)
        if found.state != _OPEN:
            raise PreparedTransactionLostError(found.transactional_id, ErrorCode.INVALID_TXN_STATE)
        return PreparedTransaction(transactional_id, found.producer_id, found.producer_epoch)

    async def ensure_open(self, transactions: Sequence[PreparedTransaction]) -> None:
        """Check that transactions can still be committed, before the decision to commit all of them.

        Raises PreparedTransactionLostError for the first one that was ended or fenced; and as `commit`.
        """
        for transaction in transactions:
            found = await self._describe(transaction.transactional_id)
            current = PreparedTransaction(found.transactional_id, found.producer_id, found.producer_epoch)
            if found.state != _OPEN or current != transaction:
                raise PreparedTransactionLostError(found.transactional_id, ErrorCode.INVALID_TXN_STATE)

    async def commit(self, transaction: PreparedTransaction) -> None:
        """Commit the transaction; return also if it was committed by an earlier call.

        Raises PreparedTransactionLostError if it was aborted or is unknown, and other ClientErrors after
        api_timeout_ms of lost connections and retriable errors.
        """
        name, producer_id, epoch = transaction
        what = f"commit of transaction {name}"

        async def request(connection: KafkaConnection) -> None:
            frame = partial(
                transaction_requests.commit_request, transactional_id=name, producer_id=producer_id, epoch=epoch
            )
            _ensure_none(await connection.ask(frame, transaction_requests.commit_answer), what)

        try:
            await self._at_coordinator(name, what, request)
        except RefusedError as error:
            if error.code in _LOST_CODES:
                raise PreparedTransactionLostError(name, error.code) from error
            raise

    async def abort(self, transactional_id: str) -> None:
        """Abort the open transaction of a transactional id, if there is one, and fence its producer.

        Raises ClientError after api_timeout_ms of lost connections and retriable errors.
        """
        what = f"abort of the transaction of {transactional_id}"

        async def request(connection: KafkaConnection) -> None:
            frame = partial(transaction_requests.fence_request, transactional_id=transactional_id)
            _ensure_none(await connection.ask(frame, transaction_requests.fence_answer), what)

        await self._at_coordinator(transactional_id, what, request)

    async def open_ids(self, pattern: str) -> list[str]:
        """Return no ids: transactions of Apache Kafka have a timeout, which ends what nobody returned."""
        return []

    async def _describe(self, transactional_id: str) -> TransactionDescription:
        """Return the state of an id. Raises PreparedTransactionLostError for an unknown one."""
        what = f"transaction {transactional_id} cannot be described"

        async def request(connection: KafkaConnection) -> TransactionDescription:
            frame = partial(transaction_requests.describe_transactions_request, transactional_ids=(transactional_id,))
            described = await connection.ask(frame, transaction_requests.describe_transactions_answer)
            if [each.transactional_id for each in described] != [transactional_id]:
                raise ProtocolViolationError(f"{what}: the broker answered about {len(described)} other ids")
            (found,) = described
            if found.error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise PreparedTransactionLostError(transactional_id, found.error)
            _ensure_none(found.error, what)
            return found

        return await self._at_coordinator(transactional_id, what, request)

    async def _at_coordinator(
        self, transactional_id: str, what: str, request: Callable[[KafkaConnection], Awaitable[T]]
    ) -> T:
        async def attempt() -> T:
            try:
                return await request(await self._coordinator_of(transactional_id))
            except (BrokerConnectionError, BrokerTimeoutError, RefusedError):
                self._coordinators.pop(transactional_id, None)  # it may have moved
                raise

        return await with_retries(self._config, what, attempt)

    async def _coordinator_of(self, transactional_id: str) -> KafkaConnection:
        address = self._coordinators.get(transactional_id)
        if address is None:
            connection = await self._any_connection()
            frame = partial(transaction_requests.find_coordinator_request, transactional_id=transactional_id)
            found = await connection.ask(frame, transaction_requests.find_coordinator_answer)
            _ensure_none(found.error, f"the coordinator of {transactional_id} cannot be found")
            address = self._coordinators[transactional_id] = Address(found.address.host, found.address.port)
        return await self._connection(address)

    async def _any_connection(self) -> KafkaConnection:
        for connection in self._connections.values():
            if not connection.is_closed:
                return connection
        last: BrokerConnectionError | BrokerTimeoutError | None = None
        for address in parse_bootstrap(self._config.bootstrap):
            try:
                return await self._connection(address)
            except ProtocolViolationError:
                raise
            except (BrokerConnectionError, BrokerTimeoutError) as error:
                last = error
        assert last is not None  # a bootstrap list is never empty
        raise last

    async def _connection(self, address: Address) -> KafkaConnection:
        async with self._opening[address]:
            connection = self._connections.get(address)
            if connection is None or connection.is_closed:
                connection = await KafkaConnection.open(address, self._config, _NEEDED, _PURPOSE)
                self._connections[address] = connection
            return connection

    def _close(self) -> None:
        for connection in self._connections.values():
            connection.close()


def _ensure_none(code: ErrorCode, what: str) -> None:
    if code is not ErrorCode.NONE:
        raise RefusedError(code, f"{what}: {reason_of(code)}")

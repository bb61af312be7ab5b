"""The client's side of transactions in this dialect, for a program that ends transactions which other programs opened.

    FindCoordinator v1        of a transactional id
    DescribeTransactions v0   flexible
    EndTxn v2                 the last version without flexible fields, and the first with PRODUCER_FENCED
    InitProducerId v1         of a transactional id: aborts its transaction and fences its producer

Brokers since Kafka 3.0 serve all four. EndTxn below version 5 does not bump the epoch, also where transaction.version 2
is finalized. That is wanted: after a commit the coordinator still has the producer id and epoch of the transaction, so
it answers a repeated EndTxn with NONE, and any later use of the transactional id changes the epoch.
Source: Kafka's message definitions, and TransactionCoordinator.endTransactionWithTV1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeVar

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client_codec import read_answer, request_frame
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.groups.find_coordinator import (
    TRANSACTION_KEY,
    FindCoordinatorRequest,
)
from barnabas.protocol.messages.nodes import BrokerAddress
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    TransactionDescription,
)
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest
from barnabas.protocol.wire.structures import Request, Struct

S = TypeVar("S", bound=Struct)

VERSIONS: Final = {
    ApiKey.FIND_COORDINATOR: 1,
    ApiKey.INIT_PRODUCER_ID: 1,
    ApiKey.END_TXN: 2,
    ApiKey.DESCRIBE_TRANSACTIONS: 0,
}
"""The version in which each request is sent."""

_UNUSED_TIMEOUT_MS: Final = 1000
"""InitProducerId has to name a timeout, here of a producer that begins no transaction; brokers accept a short one."""


class Coordinator(NamedTuple):
    """The coordinator of a transactional id; `address` means nothing on an error."""

    error: ErrorCode
    address: BrokerAddress


def find_coordinator_request(correlation_id: int, client_id: str, transactional_id: str) -> bytes:
    """Return a FindCoordinator request of a transactional id as a whole frame."""
    request = FindCoordinatorRequest.of_key(transactional_id, TRANSACTION_KEY)
    return _frame(correlation_id, client_id, request)


def find_coordinator_answer(correlation_id: int, answer: bytes) -> Coordinator:
    """Read a response without its size field. Raises DecodeError."""
    found = _read(FindCoordinatorRequest, correlation_id, answer)
    return Coordinator(found.error, BrokerAddress(found.node_id, found.host, found.port))


def describe_transactions_request(correlation_id: int, client_id: str, transactional_ids: Sequence[str]) -> bytes:
    """Return a DescribeTransactions request as a whole frame."""
    request = DescribeTransactionsRequest(transactional_ids=transactional_ids)
    return _frame(correlation_id, client_id, request)


def describe_transactions_answer(correlation_id: int, answer: bytes) -> Sequence[TransactionDescription]:
    """Read a response without its size field. Raises DecodeError."""
    return _read(DescribeTransactionsRequest, correlation_id, answer).transactions


def commit_request(correlation_id: int, client_id: str, transactional_id: str, producer_id: int, epoch: int) -> bytes:
    """Return an EndTxn request that commits, as a whole frame."""
    request = EndTxnRequest(
        transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, is_commit=True
    )
    return _frame(correlation_id, client_id, request)


def commit_answer(correlation_id: int, answer: bytes) -> ErrorCode:
    """Read a response without its size field. Raises DecodeError."""
    return _read(EndTxnRequest, correlation_id, answer).error


def fence_request(correlation_id: int, client_id: str, transactional_id: str) -> bytes:
    """Return an InitProducerId request of a transactional id as a whole frame."""
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=_UNUSED_TIMEOUT_MS)
    return _frame(correlation_id, client_id, request)


def fence_answer(correlation_id: int, answer: bytes) -> ErrorCode:
    """Read a response without its size field. Raises DecodeError."""
    return _read(InitProducerIdRequest, correlation_id, answer).error


def _frame(correlation_id: int, client_id: str, request: Request[Any]) -> bytes:
    return request_frame(VERSIONS[request.api_key], correlation_id, client_id.encode(), request)


def _read(asked: type[Request[S]], correlation_id: int, answer: bytes) -> S:
    return read_answer(asked, VERSIONS[asked.api_key], correlation_id, memoryview(answer))

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
from typing import Any, Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client.fields import known_error
from barnabas.protocol.kafka.client_requests import answer_body, request_frame
from barnabas.protocol.kafka.data.init_producer_id import REQUEST as INIT_PRODUCER_ID
from barnabas.protocol.kafka.hot_fields import NO_TAGS
from barnabas.protocol.kafka.schema import INT8, INT16, INT32, INT64, NULLABLE_STRING, STRING, Array, Message, rows
from barnabas.protocol.kafka.transactions.describe_transactions import REQUEST as DESCRIBE_TRANSACTIONS
from barnabas.protocol.kafka.transactions.end_txn import REQUEST as END_TXN
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.groups.find_coordinator import TRANSACTION_KEY
from barnabas.protocol.messages.nodes import BrokerAddress
from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnTopic
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    TransactionDescription,
)
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest

VERSIONS: Final = {
    ApiKey.FIND_COORDINATOR: 1,
    ApiKey.INIT_PRODUCER_ID: 1,
    ApiKey.END_TXN: 2,
    ApiKey.DESCRIBE_TRANSACTIONS: 0,
}
"""The version in which each request is sent."""

_UNUSED_TIMEOUT_MS: Final = 1000
"""InitProducerId has to name a timeout, here of a producer that begins no transaction; brokers accept a short one."""


class _Key(NamedTuple):
    key: str
    key_type: int = TRANSACTION_KEY


class Coordinator(NamedTuple):
    """The coordinator of a transactional id; `address` means nothing on an error."""

    error: ErrorCode
    address: BrokerAddress


def _coordinator(error: int, node_id: int, host: str, port: int) -> Coordinator:
    return Coordinator(known_error(error), BrokerAddress(node_id, host, port))


def _description(error: int, **fields: Any) -> TransactionDescription:
    return TransactionDescription(error=known_error(error), **fields)


def _descriptions(transactions: list[TransactionDescription]) -> list[TransactionDescription]:
    return transactions


_FIND_COORDINATOR: Final = Message(3, key=STRING, key_type=INT8)
_FOUND: Final = Message(
    3, _coordinator, _throttle_ms=INT32, error=INT16, _message=NULLABLE_STRING, node_id=INT32, host=STRING, port=INT32
)
_DESCRIBED: Final = Message(
    0,
    _descriptions,
    _throttle_ms=INT32,
    transactions=rows(
        _description,
        error=INT16,
        transactional_id=STRING,
        state=STRING,
        timeout_ms=INT32,
        start_time_ms=INT64,
        producer_id=INT64,
        producer_epoch=INT16,
        topics=rows(TxnTopic, name=STRING, partitions=Array(INT32)),
    ),
)
_ENDED: Final = Message(3, known_error, _throttle_ms=INT32, code=INT16)
_INITIALIZED: Final = Message(2, known_error, _throttle_ms=INT32, code=INT16, _producer_id=INT64, _producer_epoch=INT16)


def find_coordinator_request(correlation_id: int, client_id: str, transactional_id: str) -> bytes:
    """Return a FindCoordinator request of a transactional id as a whole frame."""
    return _frame(ApiKey.FIND_COORDINATOR, _FIND_COORDINATOR, correlation_id, client_id, _Key(transactional_id))


def find_coordinator_answer(correlation_id: int, answer: bytes) -> Coordinator:
    """Read a response without its size field. Raises DecodeError."""
    found: Coordinator = _read(ApiKey.FIND_COORDINATOR, _FOUND, correlation_id, answer)
    return found


def describe_transactions_request(correlation_id: int, client_id: str, transactional_ids: Sequence[str]) -> bytes:
    """Return a DescribeTransactions request as a whole frame."""
    request = DescribeTransactionsRequest(list(transactional_ids))
    return _frame(ApiKey.DESCRIBE_TRANSACTIONS, DESCRIBE_TRANSACTIONS, correlation_id, client_id, request)


def describe_transactions_answer(correlation_id: int, answer: bytes) -> list[TransactionDescription]:
    """Read a response without its size field. Raises DecodeError."""
    found: list[TransactionDescription] = _read(ApiKey.DESCRIBE_TRANSACTIONS, _DESCRIBED, correlation_id, answer)
    return found


def commit_request(correlation_id: int, client_id: str, transactional_id: str, producer_id: int, epoch: int) -> bytes:
    """Return an EndTxn request that commits, as a whole frame."""
    request = EndTxnRequest(transactional_id, producer_id, epoch, is_commit=True)
    return _frame(ApiKey.END_TXN, END_TXN, correlation_id, client_id, request)


def commit_answer(correlation_id: int, answer: bytes) -> ErrorCode:
    """Read a response without its size field. Raises DecodeError."""
    error: ErrorCode = _read(ApiKey.END_TXN, _ENDED, correlation_id, answer)
    return error


def fence_request(correlation_id: int, client_id: str, transactional_id: str) -> bytes:
    """Return an InitProducerId request of a transactional id as a whole frame."""
    request = InitProducerIdRequest(transactional_id, transaction_timeout_ms=_UNUSED_TIMEOUT_MS)
    return _frame(ApiKey.INIT_PRODUCER_ID, INIT_PRODUCER_ID, correlation_id, client_id, request)


def fence_answer(correlation_id: int, answer: bytes) -> ErrorCode:
    """Read a response without its size field. Raises DecodeError."""
    error: ErrorCode = _read(ApiKey.INIT_PRODUCER_ID, _INITIALIZED, correlation_id, answer)
    return error


def _frame(api: ApiKey, message: Message, correlation_id: int, client_id: str, request: object) -> bytes:
    version = VERSIONS[api]
    header_tags = NO_TAGS if version >= message.flexible_from else b""
    return request_frame(api, version, correlation_id, client_id, header_tags + message.write(version, request))


def _read(api: ApiKey, message: Message, correlation_id: int, answer: bytes) -> Any:
    version = VERSIONS[api]
    body = answer_body(correlation_id, answer)
    if version >= message.flexible_from:
        body.tagged_fields()
    return message.read(version, memoryview(answer)[body.position :])

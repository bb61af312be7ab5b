"""A client's requests about transactions, and their answers, compared with kio's encoding."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as KioError
from kio.serial import entity_reader

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.kafka import transaction_requests as requests
from barnabas.protocol.messages.nodes import BrokerAddress
from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnTopic
from barnabas.protocol.messages.transactions.describe_transactions import TransactionDescription
from tests.support.kafka.kafka_wire import message_type, read, schema, written


def request_of(api: str, version: int, frame: bytes) -> Any:
    """Return kio's entity of a request frame, after a check of its size and header."""
    kind = message_type(api, version, "request")
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header, size = entity_reader(kind.__header_schema__)(frame[4:], 0)
    assert (header.request_api_key, header.request_api_version) == (kind.__api_key__, version)
    assert (header.correlation_id, header.client_id) == (7, "me")
    return read(kind, frame[4 + size :])


def answer_frame(api: str, version: int, **fields: Any) -> bytes:
    """Return an answer with correlation id 7, without its size."""
    kind = message_type(api, version, "response")
    return written(kind.__header_schema__(correlation_id=7)) + written(kind(throttle_time=timedelta(0), **fields))


def test_find_coordinator() -> None:
    request = request_of("find_coordinator", 1, requests.find_coordinator_request(7, "me", "idé"))
    assert (request.key, request.key_type) == ("idé", 1)
    fields = {"error_message": None, "node_id": 3, "host": "broker", "port": 9093}
    answer = answer_frame("find_coordinator", 1, error_code=KioError.none, **fields)
    found = requests.find_coordinator_answer(7, answer)
    assert found == requests.Coordinator(ErrorCode.NONE, BrokerAddress(3, "broker", 9093))


def test_describe_transactions() -> None:
    frame = requests.describe_transactions_request(7, "me", ["a", "b"])
    assert request_of("describe_transactions", 0, frame).transactional_ids == ("a", "b")
    kio = schema("describe_transactions", 0, "response")
    states = tuple(
        kio.TransactionState(
            error_code=code,
            transactional_id=name,
            transaction_state="Ongoing",
            transaction_timeout=timedelta(milliseconds=60_000),
            transaction_start_time=datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
            producer_id=4001,
            producer_epoch=12,
            topics=(kio.TopicData(topic="t", partitions=(0, 5)),),
        )
        for name, code in (("a", KioError.none), ("b", KioError.transactional_id_not_found))
    )
    found = requests.describe_transactions_answer(
        7, answer_frame("describe_transactions", 0, transaction_states=states)
    )
    topics = [TxnTopic(name="t", partitions=[0, 5])]
    assert found == [
        TransactionDescription(
            transactional_id=name,
            error=code,
            state="Ongoing",
            timeout_ms=60_000,
            start_time_ms=1_700_000_000_000,
            producer_id=4001,
            producer_epoch=12,
            topics=topics,
        )
        for name, code in (("a", ErrorCode.NONE), ("b", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND))
    ]


def test_commit() -> None:
    request = request_of("end_txn", 2, requests.commit_request(7, "me", "id", 1 << 40, 32_766))
    assert (request.transactional_id, request.producer_id, request.producer_epoch) == ("id", 1 << 40, 32_766)
    assert request.committed is True
    for code in (KioError.none, KioError.producer_fenced, KioError.concurrent_transactions):
        assert requests.commit_answer(7, answer_frame("end_txn", 2, error_code=code)) == int(code.value)


def test_fence() -> None:
    request = request_of("init_producer_id", 1, requests.fence_request(7, "me", "id"))
    assert request.transactional_id == "id"
    assert request.transaction_timeout == timedelta(seconds=1)
    ids = {"producer_id": 5, "producer_epoch": 1}
    answer = answer_frame("init_producer_id", 1, error_code=KioError.concurrent_transactions, **ids)
    assert requests.fence_answer(7, answer) is ErrorCode.CONCURRENT_TRANSACTIONS


def test_an_unknown_error_is_an_unknown_server_error() -> None:
    answer = bytearray(answer_frame("end_txn", 2, error_code=KioError.none))
    answer[-2:] = b"\x7f\x00"
    assert requests.commit_answer(7, bytes(answer)) is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("size", range(10))
def test_a_cut_or_foreign_answer_is_a_decode_error(size: int) -> None:
    answer = answer_frame("end_txn", 2, error_code=KioError.none)
    assert len(answer) == 10
    with pytest.raises(DecodeError):
        requests.commit_answer(7, answer[:size])
    with pytest.raises(DecodeError, match="correlation id 7, not 8"):
        requests.commit_answer(8, answer)

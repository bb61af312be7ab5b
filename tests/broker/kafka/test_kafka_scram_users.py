"""DescribeUserScramCredentials against a store whose metadata log carries Kafka's users, and over the wire."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.handlers.cluster.describe_user_scram_credentials import DescribeUserScramCredentialsHandler
from barnabas.broker.metadata.carried import CarriedRecords
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.cluster.describe_user_scram_credentials import encode_response
from barnabas.protocol.messages.cluster.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from barnabas.protocol.metadata.records import UnknownRecord
from barnabas.protocol.primitives import Writer
from tests.support.daemon import Daemon
from tests.support.kafka.kafka_wire import KafkaWire, message_type, read, schema

API = "describe_user_scram_credentials"
SHA_256, SHA_512 = 1, 2
SECRETS = (b"a salt", b"a stored key", b"a server key")


def credential(user: str, mechanism: int, iterations: int) -> UnknownRecord:
    body = Writer().compact_string(user).int8(mechanism)
    for secret in SECRETS:
        body.compact_bytes(secret)
    return UnknownRecord(11, 0, body.int32(iterations).tagged_fields().to_bytes())


def removal(user: str, mechanism: int) -> UnknownRecord:
    return UnknownRecord(22, 0, Writer().compact_string(user).int8(mechanism).tagged_fields().to_bytes())


def described(*users: str) -> tuple[list[Any], bytes]:
    builder = CarriedRecords().builder()
    for record in (
        UnknownRecord(14, 0, b"another kind"),
        UnknownRecord(11, 0, b"\6alice\1"),  # truncated value
        credential("alice", SHA_256, 4096),
        credential("alice", SHA_512, 8192),
        credential("bob", SHA_512, 4096),
        credential("bob", SHA_512, 16384),
        credential("carol", SHA_256, 4096),
        removal("carol", SHA_256),
    ):
        builder.apply(record)
    store = SimpleNamespace(image=SimpleNamespace(carried=builder.build()))
    handler = DescribeUserScramCredentialsHandler(cast(Any, store))
    answer = encode_response(0, handler(cast(Any, None), DescribeUserScramCredentialsRequest(list(users))))
    rows = [
        (each.user, each.error_code, [(info.mechanism, info.iterations) for info in each.credential_infos])
        for each in read(message_type(API, 0, "response"), answer).results
    ]
    return rows, answer


ALICE = ("alice", ErrorCode.NONE, [(SHA_256, 4096), (SHA_512, 8192)])
BOB = ("bob", ErrorCode.NONE, [(SHA_512, 16384)])


def test_users_are_told_with_mechanisms_and_iterations_and_nothing_secret() -> None:
    rows, answer = described()
    assert rows == [ALICE, BOB]
    assert not any(secret in answer for secret in SECRETS)


def test_users_that_are_named_are_told_each_for_itself() -> None:
    rows, _ = described("bob", "carol", "alice", "alice", "dave")
    assert rows == [
        BOB,
        ("carol", ErrorCode.RESOURCE_NOT_FOUND, []),
        ("alice", ErrorCode.DUPLICATE_RESOURCE, []),
        ("dave", ErrorCode.RESOURCE_NOT_FOUND, []),
    ]


@pytest.mark.parametrize("users", [None, ()])
def test_a_broker_without_users_says_so(daemon: Daemon, users: tuple[()] | None) -> None:
    kinds = schema(API, 0, "request")
    with KafkaWire(daemon.host, daemon.port) as kafka:
        answer = kafka.call(API, 0, users=users)
        assert (answer.error_code, answer.error_message, answer.results) == (ErrorCode.NONE, None, ())
        (missing,) = kafka.call(API, 0, users=(kinds.UserName(name="erin"),)).results
    assert (missing.user, missing.error_code) == ("erin", ErrorCode.RESOURCE_NOT_FOUND)
    assert missing.error_message == "Attempt to describe a user credential that does not exist: erin"

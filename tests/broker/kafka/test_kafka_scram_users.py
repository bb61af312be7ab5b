"""DescribeUserScramCredentials against an image with users, and over the wire."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.handlers.cluster.describe_user_scram_credentials import DescribeUserScramCredentialsHandler
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.network.session import Session
from barnabas.config.listeners import Listener
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.security.scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from barnabas.protocol.metadata.security_records import RemoveUserScramCredentialRecord
from tests.support.daemon import Daemon
from tests.support.kafka.kafka_wire import KafkaWire, message_type, read, schema
from tests.support.storage.security_records import SCRAM_SECRETS, quota_record, scram_record
from tests.support.turns import answer_of

API = "describe_user_scram_credentials"
SHA_256, SHA_512 = 1, 2


def described(*users: str) -> tuple[list[Any], bytes]:
    builder = ImageBuilder(MetadataImage())
    for record in (
        quota_record(),
        scram_record("alice", SHA_256, 4096),
        scram_record("alice", SHA_512, 8192),
        scram_record("bob", SHA_512, 4096),
        scram_record("bob", SHA_512, 16384),
        scram_record("carol", SHA_256, 4096),
        RemoveUserScramCredentialRecord("carol", SHA_256),
    ):
        builder.apply(record)
    store = SimpleNamespace(image=builder.build())
    handler = DescribeUserScramCredentialsHandler(cast(Any, store))
    session = Session(Listener("PLAINTEXT", "127.0.0.1", 0))
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users])
    response: DescribeUserScramCredentialsResponse = answer_of(handler(session, request))
    answer = response.encode(0)
    rows = [
        (each.user, each.error_code, [(info.mechanism, info.iterations) for info in each.credential_infos])
        for each in read(message_type(API, 0, "response"), answer).results
    ]
    return rows, answer


ALICE = ("alice", ErrorCode.NONE, [(SHA_256, 4096), (SHA_512, 8192)])
BOB = ("bob", ErrorCode.NONE, [(SHA_512, 16384)])


def test_users_are_described_with_mechanisms_and_iterations_and_no_secret() -> None:
    rows, answer = described()
    assert rows == [ALICE, BOB]
    assert not any(secret in answer for secret in SCRAM_SECRETS)


def test_named_users_are_described_or_refused_one_by_one() -> None:
    rows, _ = described("bob", "carol", "alice", "alice", "dave")
    assert rows == [
        BOB,
        ("carol", ErrorCode.RESOURCE_NOT_FOUND, []),
        ("alice", ErrorCode.DUPLICATE_RESOURCE, []),
        ("dave", ErrorCode.RESOURCE_NOT_FOUND, []),
    ]


@pytest.mark.parametrize("users", [None, ()])
def test_a_broker_without_users_answers_none(daemon: Daemon, users: tuple[()] | None) -> None:
    kinds = schema(API, 0, "request")
    with KafkaWire(daemon.host, daemon.port) as kafka:
        answer = kafka.call(API, 0, users=users)
        assert (answer.error_code, answer.error_message, answer.results) == (ErrorCode.NONE, None, ())
        (missing,) = kafka.call(API, 0, users=(kinds.UserName(name="erin"),)).results
    assert (missing.user, missing.error_code) == ("erin", ErrorCode.RESOURCE_NOT_FOUND)
    assert missing.error_message == "Attempt to describe a user credential that does not exist: erin"

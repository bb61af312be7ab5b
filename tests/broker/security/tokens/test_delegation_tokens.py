"""Delegation tokens through a daemon: creation, login, renewal, expiration, who may do what, and restarts."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.sasl.plain import PLAIN, PlainClient
from barnabas.protocol.sasl.scram_client import ScramClient
from barnabas.protocol.sasl.scram_keys import SALT_BYTES, SCRAM_SHA_512
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually
from tests.support.kafka.kafka_wire import KafkaWire, message_type, schema
from tests.support.kafka.sasl_wire import SaslWire

SETTINGS = (
    "listeners=SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config="
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="a" user_bob="b" user_carol="c";',
    "connection.failed.authentication.delay.ms=0",
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:carol",
    "allow.everyone.if.no.acl.found=false",
)
KEYS = ("delegation.token.secret.key=canary-secret", "delegation.token.max.lifetime.ms=3600000")
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("broker"), *SETTINGS, *KEYS) as running:
        yield running


@contextmanager
def logged_in(daemon: Daemon, user: str) -> Iterator[SaslWire]:
    with SaslWire(daemon.host, daemon.port) as wire:
        assert wire.login(PLAIN, PlainClient(user, user[0])).error_code == 0
        yield wire


def create(
    wire: KafkaWire | Refused,
    *,
    owner: str | None = None,
    renewers: tuple[str, ...] = (),
    lifetime_ms: int = -1,
    owner_type: str = "User",
) -> Any:
    kio = schema("create_delegation_token", 3, "request")
    return wire.call(
        "create_delegation_token",
        3,
        owner_principal_type=None if owner is None else owner_type,
        owner_principal_name=owner,
        renewers=tuple(kio.CreatableRenewers(principal_type="User", principal_name=each) for each in renewers),
        max_lifetime=timedelta(milliseconds=lifetime_ms),
    )


def renew(wire: KafkaWire | Refused, hmac: bytes, period_ms: int = -1) -> Any:
    return wire.call("renew_delegation_token", 2, hmac=hmac, renew_period=timedelta(milliseconds=period_ms))


def expire(wire: KafkaWire, hmac: bytes, period_ms: int = -1) -> Any:
    return wire.call("expire_delegation_token", 2, hmac=hmac, expiry_time_period=timedelta(milliseconds=period_ms))


def described(wire: KafkaWire, *owners: str) -> list[str]:
    kio = schema("describe_delegation_token", 3, "request")
    named = tuple(kio.DescribeDelegationTokenOwner(principal_type="User", principal_name=each) for each in owners)
    answer = wire.call("describe_delegation_token", 3, owners=named or None)
    assert answer.error_code == 0
    return [token.token_id for token in answer.tokens]


def login_with(daemon: Daemon, token: Any) -> tuple[SaslWire, Any]:
    wire = SaslWire(daemon.host, daemon.port)
    password = base64.b64encode(token.hmac).decode()
    return wire, wire.login("SCRAM-SHA-512", ScramClient(SCRAM_SHA_512, token.token_id, password, is_token=True))


class Refused:
    """A wire whose next answer is read for its error code only: kio takes no timestamp of -1."""

    def __init__(self, wire: KafkaWire) -> None:
        self._wire = wire

    def call(self, api: str, version: int, **fields: Any) -> ErrorCode:
        self._wire.send(message_type(api, version, "request")(**fields))
        return ErrorCode(int.from_bytes(self._wire.receive_frame()[5:7], "big"))


def milliseconds(moment: Any) -> int:
    return int(moment.timestamp() * 1000 + 0.5)


def test_a_token_logs_in_as_its_owner_until_it_expires(daemon: Daemon) -> None:
    with logged_in(daemon, "alice") as alice:
        token = create(alice, lifetime_ms=HOUR_MS // 2)
        assert token.error_code == 0
        assert (token.principal_name, token.token_requester_principal_name) == ("alice", "alice")
        assert milliseconds(token.max_timestamp) - milliseconds(token.issue_timestamp) == HOUR_MS // 2
        wire, answer = login_with(daemon, token)
        with wire:
            assert answer.error_code == 0
            assert 0 < answer.session_lifetime.total_seconds() <= HOUR_MS / 2000
            # A token's client may not create, renew or see tokens.
            assert create(Refused(wire)) == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            assert renew(Refused(wire), token.hmac) == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert expire(alice, token.hmac).error_code == 0
        wire, answer = login_with(daemon, token)
        wire.socket.close()
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_the_owner_is_a_user_because_the_tokens_client_is_one(daemon: Daemon) -> None:
    """A right to create tokens of Role:alice, or of all but User:alice, would make somebody User:alice."""
    with logged_in(daemon, "carol") as carol:
        refused = create(Refused(carol), owner="alice", owner_type="Role")
        assert refused == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_owner_renewer_and_others(daemon: Daemon) -> None:
    with logged_in(daemon, "alice") as alice, logged_in(daemon, "bob") as bob, logged_in(daemon, "carol") as carol:
        assert create(Refused(alice), owner="bob") == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        token = create(carol, owner="alice", renewers=("bob",))
        assert (token.error_code, token.principal_name) == (0, "alice")
        own = create(alice)
        assert renew(bob, token.hmac).error_code == 0
        assert renew(bob, own.hmac).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert expire(carol, own.hmac).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert renew(alice, b"unknown").error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        assert token.token_id in described(bob)
        assert own.token_id not in described(bob)
        assert own.token_id in described(carol)
        assert described(carol, "bob") == [token.token_id]
        assert described(carol, "nobody") == []
        renewed = renew(alice, own.hmac, 1000)
        assert milliseconds(renewed.expiry_timestamp) < milliseconds(own.expiry_timestamp)
        for each in (token, own):
            assert expire(alice, each.hmac).error_code == 0
        assert described(carol) == []


def test_the_salt_tells_neither_users_nor_tokens(daemon: Daemon) -> None:
    with logged_in(daemon, "alice") as alice:
        token = create(alice)
        sizes = set()
        for name, extension in ((token.token_id, ",tokenauth=true"), ("nothing", ",tokenauth=true"), ("nobody", "")):
            with SaslWire(daemon.host, daemon.port) as wire:
                assert wire.call("sasl_handshake", 1, mechanism="SCRAM-SHA-512").error_code == 0
                first = f"n,,n={name},r=nonce{extension}".encode()
                answer = wire.call("sasl_authenticate", 2, auth_bytes=first)
                salt = answer.auth_bytes.decode().split(",s=")[1].split(",")[0]
                sizes.add(len(base64.b64decode(salt)))
        assert sizes == {SALT_BYTES}
        assert expire(alice, token.hmac).error_code == 0


def test_a_renewer_without_a_name_hides_no_tokens(daemon: Daemon) -> None:
    with logged_in(daemon, "alice") as alice, logged_in(daemon, "carol") as carol:
        token = create(alice, renewers=("",))
        assert token.error_code == 0
        assert token.token_id in described(alice)
        assert token.token_id in described(carol)
        assert expire(alice, token.hmac).error_code == 0


def test_plaintext_clients_have_no_tokens(daemon: Daemon) -> None:
    found = re.search(r"listener=PLAINTEXT://\S+ port=(\d+)", daemon.log)
    assert found is not None
    with KafkaWire(daemon.host, int(found[1])) as wire:
        assert create(Refused(wire)) == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        answer = wire.call("describe_delegation_token", 3, owners=None)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_tokens_survive_a_kill_and_expired_ones_are_swept(tmp_path: Path) -> None:
    with start_daemon(tmp_path, *SETTINGS, *KEYS) as daemon:
        with logged_in(daemon, "alice") as alice:
            kept = create(alice)
            short = create(alice, lifetime_ms=1)
        # Not before: a kill between the removal and its line would leave no line.
        daemon.settings["delegation.token.expiry.check.interval.ms"] = 50
        daemon.restart(clean=False)
        with logged_in(daemon, "alice") as alice:
            while (found := described(alice)) != [kept.token_id]:
                assert set(found) == {kept.token_id, short.token_id}
        wire, answer = login_with(daemon, kept)
        wire.socket.close()
        assert answer.error_code == 0
        line = f"delegation token expired, token_id={short.token_id} owner=User:alice"
        eventually(lambda: line in daemon.log, what=line, timeout_s=30)
        assert "canary-secret" not in daemon.log


def test_without_a_secret_key_tokens_are_disabled(tmp_path: Path) -> None:
    with start_daemon(tmp_path, *SETTINGS) as daemon, logged_in(daemon, "alice") as alice:
        assert create(alice).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        assert renew(alice, b"x").error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        answer = alice.call("describe_delegation_token", 3, owners=None)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED

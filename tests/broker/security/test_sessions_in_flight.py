"""Sessions that end, and clients that authenticate again, while requests are in flight."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.sasl.oauthbearer import OAuthBearerClient
from barnabas.protocol.sasl.plain import PLAIN, PlainClient
from barnabas.protocol.sasl.scram_client import ScramClient
from barnabas.protocol.sasl.scram_keys import SCRAM_SHA_512
from tests.broker.security.oauth.test_oauth_listener import HANDLER, write_keys
from tests.broker.security.tokens.test_delegation_tokens import create
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually
from tests.support.kafka.kafka_wire import answer_of, fetch_request, message_type, produce_request, request_frame
from tests.support.kafka.kafka_wire import metadata_request as metadata
from tests.support.kafka.sasl_wire import SaslWire
from tests.support.storage.records import plain

KEY = ec.generate_private_key(ec.SECP256R1())
LONG = "listener.name.sasl_plaintext."
SHORT = "listener.name.short."
USERS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="a" user_bob="b" user_carol="c";'
SESSION_MS = 1000


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    directory = tmp_path_factory.mktemp("broker")
    keys = write_keys(directory / "keys.json", key=KEY)
    with start_daemon(
        directory,
        "listeners=SASL_PLAINTEXT://127.0.0.1:0,SHORT://127.0.0.1:0",
        "listener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,SHORT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512,OAUTHBEARER",
        f"{LONG}plain.sasl.jaas.config={USERS}",
        f"{LONG}oauthbearer.sasl.server.callback.handler.class={HANDLER}",
        f"{LONG}oauthbearer.sasl.oauthbearer.jwks.endpoint.url={keys}",
        f"{LONG}oauthbearer.sasl.oauthbearer.expected.audience=kafka",
        f"{SHORT}sasl.enabled.mechanisms=PLAIN",
        f"{SHORT}plain.sasl.jaas.config={USERS}",
        f"{SHORT}connections.max.reauth.ms={SESSION_MS}",
        "connection.failed.authentication.delay.ms=0",
        "delegation.token.secret.key=canary-secret",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:alice;User:carol",
    ) as running:
        yield running


@pytest.fixture(scope="module")
def carol(daemon: Daemon) -> Iterator[SaslWire]:
    """A super user whose session does not end."""
    with log_in(daemon, "carol") as wire:
        yield wire


def short_port(daemon: Daemon) -> int:
    (port,) = re.findall(r"listening, listener=SHORT\S+ port=(\d+)", daemon.log)
    return int(port)


def log_in(daemon: Daemon, user: str, *, is_short: bool = False) -> SaslWire:
    wire = SaslWire(daemon.host, short_port(daemon) if is_short else daemon.port)
    assert wire.login(PLAIN, PlainClient(user, user[0])).error_code == 0
    return wire


def log_in_by_oauth(daemon: Daemon) -> SaslWire:
    """Log in with a token that ends in one to two seconds: its end has whole seconds."""
    now = int(time.time())
    claims = {"sub": "alice", "iss": "https://idp", "aud": "kafka", "iat": now, "exp": now + 2}
    wire = SaslWire(daemon.host, daemon.port)
    assert wire.login("OAUTHBEARER", OAuthBearerClient(jwt.encode(claims, KEY, "ES256"))).error_code == 0
    return wire


def log_in_by_token(daemon: Daemon, carol: SaslWire) -> SaslWire:
    """Log in with a delegation token that ends in a second."""
    token = create(carol, lifetime_ms=SESSION_MS)
    assert token.error_code == 0
    wire = SaslWire(daemon.host, daemon.port)
    client = ScramClient(SCRAM_SHA_512, token.token_id, base64.b64encode(token.hmac).decode(), is_token=True)
    assert wire.login("SCRAM-SHA-512", client).error_code == 0
    return wire


def log_in_for_a_short_session(daemon: Daemon, carol: SaslWire, kind: str) -> SaslWire:
    if kind == "OAUTHBEARER":
        return log_in_by_oauth(daemon)
    return log_in_by_token(daemon, carol) if kind == "token" else log_in(daemon, "alice", is_short=True)


def await_end(daemon: Daemon, carol: SaslWire, kind: str) -> None:
    """Return once a session that begins now in the same way is over."""
    with log_in_for_a_short_session(daemon, carol, kind) as probe:

        def is_over() -> bool | None:
            try:
                probe.topic_id("in-flight")
            except ConnectionError:
                return True
            return None

        eventually(is_over, what="the end of a session")


@pytest.mark.parametrize("kind", ["OAUTHBEARER", "token", "connections.max.reauth.ms"])
def test_a_fetch_that_waits_beyond_the_end_of_its_session_is_answered_and_the_next_request_is_not(
    daemon: Daemon, carol: SaslWire, kind: str
) -> None:
    topic = f"waits-{kind.lower().replace('.', '-')}"
    carol.topic_id(topic)
    carol.topic_id("in-flight")
    with log_in_for_a_short_session(daemon, carol, kind) as wire:
        fetch = request_frame(fetch_request(12, topic, 0, max_wait_ms=60_000), 1)
        late = request_frame(produce_request(9, topic, bytes(plain(1))), 2)
        wire.socket.sendall(fetch + late)
        await_end(daemon, carol, kind)
        assert carol.produce(9, topic, bytes(plain(1))).error_code == 0
        correlation_id, answer = answer_of("fetch", 12, wire.receive_frame())
        assert correlation_id == 1
        assert answer.responses[0].partitions[0].records is not None
        assert wire.is_closed_by_broker()
    assert carol.list_offset(7, topic, -1).offset == 1  # the late request has stored nothing


def test_each_request_that_was_stored_before_the_end_of_a_session_is_answered(daemon: Daemon, carol: SaslWire) -> None:
    carol.topic_id("streamed")
    frame = request_frame(produce_request(9, "streamed", bytes(plain(1))), 1)
    answered = 0
    with log_in(daemon, "alice", is_short=True) as wire:
        with suppress(ConnectionError):
            while True:
                wire.socket.sendall(frame * 5)
                for _ in range(5):
                    wire.receive_frame()
                    answered += 1
    assert answered > 0
    assert carol.list_offset(7, "streamed", -1).offset == answered


def reauthentication(user: str) -> bytes:
    """Return the frames of a login that does not wait for its answers."""
    handshake = message_type("sasl_handshake", 1, "request")(mechanism="PLAIN")
    message = message_type("sasl_authenticate", 2, "request")(auth_bytes=f"\0{user}\0{user[0]}".encode())
    return request_frame(handshake, 2) + request_frame(message, 3)


def test_another_principal_is_refused_after_a_waiting_fetch_and_gets_nothing(daemon: Daemon, carol: SaslWire) -> None:
    carol.topic_id("changed")
    with log_in(daemon, "alice", is_short=True) as wire:
        fetch = request_frame(fetch_request(12, "changed", 0, max_wait_ms=60_000), 1)
        produce = request_frame(produce_request(9, "changed", bytes(plain(1))), 4)
        wire.socket.sendall(fetch + reauthentication("bob") + produce)
        assert carol.produce(9, "changed", bytes(plain(1))).error_code == 0
        assert answer_of("fetch", 12, wire.receive_frame())[1].responses[0].partitions[0].records is not None
        assert answer_of("sasl_handshake", 1, wire.receive_frame())[1].error_code == 0
        refused: Any = answer_of("sasl_authenticate", 2, wire.receive_frame())[1]
        assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert refused.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
        assert wire.is_closed_by_broker()
    assert carol.list_offset(7, "changed", -1).offset == 1


def test_the_same_principal_is_served_on_after_a_waiting_fetch(daemon: Daemon, carol: SaslWire) -> None:
    carol.topic_id("renewed")
    with log_in(daemon, "alice", is_short=True) as wire:
        fetch = request_frame(fetch_request(12, "renewed", 0, max_wait_ms=60_000), 1)
        wire.socket.sendall(fetch + reauthentication("alice") + request_frame(metadata(12, "renewed"), 4))
        await_end(daemon, carol, "connections.max.reauth.ms")
        assert carol.produce(9, "renewed", bytes(plain(1))).error_code == 0
        assert answer_of("fetch", 12, wire.receive_frame())[1].responses[0].partitions[0].records is not None
        assert answer_of("sasl_handshake", 1, wire.receive_frame())[1].error_code == 0
        assert answer_of("sasl_authenticate", 2, wire.receive_frame())[1].error_code == 0
        assert answer_of("metadata", 12, wire.receive_frame())[1].topics[0].error_code == 0

"""Sessions that end (KIP-368): lifetimes, re-authentication, and connections that are closed for want of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from barnabas.broker.security.sasl.session_lifetime import session_lifetime_ms
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.sasl.scram_client import ScramClient
from barnabas.protocol.sasl.scram_keys import SCRAM_SHA_256
from tests.support.sasl import DELAY_SECONDS, GatedListener, GatedPeer

LIFETIME_MS = 5_000
PLAIN = {("SECURE", "PLAIN"): 1}


@pytest.fixture
def server() -> Iterator[GatedListener]:
    listener = GatedListener(max_reauth_ms=LIFETIME_MS)
    yield listener
    listener.loop.close()


@pytest.fixture
def peer(server: GatedListener) -> GatedPeer:
    return server.connect()


@pytest.mark.parametrize(
    ("max_reauth_ms", "expires_at_ms", "lifetime_ms"),
    [
        (0, None, None),
        (-1, None, None),
        (500, None, 500),
        (0, 1_300, 300),
        (500, 1_300, 300),
        (200, 1_300, 200),
        (0, 900, 0),
        (500, 900, 0),
        (500, 1_000, 0),
    ],
)
def test_the_lifetime_is_the_lesser_of_what_is_set(
    max_reauth_ms: int, expires_at_ms: int | None, lifetime_ms: int | None
) -> None:
    assert session_lifetime_ms(max_reauth_ms, expires_at_ms, 1_000) == lifetime_ms


def test_a_client_is_told_the_lifetime_of_its_session(peer: GatedPeer) -> None:
    assert peer.log_in().session_lifetime == timedelta(milliseconds=LIFETIME_MS)


def test_a_request_after_the_end_closes_the_connection_without_an_answer(
    server: GatedListener, peer: GatedPeer
) -> None:
    peer.log_in()
    peer.loop.pass_time(LIFETIME_MS - 1)
    assert peer.metadata() is not None
    peer.loop.pass_time(2)
    assert not peer.is_closed()
    assert peer.metadata() is None
    assert peer.is_closed()
    assert server.served == ["metadata as User:alice"]
    assert server.probes.authentications.expired == PLAIN


def test_a_client_that_reauthenticates_stays_connected(server: GatedListener, peer: GatedPeer) -> None:
    peer.log_in()
    for _ in range(3):
        peer.loop.pass_time(LIFETIME_MS - 500)
        assert peer.log_in().session_lifetime == timedelta(milliseconds=LIFETIME_MS)
        assert peer.metadata() is not None
    peer.loop.pass_time(LIFETIME_MS + 1)
    assert peer.log_in().error_code.value == 0  # late, but before any other request
    assert peer.metadata() is not None
    assert server.probes.authentications.succeeded == PLAIN
    assert server.probes.authentications.succeeded_again == {("SECURE", "PLAIN"): 4}


def test_a_native_client_reauthenticates(peer: GatedPeer) -> None:
    def log_in() -> Any:
        assert peer.native_handshake("PLAIN") is not None
        answer = peer.native_authenticate(b"\0alice\0pencil")
        assert answer is not None
        return answer["session_lifetime_ms"]

    assert log_in() == LIFETIME_MS
    peer.loop.pass_time(LIFETIME_MS - 500)
    assert log_in() == LIFETIME_MS
    peer.loop.pass_time(LIFETIME_MS - 500)
    assert peer.native(ApiKey.METADATA, topics=None) is not None
    peer.loop.pass_time(LIFETIME_MS)
    assert peer.native(ApiKey.METADATA, topics=None) is None
    assert peer.is_closed()


def test_a_second_reauthentication_within_a_second_is_refused(peer: GatedPeer) -> None:
    peer.log_in()
    peer.log_in()
    peer.loop.pass_time(999)
    assert peer.handshake("PLAIN").error_code.value == ErrorCode.ILLEGAL_SASL_STATE
    peer.loop.pass_time(1)
    assert peer.log_in().error_code.value == 0


def test_the_user_must_stay_the_same(server: GatedListener, peer: GatedPeer) -> None:
    peer.log_in()
    assert peer.log_in("bob", "bob's secret") is None
    peer.loop.pass_time(round(DELAY_SECONDS * 1000))
    answer = peer.kafka_answer("sasl_authenticate", 2)
    assert answer.error_code.value == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert peer.is_closed()
    assert server.authenticated == ["User:alice"]
    assert server.probes.authentications.failed_again == PLAIN


def test_the_mechanism_must_stay_the_same(server: GatedListener, peer: GatedPeer) -> None:
    peer.log_in()
    assert peer.handshake("SCRAM-SHA-256").error_code.value == 0
    assert peer.authenticate(b"n,,n=alice,r=x") is None
    peer.loop.pass_time(round(DELAY_SECONDS * 1000))
    assert peer.is_closed()
    assert not peer.received()
    assert server.probes.authentications.failed_again == PLAIN


def test_a_wrong_password_ends_an_authenticated_connection(server: GatedListener, peer: GatedPeer) -> None:
    peer.log_in()
    assert peer.log_in(password="wrong") is None
    peer.loop.pass_time(round(DELAY_SECONDS * 1000))
    assert peer.kafka_answer("sasl_authenticate", 2).error_code.value == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert peer.is_closed()


def test_a_reauthentication_is_limited_in_time_and_size(server: GatedListener, peer: GatedPeer) -> None:
    other = server.connect()
    for each in (peer, other):
        each.log_in()
        assert each.handshake("PLAIN").error_code.value == 0
    other.send((1 << 20).to_bytes(4, "big"))
    assert other.is_closed()
    peer.loop.pass_time(30_001)
    assert peer.is_closed()


def test_nothing_but_the_exchange_is_served_during_a_reauthentication(server: GatedListener, peer: GatedPeer) -> None:
    peer.log_in()
    peer.handshake("PLAIN")
    assert peer.metadata() is None
    peer.loop.pass_time(round(DELAY_SECONDS * 1000))
    assert peer.is_closed()
    assert not server.served


def log_in_with_token(peer: GatedPeer) -> Any:
    client = ScramClient(SCRAM_SHA_256, "token", "hmac", is_token=True)
    peer.handshake("SCRAM-SHA-256")
    final = client.respond(peer.authenticate(client.start()).auth_bytes)
    assert final is not None
    return peer.authenticate(final)


def test_a_token_limits_the_session_without_a_property() -> None:
    server = GatedListener(max_reauth_ms=0)
    peer = server.connect()
    assert log_in_with_token(peer).session_lifetime == timedelta(seconds=2)
    assert server.authenticated == ["User:alice"]
    assert peer.connection.session.token_authenticated
    peer.loop.pass_time(1_999)
    assert peer.metadata() is not None
    peer.loop.pass_time(2)
    assert peer.metadata() is None
    assert peer.is_closed()

    late = server.connect()
    assert log_in_with_token(late).session_lifetime == timedelta(0)
    late.loop.pass_time(1)
    assert late.metadata() is None
    assert late.is_closed()
    server.loop.close()

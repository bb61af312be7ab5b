"""OAUTHBEARER: messages as in Kafka and RFC 7628, refused tokens, and hostile first messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.sasl.exchange import Challenge, Failure, SaslError, Success, Work
from barnabas.protocol.sasl.oauthbearer import (
    MAX_TOKEN_CHARACTERS,
    AcceptedToken,
    FirstMessage,
    OAuthBearerClient,
    OAuthBearerServer,
    RefusedToken,
    parse_first_message,
)

ACCEPTED = AcceptedToken("alice", 1_000)


def validate(token: str) -> AcceptedToken | RefusedToken:
    return ACCEPTED if token == "good" else RefusedToken("the token has expired")


def exchange(server: OAuthBearerServer, data: bytes) -> Success | Failure | Challenge | Work:
    step = server.respond(data)
    return server.resume(step.run()) if isinstance(step, Work) else step


def test_client_and_server_agree() -> None:
    client = OAuthBearerClient("good")
    step = exchange(OAuthBearerServer(validate), client.start())
    assert step == Success(b"", "alice", 1_000)
    assert client.respond(step.data) is None
    assert client.is_complete


def test_a_refused_token_is_a_challenge_that_the_client_ends() -> None:
    client = OAuthBearerClient("old")
    server = OAuthBearerServer(validate)
    challenge = exchange(server, client.start())
    assert challenge == Challenge(b'{"status":"invalid_token"}')
    answer = client.respond(challenge.data)
    assert answer == b"\x01"
    assert not client.is_complete
    assert server.respond(answer) == Failure("the token has expired", '{"status":"invalid_token"}')


def test_a_client_may_try_another_token_after_the_challenge() -> None:
    server = OAuthBearerServer(validate)
    exchange(server, OAuthBearerClient("old").start())
    assert isinstance(exchange(server, OAuthBearerClient("good").start()), Success)


@pytest.mark.parametrize("identity", ["alice", "bob"])
def test_an_authorization_id_must_be_the_subject(identity: str) -> None:
    step = exchange(OAuthBearerServer(validate), b"n,a=%s,\x01auth=Bearer good\x01\x01" % identity.encode())
    if identity == "alice":
        assert isinstance(step, Success)
    else:
        assert isinstance(step, Failure)
        assert step.public == (
            "Authentication failed: Client requested an authorization id (bob) that is different from the token's "
            "principal name (alice)"
        )


def test_extensions_and_the_scheme_in_any_case_are_accepted() -> None:
    message = b"n,,\x01trace=a b\x01auth=bEARER  a.b-c_~+/==\x01\x01"
    assert parse_first_message(message) == FirstMessage("a.b-c_~+/==", "")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Basic good\x01\x01",
        b"n,,\x01auth=Bearer good\x01",
        b"y,,\x01auth=Bearer good\x01\x01",
        b"n,a=,\x01auth=Bearer good\x01\x01",
        b"n,,\x01a1=x\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer good\x01\x01x",
        b"n,,\x01auth=Bearer go od\x01\x01",
        b"n,,\x01auth=Bearer " + b"x" * (MAX_TOKEN_CHARACTERS + 1) + b"\x01\x01",
        b"n,,\x01auth=Bearer " + b"x" * (3 * MAX_TOKEN_CHARACTERS) + b"\x01\x01",
    ],
)
def test_malformed_messages_fail_without_a_sentence_for_the_client(message: bytes) -> None:
    step = OAuthBearerServer(validate).respond(message)
    assert isinstance(step, Failure)
    assert step.public is None
    assert len(step.reason) < 80


@given(st.binary(max_size=200) | st.binary(max_size=40).map(lambda each: b"n,,\x01auth=Bearer " + each + b"\x01\x01"))
def test_any_bytes_are_a_step(data: bytes) -> None:
    assert isinstance(exchange(OAuthBearerServer(validate), data), Success | Failure | Challenge)


@pytest.mark.parametrize("token", ["", "a b", "a\x01", "a\n"])
def test_a_client_refuses_what_is_no_token(token: str) -> None:
    with pytest.raises(SaslError, match="not a bearer token"):
        OAuthBearerClient(token)

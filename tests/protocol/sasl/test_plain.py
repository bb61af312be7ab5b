"""PLAIN: Kafka's order of checks and Kafka's texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.sasl.exchange import Failure, SaslError, Success
from barnabas.protocol.sasl.plain import PlainClient, PlainServer


def server() -> PlainServer:
    return PlainServer(lambda user, password: (user, password) == ("alice", "pencil"))


@pytest.mark.parametrize(
    ("message", "public"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0pencil\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"a\0b\0c\0d\0e\0f", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0pencil", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0alice\0pen", "Authentication failed: Invalid username or password"),
        (b"\0bob\0pencil", "Authentication failed: Invalid username or password"),
        (b"bob\0alice\0pen", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0pencil",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"\0alice\0\xff\xfe", "Authentication failed: Invalid username or password"),
    ],
)
def test_refusals_have_the_texts_of_kafka(message: bytes, public: str) -> None:
    step = server().respond(message)
    assert isinstance(step, Failure)
    assert step.public == public


@pytest.mark.parametrize("identity", ["", "alice"])
def test_the_right_password_authenticates_the_user(identity: str) -> None:
    assert server().respond(f"{identity}\0alice\0pencil".encode()) == Success(b"", "alice")


def test_the_client_is_understood_by_the_server() -> None:
    client = PlainClient("alice", "pencil")
    step = server().respond(client.start())
    assert isinstance(step, Success)
    assert client.respond(step.data) is None
    assert client.is_complete


def test_a_client_refuses_names_that_would_be_read_as_others() -> None:
    for user, password in (("", "x"), ("a\0b", "x"), ("a", "x\0y")):
        with pytest.raises(SaslError, match="NUL"):
            PlainClient(user, password)


@given(st.binary(max_size=200))
def test_no_message_raises_or_is_quoted_in_the_log(message: bytes) -> None:
    step = server().respond(message)
    assert isinstance(step, Failure)
    assert step.reason in {
        "the PLAIN message is malformed",
        "the user name is empty",
        "the password is empty",
        "wrong user or password",
    }

"""OAUTHBEARER beside Apache Kafka: the same tokens get the same bytes, and clients report the same failures.

Not compared: a scheme other than Bearer, for which Kafka 4.3.0 closes the connection without an answer
(OAuthBearerClientInitialResponse reads a group that its pattern lacks), while Barnabas answers that the login failed.
"""

from __future__ import annotations

import socket
import ssl
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import jwt
import pytest

from tests.interop.clients import building
from tests.interop.clients.driver import Driver, DriverError, Limits
from tests.interop.clients.errors import essence
from tests.interop.clients.security import SECURE, Development, Login, SecureBroker, secure_barnabas, secure_kafka
from tests.support.kafka.kafka_wire import message_type, request_frame

pytestmark = pytest.mark.timeout(300)

CLOSED = b"closed"
HOUR_S = 3600
CLIENTS: dict[str, Callable[[], list[str]]] = {
    "Java 4.3.0": lambda: building.java("4.3.0", "Secure"),
    "confluent-kafka": lambda: [sys.executable, "-m", "tests.interop.clients.python.secure", "confluent"],
}
Claims = dict[str, Any]


def without(name: str) -> Callable[[Claims], Claims]:
    """Return a change that removes a claim."""
    return lambda claims: {key: value for key, value in claims.items() if key != name}


def having(**changed: Any) -> Callable[[Claims], Claims]:
    """Return a change of claims."""
    return lambda claims: {**claims, **changed}


def later(name: str, seconds: int) -> Callable[[Claims], Claims]:
    """Return a change of a time."""
    return lambda claims: {**claims, name: claims[name] + seconds}


CLAIMS: Mapping[str, Callable[[Claims], Claims]] = {
    "valid": having(),
    "expired": later("exp", -HOUR_S),
    "not valid yet": lambda claims: {**claims, "nbf": claims["exp"] - 60},
    "wrong audience": having(aud="other"),
    "several audiences": having(aud=["other", "kafka"]),
    "no audience": without("aud"),
    "wrong issuer": having(iss="https://other.example"),
    "no issuer": without("iss"),
    "no expiration": without("exp"),
    "no issue time": without("iat"),
    "no subject": without("sub"),
    "empty subject": having(sub=""),
    "subject is a number": having(sub=7),
    "scope": having(scope="a"),
    "scopes": having(scope=["a", "b"]),
    "blank scope": having(scope=" "),
    "repeated scope": having(scope=["a", "a"]),
    "scope is a number": having(scope=7),
    "scope is null": having(scope=None),
    "scope is an object": having(scope={"a": "b"}),
    "no scopes": having(scope=[]),
}
"""Changes of a valid token, which has no scope."""


@pytest.fixture(scope="module")
def development(tmp_path_factory: pytest.TempPathFactory) -> Development:
    return Development(tmp_path_factory.mktemp("development"))


@pytest.fixture(scope="module")
def brokers(
    development: Development, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SecureBroker, SecureBroker]]:
    """Apache Kafka and Barnabas, with the same keys."""
    with ExitStack() as stack:
        theirs = stack.enter_context(secure_kafka(development, tmp_path_factory.mktemp("kafka")))
        yield theirs, stack.enter_context(secure_barnabas(development, tmp_path_factory.mktemp("barnabas")))


class Peer:
    """A TLS connection that records the bytes of every answer."""

    def __init__(self, port: int, ca: str) -> None:
        context = ssl.create_default_context(cafile=ca)
        plain = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._socket = context.wrap_socket(plain, server_hostname="127.0.0.1")
        self.answers: list[bytes] = []

    def close(self) -> None:
        self._socket.close()

    def authenticate(self, message: bytes) -> None:
        """Record the answer, without a session's lifetime, which shrinks."""
        answer = self.call("sasl_authenticate", 2, auth_bytes=message)
        if answer != CLOSED:
            # Error code 0: the lifetime, 8 bytes, and empty tags are the end.
            answer = answer[:-9] if answer[9:11] == b"\0\0" else answer
        self.answers.append(answer)

    def is_served(self) -> None:
        """Record whether a request is served, and otherwise its answer."""
        answer = self.call("metadata", 4, topics=(), allow_auto_topic_creation=False)
        self.answers.append(answer if answer == CLOSED else b"served")

    def call(self, api: str, version: int, **fields: Any) -> bytes:
        """Return the answer with its size, CLOSED if the connection ends."""
        try:
            self._socket.sendall(request_frame(message_type(api, version, "request")(**fields), 7))
            data = b""
            while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
                piece = self._socket.recv(65536)
                if not piece:
                    return CLOSED
                data += piece
        except (ConnectionError, ssl.SSLEOFError):
            return CLOSED
        return data


def first_message(token: str, identity: str = "") -> bytes:
    """Return a client's first message."""
    return f"n,{identity},\1auth=Bearer {token}\1\1".encode()


def signed(development: Development, change: Callable[[Claims], Claims], key: Any = None) -> str:
    """Return a token with changed claims."""
    claims = change(jwt.decode(development.bearer().token or "", options={"verify_signature": False}))
    return jwt.encode(claims, key or development.signing_key, "RS256", headers={"kid": "test"})


def messages(development: Development) -> dict[str, bytes]:
    """Return the first messages of the comparison."""
    valid = development.bearer().token or ""
    claims = jwt.decode(valid, options={"verify_signature": False})
    head, body, signature = valid.split(".")
    other = Development.new_signing_key()
    return {
        **{name: first_message(signed(development, change)) for name, change in CLAIMS.items()},
        "unsigned": first_message(jwt.encode(claims, "", "none")),
        "unsigned, with the key's name": first_message(jwt.encode(claims, "", "none", headers={"kid": "test"})),
        "another key": first_message(signed(development, having(), other)),
        "unknown key": first_message(jwt.encode(claims, development.signing_key, "RS256", headers={"kid": "other"})),
        "changed signature": first_message(f"{head}.{body}.{signature[:-8]}AAAAAAAA"),
        "no signature": first_message(f"{head}.{body}."),
        "two parts": first_message(f"{head}.{body}"),
        "no token": first_message(""),
        "not a token": first_message("x.y.z"),
        "same identity": first_message(valid, "a=dave"),
        "other identity": first_message(valid, "a=alice"),
        "extension": f"n,,\1auth=Bearer {valid}\1trace=1\1\1".encode(),
        "extension without a value": f"n,,\1auth=Bearer {valid}\1trace=\1\1".encode(),
        "reserved extension": f"n,,\1auth=Bearer {valid}\1auth=again\1\1".encode(),
        "no end": f"n,,\1auth=Bearer {valid}\1".encode(),
        "empty message": b"",
        "only control A": b"\1",
    }


def test_answers_are_those_of_kafka(brokers: tuple[SecureBroker, SecureBroker], development: Development) -> None:
    differences = {}
    for name, message in messages(development).items():
        answers = []
        for broker in brokers:
            peer = Peer(broker.ports[SECURE], development.ca)
            peer.call("sasl_handshake", 1, mechanism="OAUTHBEARER")
            peer.authenticate(message)
            if b"invalid_token" in peer.answers[-1]:
                peer.authenticate(b"\1")  # the client's end of a refused exchange
            peer.is_served()
            peer.close()
            answers.append(peer.answers)
        if answers[0] != answers[1]:
            differences[name] = answers
    assert differences == {}


@pytest.fixture(scope="module", params=CLIENTS)
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    driver = Driver(CLIENTS[request.param](), tmp_path_factory.mktemp("driver"), Limits())
    yield driver
    driver.close()


@pytest.mark.parametrize("name", ["valid", "expired", "wrong audience", "wrong issuer", "no subject", "unsigned"])
def test_a_client_reports_the_same(
    driver: Driver, brokers: tuple[SecureBroker, SecureBroker], development: Development, name: str
) -> None:
    if name == "unsigned":
        claims = jwt.decode(development.bearer().token or "", options={"verify_signature": False})
        token = jwt.encode(claims, "", "none")
    else:
        token = signed(development, CLAIMS[name])
    login = Login(development.ca, mechanism="OAUTHBEARER", token=token)
    outcomes: list[object] = []
    for broker in brokers:
        try:
            outcomes.append(broker.attempt(driver, SECURE, login, f"by-{name.replace(' ', '-')}")[-1])
        except DriverError as error:
            outcomes.append(essence(error))
    assert outcomes[1] == outcomes[0]
    assert (outcomes[1] == "by-valid") == (name == "valid")

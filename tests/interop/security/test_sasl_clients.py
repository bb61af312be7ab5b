"""SASL beside Apache Kafka: the same bytes get the same answers, and Kafka's client reports the same failures."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kio.serial import entity_reader

from barnabas.protocol.sasl.scram_client import ScramClient
from barnabas.protocol.sasl.scram_keys import SCRAM_SHA_256
from tests.support.daemon import start_daemon
from tests.support.free_ports import free_port
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.kafka_wire import framed, message_type, request_frame, schema
from tests.support.metrics import metric

VERSION = "4.3.0"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
USERS = f'{PLAIN_MODULE} required user_alice="pencil" user_bob="crayon";'
LIFETIME_MS = 600_000
CLOSED = b"closed"

SECURITY = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PLAIN:SASL_PLAINTEXT,"
    "SHORT:SASL_PLAINTEXT,BOTH:SASL_PLAINTEXT",
    "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.plain.plain.sasl.jaas.config": USERS,
    "listener.name.short.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.short.plain.sasl.jaas.config": USERS,
    "listener.name.short.plain.connections.max.reauth.ms": str(LIFETIME_MS),
    "listener.name.both.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.both.plain.sasl.jaas.config": USERS,
    "listener.name.both.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    "listener.name.both.connections.max.reauth.ms": str(LIFETIME_MS),
    "sasl.server.max.receive.size": "20000",
}


@dataclass(frozen=True)
class Ports:
    """The SASL listeners of one broker."""

    plain: int
    short: int
    both: int


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Kafka:
    return Kafka(VERSION, tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("kafka"))


@pytest.fixture(scope="module")
def brokers(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ports, Ports]]:
    """Apache Kafka and Barnabas, with the same users and properties."""
    theirs = Ports(free_port(), free_port(), free_port())
    open_port, controller = free_port(), free_port()
    listeners = (
        f"PLAINTEXT://127.0.0.1:{open_port},PLAIN://127.0.0.1:{theirs.plain},SHORT://127.0.0.1:{theirs.short},"
        f"BOTH://127.0.0.1:{theirs.both}"
    )
    kafka.settings |= {
        **SECURITY,
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": listeners,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
    }
    kafka.format("--add-scram", "SCRAM-SHA-256=[name=alice,password=pencil]")
    directory = tmp_path_factory.mktemp("barnabas")
    names = ("PLAINTEXT", "PLAIN", "SHORT", "BOTH")
    with (
        kafka.running(),
        start_daemon(
            directory,
            "listeners=" + ",".join(f"{name}://127.0.0.1:0" for name in names),
            *(f"{name}={value}" for name, value in SECURITY.items()),
        ) as daemon,
    ):
        ports = [int(re.findall(rf"listener={name}://127\.0\.0\.1:0 port=(\d+)", daemon.log)[0]) for name in names]
        kafka.tool(
            "kafka.admin.ConfigCommand",
            *("--bootstrap-server", daemon.bootstrap, "--alter", "--entity-type", "users", "--entity-name", "alice"),
            *("--add-config", "SCRAM-SHA-256=[password=pencil]"),
        )
        yield theirs, Ports(*ports[1:])


class Peer:
    """A client that records the bytes of every answer."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.answers: list[bytes] = []

    def send(self, data: bytes) -> bytes:
        """Send a frame; return and record its answer, CLOSED if the connection ends."""
        try:
            self.socket.sendall(data)
            answer = self._receive()
        except (ConnectionResetError, BrokenPipeError):
            answer = CLOSED
        self.answers.append(answer)
        return answer

    def call(self, api: str, version: int, **fields: Any) -> bytes:
        """Send a request."""
        return self.send(request_frame(message_type(api, version, "request")(**fields), 7))

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> bytes:
        """Send a SaslHandshake."""
        return self.call("sasl_handshake", version, mechanism=mechanism)

    def authenticate(self, message: bytes, version: int = 2) -> bytes:
        """Send a SaslAuthenticate."""
        return self.call("sasl_authenticate", version, auth_bytes=message)

    def ends(self) -> None:
        """Record whether the broker closes the connection now."""
        try:
            self.answers.append(self.socket.recv(1) or CLOSED)
        except ConnectionResetError:
            self.answers.append(CLOSED)

    def _receive(self) -> bytes:
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            piece = self.socket.recv(65536)
            if not piece:
                return CLOSED
            data += piece
        return data


def good(peer: Peer) -> None:
    peer.handshake()
    peer.authenticate(b"\0alice\0pencil")


def metadata(peer: Peer) -> None:
    """Record whether a request is served, not its answer, which differs."""
    answer = peer.call("metadata", 4, topics=(), allow_auto_topic_creation=False)
    peer.answers[-1] = CLOSED if answer == CLOSED else b"served"


def good_and_served(peer: Peer) -> None:
    good(peer)
    metadata(peer)


def versions(peer: Peer, *, name: str = "test") -> None:
    answer = peer.call("api_versions", 3, client_software_name=name, client_software_version="1")
    peer.answers[-1] = answer[4:10]  # the correlation id and the error: the APIs differ


def with_version(frame: bytes, version: int) -> bytes:
    return frame[:6] + version.to_bytes(2, "big") + frame[8:]


def refused(message: bytes, version: int = 2) -> Callable[[Peer], None]:
    def run(peer: Peer) -> None:
        peer.handshake()
        peer.authenticate(message, version)
        peer.ends()

    return run


def other_mechanism(version: int) -> Callable[[Peer], None]:
    def run(peer: Peer) -> None:
        peer.handshake("SCRAM-SHA-512", version)
        peer.ends()

    return run


def bare(password: bytes) -> Callable[[Peer], None]:
    def run(peer: Peer) -> None:
        peer.handshake(version=0)
        peer.send(framed(b"\0alice\0" + password))
        if password == b"pencil":
            metadata(peer)

    return run


def request_in_exchange(api: str, version: int, **fields: Any) -> Callable[[Peer], None]:
    def run(peer: Peer) -> None:
        peer.handshake()
        peer.call(api, version, **fields)
        peer.ends()

    return run


def sasl_afterwards(peer: Peer) -> None:
    good(peer)
    peer.handshake()
    peer.authenticate(b"\0alice\0pencil")
    metadata(peer)


def repeated_versions(peer: Peer) -> None:
    kind = message_type("api_versions", 3, "request")
    request = request_frame(kind(client_software_name="test", client_software_version="1"), 7)
    peer.send(with_version(request, 99))
    versions(peer, name="-")
    versions(peer)
    versions(peer)


def first_frame(frame: bytes) -> Callable[[Peer], None]:
    def run(peer: Peer) -> None:
        peer.send(frame)

    return run


def unknown_version(peer: Peer) -> None:
    peer.handshake()
    kind = message_type("sasl_authenticate", 2, "request")
    peer.send(with_version(request_frame(kind(auth_bytes=b"\0alice\0pencil"), 7), 9))


PLAIN_SCENARIOS: dict[str, Callable[[Peer], None]] = {
    "good": good_and_served,
    **{f"wrong password in version {each}": refused(b"\0alice\0wrong", each) for each in (0, 1, 2)},
    "unknown user": refused(b"\0nobody\0wrong"),
    "no user": refused(b"\0\0wrong"),
    "no password": refused(b"\0alice\0"),
    "two tokens": refused(b"\0alice"),
    "five tokens": refused(b"\0alice\0pencil\0\0"),
    "empty message": refused(b""),
    "other identity": refused(b"bob\0alice\0pencil"),
    "other identity and wrong password": refused(b"bob\0alice\0wrong"),
    "unknown mechanism": other_mechanism(1),
    "unknown mechanism in version 0": other_mechanism(0),
    "bare": bare(b"pencil"),
    "bare and wrong": bare(b"wrong"),
    "a versions request in the exchange": request_in_exchange(
        "api_versions", 3, client_software_name="test", client_software_version="1"
    ),
    "a metadata request in the exchange": request_in_exchange(
        "metadata", 4, topics=(), allow_auto_topic_creation=False
    ),
    "a coordinator request in the exchange": request_in_exchange("find_coordinator", 0, key="g"),
    "a list of groups in the exchange": request_in_exchange("list_groups", 3),
    "a handshake in the exchange": request_in_exchange("sasl_handshake", 1, mechanism="PLAIN"),
    "metadata first": metadata,
    "SaslAuthenticate first": lambda peer: peer.ends() if peer.authenticate(b"\0alice\0pencil") != CLOSED else None,
    "SASL after the authentication": sasl_afterwards,
    "repeated versions": repeated_versions,
    "unknown version of SaslAuthenticate": unknown_version,
    "HTTP": first_frame(b"GET / HTTP/1.1\r\n\r\n"),
    "a GSSAPI token": first_frame(framed(b"\x60" + bytes(40))),
    "above the limit": first_frame(struct.pack(">i", 20_001) + bytes(20_001)),
    "negative size": first_frame(struct.pack(">i", -5)),
}


def other_user(peer: Peer) -> None:
    good(peer)
    peer.handshake()
    peer.authenticate(b"\0bob\0crayon")
    peer.ends()


def again(peer: Peer) -> None:
    good(peer)
    good(peer)
    metadata(peer)
    peer.handshake()  # within a second of the last re-authentication


def wrong_again(peer: Peer) -> None:
    good(peer)
    peer.handshake()
    peer.authenticate(b"\0alice\0wrong")
    peer.ends()


def request_again(peer: Peer) -> None:
    good(peer)
    peer.handshake()
    peer.call("list_groups", 3)
    peer.ends()


def every_lifetime(peer: Peer) -> None:
    peer.handshake()
    peer.authenticate(b"\0alice\0pencil", 1)


LIMITED_SCENARIOS: dict[str, Callable[[Peer], None]] = {
    "again": again,
    "lifetime in version 1": every_lifetime,
    "other user": other_user,
    "wrong password again": wrong_again,
    "another request in the re-authentication": request_again,
}


def compare(scenarios: dict[str, Callable[[Peer], None]], theirs: int, ours: int) -> None:
    differences = {}
    for name, run in scenarios.items():
        answers = []
        for port in (theirs, ours):
            peer = Peer(port)
            run(peer)
            peer.socket.close()
            answers.append(peer.answers)
        if answers[0] != answers[1]:
            differences[name] = answers
    assert differences == {}


def test_answers_are_those_of_kafka(brokers: tuple[Ports, Ports]) -> None:
    compare(PLAIN_SCENARIOS, brokers[0].plain, brokers[1].plain)


def test_answers_of_limited_sessions_are_those_of_kafka(brokers: tuple[Ports, Ports]) -> None:
    compare(LIMITED_SCENARIOS, brokers[0].short, brokers[1].short)


def test_another_mechanism_for_the_reauthentication_is_refused_as_by_kafka(brokers: tuple[Ports, Ports]) -> None:
    outcomes = []
    for ports in brokers:
        peer = Peer(ports.both)
        good(peer)
        peer.handshake("SCRAM-SHA-256")
        peer.authenticate(b"n,,n=alice,r=abc")
        outcomes.append([each if each == CLOSED else len(each) for each in peer.answers])
        peer.socket.close()
    assert outcomes[0] == outcomes[1]
    assert outcomes[1][-1] == CLOSED


def test_scram_logins_end_as_with_kafka(brokers: tuple[Ports, Ports]) -> None:
    """The error's text is Kafka's. The round differs for an unknown user: Kafka fails in the first, we in the last."""

    def last_answer(port: int, user: str, password: str) -> Any:
        peer = Peer(port)
        peer.handshake("SCRAM-SHA-256")
        client = ScramClient(SCRAM_SHA_256, user, password)
        message: bytes | None = client.start()
        kind = schema("sasl_authenticate", 2, "response").SaslAuthenticateResponse
        while True:
            assert message is not None
            answer, _ = entity_reader(kind)(peer.authenticate(message)[9:], 0)
            if answer.error_code.value or client.is_complete:
                break
            message = client.respond(answer.auth_bytes)
            if message is None:
                break
        peer.socket.close()
        return answer.error_code, answer.error_message, answer.session_lifetime

    for user, password in (("alice", "pencil"), ("alice", "wrong"), ("nobody", "wrong")):
        assert last_answer(brokers[1].both, user, password) == last_answer(brokers[0].both, user, password)


def test_kafkas_client_authenticates_again_while_it_sends_requests(kafka: Kafka, tmp_path: Path) -> None:
    with start_daemon(
        tmp_path,
        "listeners=BRIEF://127.0.0.1:0",
        "listener.security.protocol.map=BRIEF:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        f"listener.name.brief.plain.sasl.jaas.config={USERS}",
        "connections.max.reauth.ms=2000",
    ) as daemon:
        output = kafka.java_program("SaslSession", daemon.bootstrap, "alice", "pencil", "6000")
        labels = '{listener="BRIEF",mechanism="PLAIN"}'
        assert int(re.findall(r"^= (\d+)$", output, re.MULTILINE)[0]) > 1
        assert (metric(daemon, f"barnabas_reauthentications_total{labels}") or 0) >= 2
        assert metric(daemon, f"barnabas_sessions_expired_total{labels}") is None


def test_kafkas_client_reports_the_same_failures(kafka: Kafka, brokers: tuple[Ports, Ports]) -> None:
    logins = [
        *("PLAIN", "alice", "pencil"),
        *("PLAIN", "alice", "wrong"),
        *("PLAIN", "nobody", "wrong"),
        *("SCRAM-SHA-256", "alice", "pencil"),
        *("SCRAM-SHA-256", "alice", "wrong"),
        *("SCRAM-SHA-256", "nobody", "wrong"),
        *("SCRAM-SHA-512", "alice", "pencil"),
    ]

    theirs, ours = (f"127.0.0.1:{ports.both}" for ports in brokers)
    output = kafka.java_program("SaslFailures", f"{theirs},{ours}", *logins)

    def reports(broker: str) -> list[str]:
        lines = re.findall(rf"^= {re.escape(broker)} (.*)$", output, re.MULTILINE)
        # The enabled mechanisms are a set in Kafka.
        return [re.sub(r"\[(.*)\]", lambda found: str(sorted(found[1].split(", "))), line) for line in lines]

    assert len(reports(ours)) == len(logins) // 3
    assert reports(ours) == reports(theirs)

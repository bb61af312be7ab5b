"""Key and trust stores that change while handshakes are half done, requests wait, and responses are being sent."""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import OP_SET
from barnabas.protocol.records import Record
from tests.broker.kafka.test_kafka_configs import THIS_BROKER, alter
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually
from tests.support.kafka.kafka_wire import KafkaWire, fetch_request
from tests.support.storage.records import build, plain
from tests.support.tls import authority_pem, pem_bundle, trusting, write_private

LARGE = 3 << 20
HOST = "127.0.0.1"


def broker_key(authority: trustme.CA) -> str:
    """Return a new key and certificate, always with the same name: the broker takes no other."""
    return pem_bundle(authority.issue_cert(HOST, common_name="broker", organization_unit_name="tests"))


@dataclass(frozen=True)
class Setup:
    """A broker that requires client certificates, and two authorities of clients, of which it trusts the first."""

    daemon: Daemon
    directory: Path
    servers: trustme.CA
    first: trustme.CA
    second: trustme.CA

    @property
    def port(self) -> int:
        (port,) = re.findall(r"listening, listener=TLS\S+ port=(\d+)", self.daemon.log)
        return int(port)

    def context(self, clients: trustme.CA) -> ssl.SSLContext:
        return trusting(self.servers, clients.issue_cert("client"))

    def issue(self, name: str) -> Path:
        """Write a new key store of the broker."""
        return write_private(self.directory / name, broker_key(self.servers))

    def certificate(self) -> bytes | None:
        """Return what a new connection gets."""
        with TlsWire(self, self.context(self.first)) as wire:
            return wire.tls.getpeercert(binary_form=True)


class TlsWire(KafkaWire):
    """A KafkaWire over TLS."""

    def __init__(self, setup: Setup, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> None:
        super().__init__(HOST, setup.port)
        self.socket = self.tls = context.wrap_socket(self.socket, server_hostname=HOST, session=session)


class HalfHandshake(KafkaWire):
    """A handshake that stops after `sent` bytes of the client's hello, or (None) before the client's second message."""

    def __init__(self, setup: Setup, context: ssl.SSLContext, sent: int | None) -> None:
        super().__init__(HOST, setup.port)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=HOST)
        with pytest.raises(ssl.SSLWantReadError):
            self._tls.do_handshake()
        hello = self._outgoing.read()
        self.socket.sendall(hello[:sent])
        self._rest = b"" if sent is None else hello[sent:]
        if sent is None:
            self._incoming.write(self.socket.recv(1 << 20))

    def finish(self) -> None:
        """Complete the handshake, and have a request served."""
        self.socket.sendall(self._rest)
        self._pump(self._tls.do_handshake)
        self._tls.write(VERSIONS)
        self.socket.sendall(self._outgoing.read())
        self._pump(lambda: self._tls.read(1))

    def _pump(self, step: Callable[[], Any]) -> None:
        while True:
            try:
                step()
                break
            except ssl.SSLWantReadError:
                self.socket.sendall(self._outgoing.read())
                received = self.socket.recv(1 << 20)
                assert received, "the broker closed the connection"
                self._incoming.write(received)
        self.socket.sendall(self._outgoing.read())


VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 0000")
"""An ApiVersions request."""


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    servers, first, second = trustme.CA(), trustme.CA(), trustme.CA()
    key = write_private(tmp_path / "broker.pem", broker_key(servers))
    trust = write_private(tmp_path / "trusted.pem", authority_pem(first))
    with start_daemon(
        tmp_path,
        "listeners=PLAIN://127.0.0.1:0,TLS://127.0.0.1:0",
        "listener.security.protocol.map=PLAIN:PLAINTEXT,TLS:SSL",
        "ssl.client.auth=required",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={key}",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={trust}",
    ) as daemon:
        yield Setup(daemon, tmp_path, servers, first, second)


def by_file(setup: Setup) -> None:
    """Rename a new key store over the one in use, and wait for the broker to notice."""
    setup.issue("next.pem").rename(setup.directory / "broker.pem")
    text = "replaced the TLS certificate of the listener TLS"
    eventually(lambda: text in setup.daemon.log or None, what=text)


def by_alter_configs(setup: Setup) -> None:
    """Name a new key store by IncrementalAlterConfigs."""
    name = "listener.name.tls.ssl.keystore.location"
    with KafkaWire(setup.daemon.host, setup.daemon.port) as admin:
        assert alter(admin, THIS_BROKER, OP_SET, name, str(setup.issue("next.pem")))[0] == ErrorCode.NONE


@pytest.mark.parametrize("replace", [by_file, by_alter_configs])
def test_a_new_key_store_interrupts_no_handshake_wait_or_response(
    setup: Setup, replace: Callable[[Setup], None]
) -> None:
    context = setup.context(setup.first)
    old = setup.certificate()
    with (
        TlsWire(setup, context) as waiting,
        TlsWire(setup, context) as slow,
        KafkaWire(HOST, setup.daemon.port) as other,
    ):
        other.topic_id("large")
        other.topic_id("empty")
        batches = [bytes(build([Record(0, 1, None, os.urandom(LARGE // 4))])) for _ in range(4)]
        for batch in batches:
            assert other.produce(9, "large", batch).error_code == 0
        waiting.send(fetch_request(12, "empty", 0, max_wait_ms=60_000))
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        slow.send(fetch_request(12, "large", 0, max_bytes=2 * LARGE))
        halves = [HalfHandshake(setup, context, sent) for sent in (0, 5, 100, None)]

        replace(setup)

        assert setup.certificate() != old
        for half in halves:
            with half:
                half.finish()
        stored = slow.receive("fetch", 12).responses[0].partitions[0].records
        assert sum(map(len, batches)) == len(stored)
        assert stored[-len(batches[-1]) + 61 :] == batches[-1][61:]
        assert other.produce(9, "empty", bytes(plain(1))).error_code == 0
        assert waiting.receive("fetch", 12).responses[0].partitions[0].records is not None
        assert waiting.produce(9, "empty", bytes(plain(1))).base_offset == 1


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_that_is_no_longer_trusted_cannot_resume_its_session(setup: Setup, version: ssl.TLSVersion) -> None:
    context = setup.context(setup.first)
    context.maximum_version = version
    with TlsWire(setup, context) as before:
        before.topic_id("t")
        session = before.tls.session
        assert session is not None
        with TlsWire(setup, context, session) as resumed:
            resumed.topic_id("t")
            assert resumed.tls.session_reused
        write_private(setup.directory / "next.pem", authority_pem(setup.second)).rename(setup.directory / "trusted.pem")

        def is_refused() -> bool | None:
            try:
                with TlsWire(setup, context, session) as wire:
                    wire.topic_id("t")
            except (ssl.SSLError, ConnectionError):
                return True
            return None

        eventually(is_refused, what="a refused client")
        with TlsWire(setup, setup.context(setup.second)) as trusted:
            trusted.topic_id("t")
        before.topic_id("t")  # connections keep the trust that they began with, as in Kafka

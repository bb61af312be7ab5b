"""TlsConnections: the principal of each client, counters, and which handshake gives way when there are too many."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import cast

import pytest
import trustme
import uvloop

from barnabas.broker.network.acceptor import Acceptor
from barnabas.broker.network.connection import Connection
from barnabas.broker.network.connection_quotas import ConnectionQuotas
from barnabas.broker.network.connection_registry import TURN_SECONDS, ConnectionRegistry
from barnabas.broker.network.receive_memory import ReceiveMemory
from barnabas.broker.network.response_frame import ResponseFrame
from barnabas.broker.network.session import Session
from barnabas.broker.network.tls_connections import TlsConnections
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.quotas.connection_rates import ConnectionRates
from barnabas.broker.repeated_warnings import LINES, RepeatedWarnings
from barnabas.broker.security.sasl.failure_log import FailureLog
from barnabas.config.listeners import Listener
from barnabas.config.security.listener_properties import ListenerProperties
from barnabas.transport.contexts import server_context
from barnabas.transport.handshakes import HandshakeThreads
from barnabas.transport.settings import MappingProperties, TlsSettings
from barnabas.transport.tls_transport import new_scratch
from tests.support.tls import inline_properties, trusting

TIMEOUT_S = 20.0
RULES = "RULE:^CN=([^,]*),.*$/$1/L"
FRAME = b"\0\0\0\4ping"


class Properties(MappingProperties):
    """ListenerProperties of a mapping."""

    listener = "SSL"

    def __init__(self, values: dict[str, str], security_protocol: str = "SSL") -> None:
        super().__init__(values)
        self.security_protocol = security_protocol

    def get_int(self, name: str, *, mechanism: str | None = None) -> int:
        return {"ssl.handshake.timeout.ms": 10_000, "connection.failed.authentication.delay.ms": 10}[name]

    def get_bool(self, name: str, *, mechanism: str | None = None) -> bool:
        return False


class Quotas:
    """Counts of the acceptor's calls; `unauthenticated_max` is the test's."""

    def __init__(self, unauthenticated_max: int) -> None:
        self.unauthenticated_max = unauthenticated_max
        self.open: list[tuple[str, str]] = []

    def refusal(self, listener: str, host: str) -> None:
        return None

    def opened(self, listener: str, host: str) -> None:
        self.open.append((listener, host))

    def closed(self, listener: str, host: str) -> None:
        self.open.remove((listener, host))


class Served:
    """A listener whose connections answer every frame with the name of the session's principal."""

    def __init__(
        self, certificate: trustme.LeafCert, authority: trustme.CA, *, protocol: str = "SSL", unfinished_max: int = 100
    ) -> None:
        loop = asyncio.get_running_loop()
        values = inline_properties(
            certificate, authority, ssl_client_auth="requested", ssl_principal_mapping_rules=RULES
        )
        context = server_context(TlsSettings.of_server(MappingProperties(values))).context
        self.quotas = Quotas(unfinished_max)
        self.probes = BrokerProbes()
        self.threads = HandshakeThreads(loop)
        self.executor = ThreadPoolExecutor(1)
        quotas = cast("ConnectionQuotas", self.quotas)
        registry = SimpleNamespace(
            loop=loop,
            dispatcher=SimpleNamespace(serve=self._serve, frames=None),
            blocking_io=self.executor,
            probe=self.probes.connections,
            max_frame_bytes=1 << 20,
            turn_seconds=TURN_SECONDS,
            bind_access=lambda session: None,
            warnings=(warnings := RepeatedWarnings(loop)),
            memory=ReceiveMemory(64 << 20, loop, self.probes.connections, warnings),
            opened=lambda connection: None,
            closed=lambda connection: quotas.closed(connection.session.listener.name, connection.session.host),
        )
        self.tls = TlsConnections(
            cast("ListenerProperties", Properties(values, protocol)),
            loop,
            context=lambda: context,
            handshakes=self.threads,
            scratch=new_scratch(),
            quotas=quotas,
            failures=FailureLog(loop),
            probe=self.probes.tls,
        )
        listener = Listener("SSL", "127.0.0.1", 0)

        def new_protocol(host: str) -> asyncio.BaseProtocol:
            session = Session(listener, protocol)
            session.host = host
            return self.tls.wrap(Connection(cast("ConnectionRegistry", registry), session))

        self.new_protocol = new_protocol
        bound = socket.socket()
        bound.bind(("127.0.0.1", 0))
        bound.setblocking(False)
        self.port: int = bound.getsockname()[1]
        unlimited = SimpleNamespace(wait_of_address=lambda host: 0.0, wait_of_listener=lambda listener: 0.0)
        rates = cast("ConnectionRates", unlimited)
        self.acceptor = Acceptor(
            loop, "SSL", bound, quotas, rates, self.probes.connections, RepeatedWarnings(loop), new_protocol
        )
        self.acceptor.start(128)

    @staticmethod
    def _serve(session: Session, frame: memoryview) -> ResponseFrame:
        return ResponseFrame(f"{session.principal}\n".encode(), ())

    def close(self) -> None:
        self.acceptor.close()
        self.tls.close()
        self.threads.close()
        self.executor.shutdown()


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(scenario(), TIMEOUT_S)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(limited())


def principal(port: int, context: ssl.SSLContext) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as raw:
        with context.wrap_socket(raw, server_hostname="127.0.0.1") as client:
            client.sendall(FRAME)
            return client.makefile("r").readline().strip()


def cut_off_so_far(served: Served) -> int:
    return served.probes.tls.failed.get(("SSL", "disconnected"), 0)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_the_principal_is_the_certificates_unless_sasl_decides(
    protocol: str, authority: trustme.CA, server_certificate: trustme.LeafCert
) -> None:
    alice = authority.issue_cert("a@example.org", common_name="ALICE")

    async def scenario() -> None:
        served = Served(server_certificate, authority, protocol=protocol)
        named = await asyncio.to_thread(principal, served.port, trusting(authority, alice))
        assert named == ("User:alice" if protocol == "SSL" else "User:ANONYMOUS")
        assert await asyncio.to_thread(principal, served.port, trusting(authority)) == "User:ANONYMOUS"
        await until(lambda: not served.quotas.open)
        assert served.probes.tls.completed == {"SSL": 2}
        served.close()

    play(scenario)


def test_a_certificate_that_no_rule_maps_is_refused(
    authority: trustme.CA, server_certificate: trustme.LeafCert, caplog: pytest.LogCaptureFixture
) -> None:
    nameless = authority.issue_cert("a@example.org")  # its subject has no CN

    async def scenario() -> None:
        served = Served(server_certificate, authority)
        try:
            assert await asyncio.to_thread(principal, served.port, trusting(authority, nameless)) == ""
        except (ssl.SSLError, ConnectionError):
            pass
        await until(lambda: served.probes.tls.failed == {("SSL", "no_principal"): 1})
        assert served.quotas.open == []
        served.close()

    play(scenario)
    assert "no rule of ssl.principal.mapping.rules applies to the certificate" in caplog.text


def test_connections_that_break_after_the_handshake_have_few_lines(
    authority: trustme.CA, server_certificate: trustme.LeafCert, caplog: pytest.LogCaptureFixture
) -> None:
    breaks = 3 * LINES

    def break_one(port: int) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as raw:
            with trusting(authority).wrap_socket(raw, server_hostname="127.0.0.1") as client:
                client.sendall(FRAME)
                client.makefile("r").readline()
                with socket.socket(fileno=os.dup(client.fileno())) as beneath:
                    beneath.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))

    async def scenario() -> None:
        served = Served(server_certificate, authority)
        for _ in range(breaks):
            await asyncio.to_thread(break_one, served.port)
        await until(lambda: not served.quotas.open)
        assert served.probes.tls.completed == {"SSL": breaks}
        served.close()

    with caplog.at_level(logging.INFO):
        play(scenario)
    assert sum("TLS of 127.0.0.1 broke" in each for each in caplog.messages) == LINES


def test_the_oldest_unfinished_handshake_gives_way_to_the_newest(
    authority: trustme.CA, server_certificate: trustme.LeafCert
) -> None:
    async def scenario() -> None:
        served = Served(server_certificate, authority, unfinished_max=3)
        loop = asyncio.get_running_loop()
        stalled = []
        for number in range(5):
            peer = socket.create_connection(("127.0.0.1", served.port), timeout=TIMEOUT_S)
            stalled.append(peer)
            cut_off = max(number - 2, 0)
            await until(lambda cut_off=cut_off: cut_off_so_far(served) == cut_off)  # type: ignore[misc]
            await until(lambda open=number + 1 - cut_off: len(served.quotas.open) == open)  # type: ignore[misc]
        for peer in stalled[:2]:
            peer.setblocking(False)
            assert await loop.sock_recv(peer, 1) == b""
        for peer in stalled[2:]:
            peer.setblocking(False)
            with pytest.raises(BlockingIOError):
                peer.recv(1)
        assert await asyncio.to_thread(principal, served.port, trusting(authority)) == "User:ANONYMOUS"
        for peer in stalled:
            peer.close()
        await until(lambda: not served.quotas.open)
        served.close()

    play(scenario)


def test_a_close_before_the_loop_has_a_connection_closes_it(
    authority: trustme.CA, server_certificate: trustme.LeafCert
) -> None:
    async def scenario() -> None:
        served = Served(server_certificate, authority)
        loop = asyncio.get_running_loop()
        peer, accepted = socket.socketpair()
        with peer:
            peer.setblocking(False)
            accepted.setblocking(False)
            served.quotas.opened("SSL", "peer")
            protocol = served.new_protocol("peer")
            served.tls.close()  # the broker stops
            await loop.connect_accepted_socket(lambda: protocol, accepted)
            assert await loop.sock_recv(peer, 1) == b""
            await until(lambda: not served.quotas.open)
        served.close()

    play(scenario)


def test_connections_that_are_accepted_at_once_give_way_too(
    authority: trustme.CA, server_certificate: trustme.LeafCert
) -> None:
    async def scenario() -> None:
        served = Served(server_certificate, authority, unfinished_max=2)
        # Without a turn of the loop between them: it accepts all of them before it has any.
        peers = [socket.create_connection(("127.0.0.1", served.port), timeout=TIMEOUT_S) for _ in range(8)]
        await until(lambda: cut_off_so_far(served) == 6)
        await until(lambda: len(served.quotas.open) == 2)
        for peer in peers:
            peer.close()
        await until(lambda: not served.quotas.open)
        served.close()

    play(scenario)

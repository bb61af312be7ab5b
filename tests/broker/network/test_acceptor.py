"""Sockets above a rate of new connections: those of one address take no room from others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from barnabas.broker.network.acceptor import HELD_MAX, Acceptor
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.repeated_warnings import RepeatedWarnings
from tests.support.manual_loop import ManualLoop

if TYPE_CHECKING:
    from barnabas.broker.network.connection_quotas import ConnectionQuotas
    from barnabas.broker.quotas.connection_rates import ConnectionRates

FLOODER = "127.0.9.9"
REFUSED_MS = 1000
DELAY_MS = 500


class Served(asyncio.Protocol):
    """An accepted connection, whose transport the test closes."""

    def __init__(self, transports: list[asyncio.Transport]) -> None:
        self._transports = transports

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transports.append(cast("asyncio.Transport", transport))


class Limited:
    """An acceptor whose listener is above its rate, and one address above its own."""

    def __init__(self) -> None:
        self.loop = ManualLoop()
        self.clients = ExitStack()
        self.served: list[str] = []
        self.transports: list[asyncio.Transport] = []
        bound = socket.socket()
        bound.bind(("127.0.0.1", 0))
        bound.setblocking(False)
        self._port: int = bound.getsockname()[1]
        quotas = SimpleNamespace(refusal=lambda listener, host: None, opened=lambda listener, host: None)
        rates = SimpleNamespace(
            wait_of_address=lambda host: REFUSED_MS / 1000 if host == FLOODER else 0.0,
            wait_of_listener=lambda listener: DELAY_MS / 1000,
        )
        self.acceptor = Acceptor(
            self.loop,
            "PLAINTEXT",
            bound,
            cast("ConnectionQuotas", quotas),
            cast("ConnectionRates", rates),
            BrokerProbes().connections,
            RepeatedWarnings(self.loop),
            self._new_protocol,
        )
        self.acceptor.start(2 * HELD_MAX)

    def _new_protocol(self, host: str) -> asyncio.BaseProtocol:
        self.served.append(host)
        return Served(self.transports)

    def connect(self, host: str) -> socket.socket:
        """Return a client, accepted by the broker unless it pauses."""
        client = socket.create_connection(("127.0.0.1", self._port), timeout=30, source_address=(host, 0))
        self.clients.enter_context(client)
        client.setblocking(False)
        self.loop.settle()
        return client


@pytest.fixture
def limited() -> Iterator[Limited]:
    created = Limited()
    with created.clients:
        yield created
        created.acceptor.close()
        for transport in created.transports:
            transport.abort()
        created.loop.settle()
    created.loop.close()


def is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False


def test_an_address_above_its_rate_takes_no_room_from_others(limited: Limited) -> None:
    flood = [limited.connect(FLOODER) for _ in range(HELD_MAX + 2)]
    other = limited.connect("127.0.0.2")
    assert not is_closed(other)
    assert [is_closed(client) for client in flood] == [True] * 2 + [False] * HELD_MAX
    limited.loop.pass_time(DELAY_MS)
    limited.loop.settle()
    assert limited.served == ["127.0.0.2"]
    assert not is_closed(other)
    limited.loop.pass_time(REFUSED_MS - DELAY_MS)
    assert all(is_closed(client) for client in flood)
    assert not is_closed(other)


def test_the_end_of_the_acceptor_closes_held_sockets(limited: Limited) -> None:
    clients = [limited.connect(FLOODER), limited.connect("127.0.0.2")]
    limited.acceptor.close()
    assert all(is_closed(client) for client in clients)
    limited.loop.pass_time(2 * REFUSED_MS)
    assert not limited.served

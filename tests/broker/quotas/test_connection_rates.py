"""Rates of new connections, and sockets above them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.metadata.security.image import quota_entity
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.quotas import connection_rates
from barnabas.broker.quotas.connection_rates import ConnectionRates
from barnabas.broker.quotas.rate import WindowSizes
from barnabas.config.property import INT_MAX
from tests.support.daemon import start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, metadata_request
from tests.support.kafka.quotas import alter_quotas
from tests.support.metrics import metric


class Rates:
    """ConnectionRates with a clock and limits of the test."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.of_broker = INT_MAX
        self.of_listeners: dict[str, int] = {}
        self.loop = asyncio.new_event_loop()
        config = SimpleNamespace(
            broker=SimpleNamespace(get_int=lambda name: self.of_broker),
            listener_properties=lambda listener: SimpleNamespace(
                get_int=lambda name: self.of_listeners.get(listener, self.of_broker)
            ),
        )
        self.rates = ConnectionRates(
            self.loop, cast(Any, config), lambda: self.now_ms, BrokerProbes().quotas, WindowSizes()
        )

    def set(self, **by_name: float | None) -> None:
        quotas = {
            quota_entity([("ip", None if name == "default" else name.replace("_", "."))]): {
                "connection_creation_rate": bound
            }
            for name, bound in by_name.items()
            if bound is not None
        }
        self.rates.replace(quotas)


@pytest.fixture
def limits() -> Iterator[Rates]:
    created = Rates()
    yield created
    created.loop.close()


def test_without_limits_nothing_waits(limits: Rates) -> None:
    assert [limits.rates.wait_of_listener("A") + limits.rates.wait_of_address("1.1.1.1") for _ in range(1000)] == [
        0.0
    ] * 1000


def test_the_eleventh_connection_of_a_rate_of_one_waits_for_a_second_at_most(limits: Rates) -> None:
    limits.of_broker = 1
    assert [limits.rates.wait_of_listener(name) for name in "ABABABABAB"] == [0.0] * 10
    assert limits.rates.wait_of_listener("B") == 1.0
    assert limits.rates.wait_of_listener("B") == 1.0
    limits.now_ms = 20_000
    assert limits.rates.wait_of_listener("A") == 0.0


def test_a_listener_has_a_rate_of_its_own(limits: Rates) -> None:
    limits.of_listeners = {"A": 1, "B": INT_MAX}
    assert [limits.rates.wait_of_listener("A") for _ in range(11)] == [0.0] * 10 + [1.0]
    assert limits.rates.wait_of_listener("B") == 0.0


def test_refused_connections_of_an_address_do_not_count(limits: Rates) -> None:
    limits.set(**{"127_0_0_1": 1.0, "default": 2.0})
    assert [limits.rates.wait_of_address("127.0.0.1") for _ in range(10)] == [0.0] * 10
    assert [limits.rates.wait_of_address("127.0.0.1") for _ in range(100)] == [1.0] * 100
    assert [limits.rates.wait_of_address("0:0:0:0:0:0:0:1") for _ in range(21)] == [0.0] * 20 + [0.5]
    limits.now_ms = 11_000
    assert limits.rates.wait_of_address("127.0.0.1") == 0.0, "a hundred refusals later"
    limits.set()
    assert limits.rates.wait_of_address("127.0.0.1") == 0.0


def test_addresses_of_version_6_are_compared_as_java_prints_them(limits: Rates) -> None:
    limits.rates.replace({quota_entity([("ip", "::1")]): {"connection_creation_rate": 0.1}})
    assert [limits.rates.wait_of_address("0:0:0:0:0:0:0:1") for _ in range(2)] == [0.0, 1.0]


def test_a_quota_of_nothing_refuses_everything(limits: Rates) -> None:
    limits.set(default=0.0)
    assert limits.rates.wait_of_address("1.1.1.1") == 1.0


def test_names_of_hosts_are_resolved_beside_the_loop(limits: Rates, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"host.name": ["10.0.0.1", "10.0.0.2"], "unknown.name": []}
    monkeypatch.setattr(connection_rates, "_resolved", found.__getitem__)
    limits.set(host_name=0.1, unknown_name=0.1)

    async def settle() -> None:
        while not limits.rates._bounds:
            await asyncio.sleep(0.001)

    limits.loop.run_until_complete(asyncio.wait_for(settle(), 30))
    assert [limits.rates.wait_of_address(host) for host in ("10.0.0.1", "10.0.0.1", "10.0.0.3")] == [0.0, 1.0, 0.0]


def test_connections_above_the_rate_of_the_broker_are_served_later(tmp_path: Path) -> None:
    with start_daemon(tmp_path, "max.connection.creation.rate=2") as daemon:
        clients = [KafkaWire(daemon.host, daemon.port) for _ in range(22)]
        try:
            for client in clients:
                client.send(metadata_request(4))
            for client in clients:
                assert client.receive("metadata", 4).brokers
        finally:
            for client in clients:
                client.socket.close()
        assert (metric(daemon, 'barnabas_throttled_requests_total{quota="connection_creation_rate"}') or 0) >= 1
        assert not metric(daemon, 'barnabas_connections_refused_total{error="connection_rate_per_ip"}')


def test_connections_above_the_rate_of_their_address_are_closed_unread(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as admin:
        alter_quotas(admin, "ip", "127.0.0.1", connection_creation_rate=1)
        clients = [KafkaWire(daemon.host, daemon.port) for _ in range(11)]
        try:
            for client in clients:
                client.send(metadata_request(4))
            for client in clients[:10]:
                assert client.receive("metadata", 4).brokers
            assert clients[10].is_closed_by_broker()
        finally:
            for client in clients:
                client.socket.close()
        assert metric(daemon, 'barnabas_connections_refused_total{error="connection_rate_per_ip"}') == 1
        alter_quotas(admin, "ip", "127.0.0.1", connection_creation_rate=None)
        with KafkaWire(daemon.host, daemon.port) as client:
            client.send(metadata_request(4))
            assert client.receive("metadata", 4).brokers

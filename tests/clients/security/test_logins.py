"""Our client at a broker with SASL: each mechanism, sessions that are renewed during work, and errors by step."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig
from barnabas.clients.errors import AuthenticationError, BrokerConnectionError, ClientError
from barnabas.clients.security.settings import SecuritySettings
from tests.support.daemon import Daemon, start_daemon

MODULE = "org.apache.kafka.common.security"
SETTINGS = (
    "listeners=SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms=PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config="
    f'{MODULE}.plain.PlainLoginModule required user_alice="pencil";',
    "connection.failed.authentication.delay.ms=0",
)


def settings(mechanism: str = "PLAIN", user: str = "alice", password: str = "pencil") -> SecuritySettings:
    return SecuritySettings.from_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }
    )


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("broker"), *SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def renewing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A broker whose sessions last four seconds."""
    with start_daemon(tmp_path_factory.mktemp("broker"), *SETTINGS, "connections.max.reauth.ms=4000") as running:
        yield running


async def connect(bootstrap: str, security: SecuritySettings) -> Mapping[str, object]:
    config = AdminConfig(bootstrap=bootstrap, security=security, api_timeout_ms=10_000)
    async with Admin(config) as admin:
        return {"topics": await admin.list_topics()}


def test_login(daemon: Daemon) -> None:
    assert asyncio.run(connect(daemon.bootstrap, settings())) == {"topics": []}


@pytest.mark.parametrize(
    ("security", "message"),
    [
        (settings(password="canary"), "refuses the PLAIN login: Authentication failed: Invalid username or password"),
        (settings("SCRAM-SHA-512"), "does not take sasl.mechanism=SCRAM-SHA-512; it takes PLAIN"),
    ],
)
def test_a_refused_login_is_not_tried_again(daemon: Daemon, security: SecuritySettings, message: str) -> None:
    before = daemon.log.count("authentication failed")
    with pytest.raises(AuthenticationError, match=message) as caught:
        asyncio.run(connect(daemon.bootstrap, security))
    assert "canary" not in str(caught.value)
    assert daemon.log.count("authentication failed") <= before + 1


def test_a_client_without_login_reads_what_is_missing(daemon: Daemon) -> None:
    with pytest.raises(BrokerConnectionError, match=r"requires no login \(security\.protocol=PLAINTEXT\)"):
        asyncio.run(connect(daemon.bootstrap, SecuritySettings()))


def test_a_login_at_a_plaintext_listener(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon, pytest.raises(AuthenticationError, match=r"security\.protocol to PLAINTEXT"):
        asyncio.run(connect(daemon.bootstrap, settings()))


def test_tls_at_a_plaintext_listener(tmp_path: Path) -> None:
    with (
        start_daemon(tmp_path) as daemon,
        pytest.raises(ClientError, match=r"closed.* during the TLS handshake|does not speak TLS"),
    ):
        asyncio.run(connect(daemon.bootstrap, SecuritySettings.from_properties({"security.protocol": "SSL"})))


async def test_sessions_are_renewed_while_requests_go_on(renewing: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    # Early, because a slow machine may need more than the last tenth of so short a session; a broker takes no login
    # within a second of the one before.
    monkeypatch.setattr("barnabas.clients.network.connection.REAUTHENTICATION_RANGE", (0.3, 0.4))
    config: dict[str, Any] = {"bootstrap": renewing.bootstrap, "security": settings()}
    values = []
    async with Admin(AdminConfig(**config)) as admin:
        await admin.create_topic("t")
    async with (
        Producer(ProducerConfig(**config)) as producer,
        Consumer(ConsumerConfig(**config, offset_reset="earliest")) as consumer,
    ):
        await consumer.assign([("t", 0)])
        loop = asyncio.get_running_loop()
        end = loop.time() + 5  # three renewals
        sent = 0
        while loop.time() < end:
            await producer.send_and_wait("t", b"%d" % sent)
            sent += 1
            values += [record.value for record in await consumer.poll(100, timeout_ms=20)]
        while len(values) < sent:
            values += [record.value for record in await consumer.poll(100, timeout_ms=1000)]
    assert values == [b"%d" % number for number in range(sent)]
    # Nobody was disconnected: each of the few connections logged in once, and again.
    assert "its session is over" not in renewing.log
    assert "was not renewed" not in renewing.log

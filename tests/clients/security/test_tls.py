"""Our client over TLS at a broker of `barnabas security init`: both files, and what each failed step says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig
from barnabas.clients.errors import AuthenticationError, ClientError
from barnabas.clients.security.authority import Authority
from barnabas.clients.security.settings import SecuritySettings
from barnabas.commands.main import main
from tests.support.daemon import Daemon
from tests.support.development import created, entries

__all__ = ["created"]  # a fixture

SASL_SSL, SSL, PLAINTEXT, ELSEWHERE = range(4)
NO_CERTIFICATE = r"\(tlsv13 alert certificate required\): the listener may require a client certificate"


@pytest.fixture(scope="module")
def ports(created: Path) -> Iterator[list[int]]:
    listeners = "SASL_SSL://127.0.0.1:0,SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0,ELSEWHERE://127.0.0.2:0"
    changed = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,SSL:SSL,PLAINTEXT:PLAINTEXT,ELSEWHERE:SSL",
    }
    daemon = Daemon(created.parent / "broker", {**entries(created / "server.properties"), **changed})
    with daemon:
        yield [int(found) for found in re.findall(r"listening, listener=\S+ port=(\d+)", daemon.log)]


def properties(created: Path, name: str, **changed: str | None) -> SecuritySettings:
    changes = {key.replace("_", "."): value for key, value in changed.items()}
    found = {**entries(created / name), **changes}
    return SecuritySettings.from_properties({key: value for key, value in found.items() if value is not None})


@pytest.mark.parametrize(("file", "listener"), [("client.properties", SASL_SSL), ("client-tls.properties", SSL)])
def test_records_over_tls(ports: list[int], created: Path, file: str, listener: int) -> None:
    bootstrap, security = f"127.0.0.1:{ports[listener]}", properties(created, file)
    values = [bytes([number % 251]) * 40_000 for number in range(100)]

    async def run() -> list[bytes | None]:
        topic = f"by-{listener}"
        async with Admin(AdminConfig(bootstrap=bootstrap, security=security)) as admin:
            await admin.create_topic(topic)
        async with Producer(ProducerConfig(bootstrap=bootstrap, security=security)) as producer:
            for value in values:
                await producer.send(topic, value)
        config = ConsumerConfig(bootstrap=bootstrap, security=security, group=f"g-{listener}", offset_reset="earliest")
        found: list[bytes | None] = []
        async with Consumer(config) as consumer:
            await consumer.subscribe([topic])
            while len(found) < len(values):
                found += [record.value for record in await consumer.poll(100, timeout_ms=10_000)]
        return found

    assert asyncio.run(run()) == values


@pytest.mark.parametrize("name", ["client.properties", "client-tls.properties"])
def test_commands_take_the_files(ports: list[int], created: Path, name: str) -> None:
    port = ports[SASL_SSL if name == "client.properties" else SSL]
    options = ["--bootstrap", f"127.0.0.1:{port}", "--command-config", str(created / name)]
    for command in (["topic", "list"], ["acl", "list"]):  # one of each protocol
        done = CliRunner().invoke(main, [*command, *options])
        assert done.exit_code == 0, done.output


async def connect(port: int, security: SecuritySettings, host: str = "127.0.0.1") -> None:
    config = AdminConfig(bootstrap=f"{host}:{port}", security=security, api_timeout_ms=5_000)
    async with Admin(config) as admin:
        await admin.list_topics()


def fails(port: int, security: SecuritySettings, message: str, host: str = "127.0.0.1") -> None:
    with pytest.raises(ClientError, match=message) as caught:
        asyncio.run(connect(port, security, host))
    assert "PRIVATE" not in str(caught.value)


def test_an_unknown_authority(ports: list[int], created: Path) -> None:
    untrusting = properties(created, "client.properties", ssl_truststore_certificates=None, ssl_truststore_type=None)
    fails(ports[SASL_SSL], untrusting, r"is not trusted .*set ssl\.truststore\.location")


def test_a_trust_store_of_another_authority(ports: list[int], created: Path) -> None:
    other = properties(
        created, "client.properties", ssl_truststore_certificates=Authority("another", days=1).certificate
    )
    fails(ports[SASL_SSL], other, r"is not trusted .*does not contain the authority that issued it")


def test_another_host_name(ports: list[int], created: Path) -> None:
    settings = properties(created, "client-tls.properties")
    fails(ports[ELSEWHERE], settings, r"is not for 127\.0\.0\.2", host="127.0.0.2")


def test_no_client_certificate(ports: list[int], created: Path) -> None:
    anonymous = properties(created, "client-tls.properties", ssl_keystore_key=None, ssl_keystore_certificate_chain=None)
    fails(ports[SSL], anonymous, NO_CERTIFICATE)


def test_wrong_protocols(ports: list[int], created: Path) -> None:
    with_tls, plaintext = properties(created, "client-tls.properties"), SecuritySettings()
    fails(ports[PLAINTEXT], with_tls, "closed the connection during the TLS handshake; check that it is a listener")
    fails(ports[SASL_SSL], plaintext, r"\(closed by the broker\); check that a broker listens there, and as PLAINTEXT$")
    fails(ports[SSL], properties(created, "client.properties"), NO_CERTIFICATE)


def test_a_wrong_password(ports: list[int], created: Path) -> None:
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="admin" password="canary";'
    with pytest.raises(AuthenticationError, match="refuses the SCRAM-SHA-512 login") as caught:
        asyncio.run(connect(ports[SASL_SSL], properties(created, "client.properties", sasl_jaas_config=jaas)))
    assert "canary" not in str(caught.value)

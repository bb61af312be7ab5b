"""kafka-delegation-tokens at a broker of ours, and Java's login with the token that it creates."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.clients import building
from tests.interop.clients.driver import Driver, DriverError, Limits
from tests.interop.clients.security import SECURE, Development, Login, SecureBroker, secure_barnabas
from tests.support.kafka.apache_kafka import Kafka, KafkaError
from tests.support.tls import write_private

pytestmark = pytest.mark.timeout(300)

_PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="pencil";'


@pytest.fixture(scope="module")
def development(tmp_path_factory: pytest.TempPathFactory) -> Development:
    return Development(tmp_path_factory.mktemp("development"))


@pytest.fixture(scope="module")
def broker(development: Development, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with secure_barnabas(development, tmp_path_factory.mktemp("broker")) as broker:
        yield broker


def test_a_token_of_kafkas_tool_logs_in_until_it_expires(
    broker: SecureBroker, development: Development, tmp_path: Path
) -> None:
    properties = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": development.ca,
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": _PLAIN,
    }
    config = write_private(
        tmp_path / "client.properties", "".join(f"{name}={value}\n" for name, value in properties.items())
    )
    kafka = Kafka("4.3.0", tmp_path / "unused", tmp_path)

    def tokens(*arguments: str) -> str:
        tool = "org.apache.kafka.tools.DelegationTokenCommand"
        options = ("--bootstrap-server", broker.bootstrap(SECURE), "--command-config", str(config))
        return kafka.tool(tool, *options, *arguments)

    created = tokens("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    row = re.search(r"^(\S+) +(\S+) +User:alice +User:alice +\[User:bob\] ", created, re.MULTILINE)
    assert row is not None, created
    token_id, hmac = row.groups()
    assert len(base64.b64decode(hmac)) == 64  # HMAC-SHA-512

    assert token_id in tokens("--describe", "--owner-principal", "User:alice")
    assert token_id not in tokens("--describe", "--owner-principal", "User:carol")
    assert "Completed renew operation" in tokens("--renew", "--renew-time-period", "3600000", "--hmac", hmac)

    login = Login(development.ca, mechanism="SCRAM-SHA-512", user=token_id, password=hmac, is_delegated=True)
    driver = Driver(building.java("4.3.0", "Secure"), tmp_path, Limits())
    try:
        assert broker.attempt(driver, SECURE, login, "by-token") == ["by-token"]
        with pytest.raises(DriverError, match="SaslAuthenticationException"):
            broker.attempt(driver, SECURE, login.but(is_delegated=False), "refused")
        assert "Completed expire operation" in tokens("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
        with pytest.raises(DriverError, match="SaslAuthenticationException"):
            broker.attempt(driver, SECURE, login, "refused")
    finally:
        driver.close()
    with pytest.raises(KafkaError, match="DelegationTokenNotFoundException"):
        tokens("--renew", "--renew-time-period", "-1", "--hmac", hmac)

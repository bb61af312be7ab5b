"""A broker on the files that `barnabas security init` writes, and clients with the files that belong to it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.config.security.jaas import parse_jaas
from tests.support.daemon import Daemon
from tests.support.development import created, entries

__all__ = ["created"]  # a fixture


@pytest.fixture(scope="module")
def broker(created: Path) -> Iterator[Daemon]:
    daemon = Daemon(
        created.parent / "broker",
        {
            **entries(created / "server.properties"),
            "listeners": "SASL_SSL://127.0.0.1:0,SSL://127.0.0.1:0",
            "advertised.listeners": "SASL_SSL://127.0.0.1:0,SSL://127.0.0.1:0",
        },
    )
    with daemon:
        yield daemon


def librdkafka(path: Path, port: int, **settings: str) -> dict[str, Any]:
    """Return librdkafka's settings for a client's file of Kafka's names."""
    kafka = entries(path)
    jaas = kafka.get("sasl.jaas.config")
    login = {} if jaas is None else parse_jaas(jaas).options
    ours = {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "security.protocol": kafka["security.protocol"],
        "sasl.mechanism": kafka.get("sasl.mechanism"),
        "sasl.username": login.get("username"),
        "sasl.password": login.get("password"),
        "ssl.ca.pem": kafka["ssl.truststore.certificates"],
        "ssl.key.pem": kafka.get("ssl.keystore.key"),
        "ssl.certificate.pem": kafka.get("ssl.keystore.certificate.chain"),
        "ssl.endpoint.identification.algorithm": "https",
        "log_level": 0,
    }
    return {name: value for name, value in {**ours, **settings}.items() if value is not None}


def ports(broker: Daemon) -> list[int]:
    return [int(found) for found in re.findall(r"listening, listener=\S+ port=(\d+)", broker.log)]


@pytest.mark.parametrize(("file", "listener"), [("client.properties", 0), ("client-tls.properties", 1)])
def test_each_clients_file_connects_as_the_super_user(broker: Daemon, created: Path, file: str, listener: int) -> None:
    admin = AdminClient(librdkafka(created / file, ports(broker)[listener]))

    (created_topic,) = admin.create_topics([NewTopic(f"by-{listener}", 1)]).values()
    created_topic.result(30)
    assert f"by-{listener}" in admin.list_topics(timeout=30).topics


def test_a_wrong_password_is_refused(broker: Daemon, created: Path) -> None:
    errors: list[str] = []
    settings = librdkafka(created / "client.properties", ports(broker)[0], **{"sasl.password": "wrong"})
    settings["error_cb"] = lambda error: errors.append(error.name())
    admin = AdminClient(settings)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=1)
    deadline = time.monotonic() + 30
    while "_AUTHENTICATION" not in errors and time.monotonic() < deadline:
        admin.poll(0.1)
    assert "_AUTHENTICATION" in errors
    password = librdkafka(created / "client.properties", 0)["sasl.password"]
    assert password not in broker.log

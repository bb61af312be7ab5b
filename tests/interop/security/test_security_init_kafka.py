"""The directory of `barnabas security init`: Apache Kafka reads its key stores, its properties and its user, too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from barnabas.commands.main import main
from barnabas.config.properties_file import parse_properties
from tests.commands.security.test_security_init_broker import librdkafka
from tests.support.daemon import start_daemon
from tests.support.kafka.apache_kafka import Kafka, need_kafka

pytestmark = pytest.mark.timeout(300)

LISTENERS = {"client.properties": "SASL_SSL", "client-tls.properties": "SSL"}
SHARED = ("ssl.", "sasl.", "listener.name.", "authorizer.", "delegation.", "connections.max.reauth.ms", "super.users")


def security_entries(port: int, created: Path) -> dict[str, tuple[Any, ...]]:
    """Return value, source and sensitivity of each property of security that both describe."""
    admin = AdminClient(librdkafka(created / "client.properties", port))
    (described,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, "1")]).values()
    return {
        name: (entry.value, entry.source, entry.is_sensitive, entry.is_read_only)
        for name, entry in described.result(30).items()
        if name.startswith(SHARED)
    }


def test_kafka_serves_the_directory_and_describes_the_same_properties(tmp_path: Path) -> None:
    need_kafka("4.3.0")
    created = tmp_path / "secure"
    result = CliRunner().invoke(main, ["security", "init", str(created), "--host", "127.0.0.1"])
    assert result.exit_code == 0, result.output
    settings = {entry.key: entry.value for entry in parse_properties((created / "server.properties").read_text())}
    for name in ("listeners", "advertised.listeners", "log.dirs"):
        del settings[name]
    # The listener between Kafka's broker and controller is PLAINTEXT.
    settings["super.users"] += ";User:ANONYMOUS"
    settings["delegation.token.secret.key"] = "swordfish"

    kafka = Kafka("4.3.0", created / "data", tmp_path / "kafka")
    kafka.settings |= settings
    kafka.extra_listeners = {name: name for name in LISTENERS.values()}
    with kafka.running():
        for file, name in LISTENERS.items():
            admin = AdminClient(librdkafka(created / file, kafka.extra_ports[name]))
            assert admin.list_topics(timeout=30).brokers, name
        theirs = security_entries(kafka.extra_ports["SASL_SSL"], created)

    ours_listeners = {
        "listeners": "SASL_SSL://127.0.0.1:0,SSL://127.0.0.1:0",
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,SSL:SSL",
    }
    words = [f"{name}={value}" for name, value in {**settings, **ours_listeners}.items()]
    with start_daemon(tmp_path / "barnabas", *words, f"log.dirs={created / 'data'}") as daemon:
        ports = [int(found) for found in re.findall(r"listening, listener=\S+ port=(\d+)", daemon.log)]
        ours = security_entries(ports[0], created)

    both = set(ours) & set(theirs)
    assert {name for name in settings if name.startswith(SHARED)} <= both
    different = {name: (ours[name], theirs[name]) for name in sorted(both) if ours[name] != theirs[name]}
    # Kafka's authorizer reads super.users without defining it, and Kafka hides what is not defined.
    assert set(different) == {"super.users"}

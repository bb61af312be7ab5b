"""Key stores that are altered while the broker runs: refused ones, and those that new connections get immediately."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from barnabas.clients.security.authority import Authority
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import OP_DELETE, OP_SET
from tests.broker.kafka.test_kafka_configs import THIS_BROKER, alter
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire

LOCATION = "listener.name.tls.ssl.keystore.location"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("stores")
    authority = Authority("test", 10)
    for name, hosts in (
        ("first", ["broker.test", "localhost"]),
        ("second", ["broker.test", "localhost"]),
        ("other-name", ["other.test", "localhost"]),
        ("fewer-names", ["broker.test"]),
    ):
        (directory / f"{name}.pem").write_text(authority.server(hosts, 1))
        (directory / f"{name}.pem").chmod(0o600)
    (directory / "broken.pem").write_text("no certificate")
    return directory


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, stores: Path) -> Iterator[Daemon]:
    with start_daemon(
        tmp_path_factory.mktemp("broker"),
        "listeners=PLAIN://127.0.0.1:0,TLS://127.0.0.1:0",
        "listener.security.protocol.map=PLAIN:PLAINTEXT,TLS:SSL",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={stores / 'first.pem'}",
    ) as daemon:
        yield daemon


@pytest.fixture
def kafka(broker: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(broker.host, broker.port) as client:
        yield client


def served(broker: Daemon) -> int:
    """Return the serial number of the certificate that a new connection gets."""
    (port,) = re.findall(r"listening, listener=TLS\S+ port=(\d+)", broker.log)
    return x509.load_pem_x509_certificate(ssl.get_server_certificate((broker.host, int(port))).encode()).serial_number


def serial(stores: Path, name: str) -> int:
    return x509.load_pem_x509_certificates((stores / f"{name}.pem").read_bytes())[0].serial_number


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing", "missing.pem"),
        ("broken", "broken.pem"),
        ("other-name", "the new certificate's name is CN=other.test, not CN=broker.test"),
        ("fewer-names", "the new certificate lacks the subject alternative names localhost"),
    ],
)
def test_a_key_store_that_cannot_replace_the_current_one_is_refused(
    kafka: KafkaWire, broker: Daemon, stores: Path, name: str, words: str
) -> None:
    code, message = alter(kafka, THIS_BROKER, OP_SET, LOCATION, str(stores / f"{name}.pem"))

    assert code == ErrorCode.INVALID_REQUEST
    assert (message or "").startswith("the listener TLS could not serve TLS: ")
    assert words in (message or "")
    assert served(broker) == serial(stores, "first")


def test_new_connections_get_an_altered_key_store_immediately(kafka: KafkaWire, broker: Daemon, stores: Path) -> None:
    assert alter(kafka, THIS_BROKER, OP_SET, LOCATION, str(stores / "second.pem")) == (ErrorCode.NONE, None)
    assert served(broker) == serial(stores, "second")
    assert alter(kafka, THIS_BROKER, OP_DELETE, LOCATION) == (ErrorCode.NONE, None)
    assert served(broker) == serial(stores, "first")


def test_a_validation_alone_changes_nothing(kafka: KafkaWire, broker: Daemon, stores: Path) -> None:
    location = str(stores / "second.pem")

    assert alter(kafka, THIS_BROKER, OP_SET, LOCATION, location, validate_only=True)[0] == ErrorCode.NONE
    assert served(broker) == serial(stores, "first")


def test_a_broken_file_does_not_block_other_changes(kafka: KafkaWire, stores: Path) -> None:
    path = stores / "first.pem"
    content = path.read_text()
    try:
        path.write_text("half a")
        assert alter(kafka, THIS_BROKER, OP_SET, "log.cleaner.threads", "2")[0] == ErrorCode.NONE
    finally:
        path.write_text(content)


def test_what_a_client_may_not_alter_reads_no_files(tmp_path: Path, stores: Path) -> None:
    """A pipe, or a key of endless derivation, would hold up the broker; what files contain would show in the error."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with (
        start_daemon(
            tmp_path / "broker",
            "listeners=PLAIN://127.0.0.1:0,TLS://127.0.0.1:0",
            "listener.security.protocol.map=PLAIN:PLAINTEXT,TLS:SSL",
            "ssl.keystore.type=PEM",
            f"ssl.keystore.location={stores / 'first.pem'}",
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        ) as broker,
        KafkaWire(broker.host, broker.port) as kafka,
    ):
        for name, value in (
            (LOCATION, str(tmp_path / "missing.pem")),
            (LOCATION, str(pipe)),
            ("listener.name.tls.ssl.key.password", "${env:HOME}"),
        ):
            code, message = alter(kafka, THIS_BROKER, OP_SET, name, value)
            assert code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            assert message == "Cluster authorization failed."

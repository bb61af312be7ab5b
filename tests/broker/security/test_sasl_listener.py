"""A SASL listener of a real broker: librdkafka and kafka-python as clients, users that change, hostile peers."""

from __future__ import annotations

import random
import re
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from barnabas.protocol.sasl.scram_client import ScramClient
from barnabas.protocol.sasl.scram_keys import SCRAM_MECHANISMS, SCRAM_SHA_256, salted_password
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, request_frame, schema
from tests.support.metrics import metric, wait_for_metric

PLAIN_USERS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="pencil" user_bob="crayon";'
MAX_RECEIVE_BYTES = 12_000
PEERS = 200
LIFETIME_MS = 1500


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(
        tmp_path_factory.mktemp("sasl"),
        "listeners=OPEN://127.0.0.1:0,SECURE://127.0.0.1:0,LIMITED://127.0.0.1:0",
        "listener.security.protocol.map=OPEN:PLAINTEXT,SECURE:SASL_PLAINTEXT,LIMITED:SASL_PLAINTEXT",
        f"listener.name.limited.plain.sasl.jaas.config={PLAIN_USERS}",
        f"listener.name.limited.connections.max.reauth.ms={LIFETIME_MS}",
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        f"listener.name.secure.plain.sasl.jaas.config={PLAIN_USERS}",
        f"sasl.server.max.receive.size={MAX_RECEIVE_BYTES}",
        "connection.failed.authentication.delay.ms=20",
    ) as daemon:
        yield daemon
        assert "a bug" not in daemon.log
        assert "Traceback" not in daemon.log


def port_of(daemon: Daemon, listener: str) -> int:
    found = re.search(rf"listener={listener}://127\.0\.0\.1:0 port=(\d+)", daemon.log)
    assert found is not None
    return int(found[1])


@pytest.fixture(scope="module")
def port(daemon: Daemon) -> int:
    """The port of the listener whose sessions have no limit."""
    return port_of(daemon, "SECURE")


def set_password(daemon: Daemon, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> None:
    kinds = schema("alter_user_scram_credentials", 0, "request")
    scram = SCRAM_MECHANISMS[mechanism]
    change = kinds.ScramCredentialUpsertion(
        name=user,
        mechanism=scram.code,
        iterations=4096,
        salt=b"some salt",
        salted_password=salted_password(scram, password, b"some salt", 4096),
    )
    with KafkaWire(daemon.host, daemon.port) as kafka:
        (result,) = kafka.call("alter_user_scram_credentials", 0, deletions=(), upsertions=(change,)).results
    assert result.error_code.value == 0, result


def delete_user(daemon: Daemon, user: str) -> None:
    kinds = schema("alter_user_scram_credentials", 0, "request")
    deletion = kinds.ScramCredentialDeletion(name=user, mechanism=SCRAM_SHA_256.code)
    with KafkaWire(daemon.host, daemon.port) as kafka:
        (result,) = kafka.call("alter_user_scram_credentials", 0, deletions=(deletion,), upsertions=()).results
    assert result.error_code.value == 0, result


def log_in(kafka: KafkaWire, user: str, password: str) -> int:
    """Log in by SCRAM-SHA-256; return the error code of the last answer."""
    assert kafka.call("sasl_handshake", 1, mechanism="SCRAM-SHA-256").error_code.value == 0
    client = ScramClient(SCRAM_SHA_256, user, password)
    message: bytes | None = client.start()
    while message is not None:
        answer = kafka.call("sasl_authenticate", 2, auth_bytes=message)
        if answer.error_code.value != 0:
            return int(answer.error_code.value)
        message = client.respond(answer.auth_bytes)
    return 0


def rdkafka(port: int, user: str, password: str, mechanism: str = "PLAIN") -> dict[str, Any]:
    return {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_librdkafka_produces_and_consumes_with(daemon: Daemon, port: int, mechanism: str) -> None:
    if mechanism != "PLAIN":
        set_password(daemon, "alice", "pencil", mechanism)
    topic = f"rdkafka-{mechanism}"
    producer = Producer(rdkafka(port, "alice", "pencil", mechanism))
    failures: list[KafkaError] = []
    producer.produce(topic, b"hello", on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(30) == 0
    assert not failures
    consumer = Consumer(
        {**rdkafka(port, "alice", "pencil", mechanism), "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    message = consumer.poll(30)
    assert message is not None
    assert message.value() == b"hello"
    consumer.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_kafka_python_produces_and_consumes_with(daemon: Daemon, port: int, mechanism: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    if mechanism != "PLAIN":
        set_password(daemon, "alice", "pencil", mechanism)
    settings: Any = {
        "bootstrap_servers": f"127.0.0.1:{port}",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": "pencil",
    }
    topic = f"python-{mechanism}"
    with KafkaProducer(**settings) as producer:
        producer.send(topic, b"hello").get(30)
    with KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=30_000, **settings) as consumer:
        assert next(consumer).value == b"hello"


@pytest.mark.parametrize(
    ("user", "password", "mechanism", "sentence"),
    [
        ("alice", "wrong", "PLAIN", "Authentication failed: Invalid username or password"),
        (
            "nobody",
            "wrong",
            "SCRAM-SHA-256",
            "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256",
        ),
        ("alice", "pencil", "OAUTHBEARER", "broker's supported mechanisms: PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"),
    ],
)
def test_librdkafka_shows_why_it_is_refused(port: int, user: str, password: str, mechanism: str, sentence: str) -> None:
    errors: list[KafkaError] = []
    settings = rdkafka(port, user, password, mechanism)
    if mechanism == "OAUTHBEARER":
        del settings["sasl.username"], settings["sasl.password"]
        settings["enable.sasl.oauthbearer.unsecure.jwt"] = "true"
        settings["sasl.oauthbearer.config"] = "principal=alice"
    settings["error_cb"] = errors.append
    admin = AdminClient(settings)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=1)
    deadline = time.monotonic() + 30
    while not errors and time.monotonic() < deadline:
        admin.poll(0.1)
    assert sentence in str(errors[0])
    assert errors[0].code() == KafkaError._AUTHENTICATION


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_kafka_python_is_refused(daemon: Daemon, port: int) -> None:
    from kafka import KafkaConsumer
    from kafka.errors import KafkaError as PythonKafkaError

    with pytest.raises(PythonKafkaError):
        KafkaConsumer(
            bootstrap_servers=f"127.0.0.1:{port}",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="alice",
            sasl_plain_password="wrong",
            bootstrap_timeout_ms=1000,
        )


def test_changes_of_users_hold_from_the_next_login_on(daemon: Daemon, port: int) -> None:
    def attempt(password: str) -> int:
        with KafkaWire(daemon.host, port) as kafka:
            return log_in(kafka, "carol", password)

    set_password(daemon, "carol", "first")
    with KafkaWire(daemon.host, port) as connected:
        assert log_in(connected, "carol", "first") == 0
        set_password(daemon, "carol", "second")
        assert (attempt("first"), attempt("second")) == (58, 0)
        delete_user(daemon, "carol")
        assert attempt("second") == 58
        # As in Kafka, what is connected stays connected.
        assert connected.call("metadata", 4, topics=(), allow_auto_topic_creation=False).brokers


def test_users_of_plain_are_replaced_while_the_broker_runs(daemon: Daemon, port: int) -> None:
    def attempt(password: str) -> int:
        with KafkaWire(daemon.host, port) as kafka:
            kafka.call("sasl_handshake", 1, mechanism="PLAIN")
            answer = kafka.call("sasl_authenticate", 2, auth_bytes=f"\0dora\0{password}".encode())
            return int(answer.error_code.value)

    name = "listener.name.secure.plain.sasl.jaas.config"
    kinds = schema("incremental_alter_configs", 1, "request")

    def alter(operation: int, value: str | None) -> None:
        entry = kinds.AlterableConfig(name=name, config_operation=operation, value=value)
        resource = kinds.AlterConfigsResource(resource_type=4, resource_name="1", configs=(entry,))
        with KafkaWire(daemon.host, daemon.port) as kafka:
            (result,) = kafka.call("incremental_alter_configs", 1, resources=(resource,), validate_only=False).responses
        assert result.error_code.value == 0, result

    assert attempt("new") == 58
    alter(0, PLAIN_USERS.replace("user_alice", "user_dora").replace("pencil", "new"))
    assert (attempt("new"), attempt("old")) == (0, 58)
    alter(1, None)
    assert attempt("new") == 58


def test_librdkafka_reauthenticates_while_it_produces(daemon: Daemon) -> None:
    """librdkafka does so at 90 % of the lifetime: it is never disconnected, and no record is lost."""
    producer = Producer(rdkafka(port_of(daemon, "LIMITED"), "alice", "pencil"))
    labels = '{listener="LIMITED",mechanism="PLAIN"}'
    delivered: list[KafkaError | None] = []
    deadline = time.monotonic() + 30
    sent = 0
    while (metric(daemon, f"barnabas_reauthentications_total{labels}") or 0) < 2:
        assert time.monotonic() < deadline
        producer.produce("limited", b"x", on_delivery=lambda error, _: delivered.append(error))
        sent += 1
        producer.poll(0.02)
    assert producer.flush(30) == 0
    assert delivered == [None] * sent
    assert metric(daemon, f"barnabas_sessions_expired_total{labels}") is None
    assert metric(daemon, f"barnabas_reauthentications_failed_total{labels}") is None


def test_authentications_are_counted(daemon: Daemon, port: int) -> None:
    set_password(daemon, "erin", "right")
    labels = '{listener="SECURE",mechanism="SCRAM-SHA-256"}'
    good = metric(daemon, f"barnabas_authentications_total{labels}") or 0
    bad = metric(daemon, f"barnabas_authentications_failed_total{labels}") or 0
    with KafkaWire(daemon.host, port) as kafka:
        assert log_in(kafka, "erin", "right") == 0
    with KafkaWire(daemon.host, port) as kafka:
        assert log_in(kafka, "erin", "wrong") == 58
    wait_for_metric(daemon, f"barnabas_authentications_total{labels}", good + 1)
    wait_for_metric(daemon, f"barnabas_authentications_failed_total{labels}", bad + 1)


def test_peers_that_never_finish_do_not_keep_others_out(daemon: Daemon, port: int) -> None:
    set_password(daemon, "alice", "pencil")
    handshake = request_frame(schema("sasl_handshake", 1, "request").SaslHandshakeRequest(mechanism="PLAIN"), 1)
    idle = [socket.create_connection((daemon.host, port)) for _ in range(PEERS)]
    for number, peer in enumerate(idle):
        peer.sendall(handshake[: number % len(handshake)])
    with KafkaWire(daemon.host, port) as kafka:
        assert log_in(kafka, "alice", "pencil") == 0
    for peer in idle:
        peer.close()


def test_a_frame_above_the_limit_closes_the_connection(daemon: Daemon, port: int) -> None:
    set_password(daemon, "alice", "pencil")
    with socket.create_connection((daemon.host, port)) as peer:
        peer.sendall(struct.pack(">i", MAX_RECEIVE_BYTES + 1))
        assert peer.recv(1) == b""
    # The line names the property, unless another test had a malformed frame in the same window: then it is a count.
    assert "a malformed frame" in daemon.log
    with KafkaWire(daemon.host, port) as kafka:
        assert log_in(kafka, "alice", "pencil") == 0
        names = tuple(f"topic-{number:030}" for number in range(MAX_RECEIVE_BYTES // 32))
        kio = schema("metadata", 4, "request")
        topics = tuple(kio.MetadataRequestTopic(name=name) for name in names)
        answer = kafka.call("metadata", 4, topics=topics, allow_auto_topic_creation=False)
        assert len(answer.topics) == len(names)


def test_mutated_logins_are_refused_and_harm_nobody(daemon: Daemon, port: int) -> None:
    """Only the changed bytes of a login's own payload may be accepted by chance: none is here."""
    set_password(daemon, "alice", "pencil")
    generator = random.Random(16)
    kinds = schema("sasl_handshake", 1, "request")
    authenticate = schema("sasl_authenticate", 2, "request")
    frames = (
        request_frame(kinds.SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1),
        request_frame(authenticate.SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=abcdef"), 2),
        request_frame(authenticate.SaslAuthenticateRequest(auth_bytes=b"c=biws,r=abcdef,p=AAAA"), 3),
    )
    for _ in range(150):
        data = bytearray(b"".join(frames))
        for _ in range(generator.randint(1, 6)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        with socket.create_connection((daemon.host, port), timeout=30) as peer:
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            try:
                while peer.recv(65536):
                    pass
            except ConnectionResetError:
                pass
    with KafkaWire(daemon.host, port) as kafka:
        assert log_in(kafka, "alice", "pencil") == 0


def test_a_broker_that_only_reads_has_the_users_of_its_directory(tmp_path: Path) -> None:
    settings = ("listeners=OPEN://127.0.0.1:0,SECURE://127.0.0.1:0", "sasl.enabled.mechanisms=SCRAM-SHA-256")
    protocols = "listener.security.protocol.map=OPEN:PLAINTEXT,SECURE:SASL_PLAINTEXT"
    with start_daemon(tmp_path, *settings, protocols) as first:
        set_password(first, "alice", "pencil")
    (tmp_path / "daemon.log").unlink()
    with start_daemon(tmp_path, *settings, protocols, "read.only=true") as second:
        for password, code in (("pencil", 0), ("wrong", 58)):
            with KafkaWire(second.host, port_of(second, "SECURE")) as kafka:
                assert log_in(kafka, "alice", password) == code

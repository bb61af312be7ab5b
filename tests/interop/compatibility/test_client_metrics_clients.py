"""Unmodified tools and clients with client metrics, loggers, committed offsets and features.

kafka-client-metrics makes a subscription, Java's producer and librdkafka push, and /metrics shows what arrived.
"""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.apache_kafka import Kafka

CLIENT_METRICS = "org.apache.kafka.tools.ClientMetricsCommand"
CONFIGS = "kafka.admin.ConfigCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
WAIT_S = 60.0


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Kafka:
    directory = tmp_path_factory.mktemp("tools")
    return Kafka("4.3.0", directory / "unused", directory / "scratch")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("broker"), "client.metrics.enable=true") as daemon:
        yield daemon


def page(broker: Daemon) -> str:
    """Return /metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{broker.metrics_port}/metrics", timeout=WAIT_S) as answer:
        return str(answer.read().decode())


def wait_for_metrics(broker: Daemon, client: str, prefix: str) -> None:
    """Poll until /metrics has a metric of the client with that prefix."""
    deadline = time.monotonic() + WAIT_S
    while not any(f'client="{client}"' in line and f'metric="{prefix}' in line for line in page(broker).splitlines()):
        assert time.monotonic() < deadline, page(broker)
        time.sleep(0.1)  # polling another process with a deadline


def test_java_and_librdkafka_push_the_metrics_of_a_subscription_that_kafkas_tool_made(
    kafka: Kafka, broker: Daemon, tmp_path: Path
) -> None:
    tool = (CLIENT_METRICS, "--bootstrap-server", broker.bootstrap)
    made = kafka.tool(*tool, "--alter", "--name", "all", "--metrics", "org.apache.kafka", "--interval", "500")
    assert "Altered client metrics config for all." in made
    assert kafka.tool(*tool, "--list").split() == ["all"]
    assert "interval.ms=500" in kafka.tool(*tool, "--describe", "--name", "all")

    stop = tmp_path / "stop"
    printed: list[str] = []
    java = threading.Thread(
        target=lambda: printed.append(
            kafka.java_program("PushMetrics", broker.bootstrap, "pushed", str(stop), str(int(WAIT_S)))
        )
    )
    java.start()
    try:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap, "client.id": "rd-pusher", "enable.metrics.push": True}
        )
        producer.produce("pushed", b"v")
        assert producer.flush(WAIT_S) == 0
        wait_for_metrics(broker, "rd-pusher", "org.apache.kafka.")
        wait_for_metrics(broker, "java-pusher", "org.apache.kafka.producer.")
    finally:
        stop.touch()
        java.join(WAIT_S)
    assert f'instance="{printed[0].strip()}"' in page(broker)
    assert 'barnabas_client_metrics_errors_total{error="invalid' not in page(broker)

    kafka.tool(*tool, "--delete", "--name", "all")
    assert kafka.tool(*tool, "--list").split() == []


def test_kafka_configs_describes_and_alters_loggers(kafka: Kafka, broker: Daemon) -> None:
    tool = (CONFIGS, "--bootstrap-server", broker.bootstrap, "--entity-type", "broker-loggers", "--entity-name", "1")
    kafka.tool(*tool, "--alter", "--add-config", "barnabas.broker.loggers=DEBUG")
    assert "barnabas.broker.loggers=DEBUG" in kafka.tool(*tool, "--describe")
    kafka.tool(*tool, "--alter", "--delete-config", "barnabas.broker.loggers")
    assert "barnabas.broker.loggers=INFO" in kafka.tool(*tool, "--describe")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_kafka_consumer_groups_deletes_offsets_of_groups_of_both_protocols(
    kafka: Kafka, broker: Daemon, protocol: str
) -> None:
    topic, group = f"read-{protocol}", f"readers-{protocol}"
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"v")
    assert producer.flush(WAIT_S) == 0
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**settings, "group.protocol": protocol})
    consumer.subscribe([topic])
    try:
        deadline = time.monotonic() + WAIT_S
        while (message := consumer.poll(1.0)) is None or message.error():
            assert time.monotonic() < deadline
        consumer.commit(message=message, asynchronous=False)
        tool = (GROUPS, "--bootstrap-server", broker.bootstrap, "--group", group)
        delete = ("--delete-offsets", "--topic", topic)
        assert "GROUP_SUBSCRIBED_TO_TOPIC" in (said := kafka.tool(*tool, *delete)) or "subscribed" in said, said
    finally:
        consumer.close()
    said = kafka.tool(*tool, *delete)
    assert "Request succeeded for deleting offsets" in said, said
    assert topic not in kafka.tool(*tool, "--describe", "--offsets")


def test_kafka_features_upgrades_and_downgrades(kafka: Kafka, broker: Daemon) -> None:
    tool = (FEATURES, "--bootstrap-server", broker.bootstrap)
    kafka.tool(*tool, "downgrade", "--feature", "transaction.version=1")
    assert "transaction.version" in (said := kafka.tool(*tool, "describe"))
    assert "FinalizedVersionLevel: 1" in next(line for line in said.splitlines() if "transaction.version" in line)
    kafka.tool(*tool, "upgrade", "--feature", "transaction.version=2")
    said = kafka.tool(*tool, "describe")
    assert "FinalizedVersionLevel: 2" in next(line for line in said.splitlines() if "transaction.version" in line)

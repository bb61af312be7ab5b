"""Kafka's consumer in a group of Barnabas, and kafka-consumer-groups on that group."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.daemon import start_daemon
from tests.support.kafka.apache_kafka import Kafka

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.mark.parametrize("version", ["4.3.0", "3.9.1"])
def test_a_java_consumer_joins_reads_commits_and_is_described(tmp_path: Path, version: str) -> None:
    from confluent_kafka import Producer

    kafka = Kafka(version, tmp_path / "kafka", tmp_path / "scratch")
    with start_daemon(tmp_path / "ours") as daemon:
        daemon.create_topic("t", partitions=2)
        producer = Producer({"bootstrap.servers": daemon.bootstrap})
        for number in range(20):
            producer.produce("t", str(number).encode(), partition=number % 2)
        assert producer.flush(30) == 0
        reading = ["--bootstrap-server", daemon.bootstrap, "--topic", "t", "--group", "java", "--from-beginning"]
        read = kafka.tool(CONSUMER, *reading, "--max-messages", "20", "--timeout-ms", "30000")
        assert sorted(map(int, read.split())) == list(range(20))
        described = kafka.tool(GROUPS, "--bootstrap-server", daemon.bootstrap, "--describe", "--group", "java")
        rows = [line.split()[:6] for line in described.splitlines() if line.startswith("java ")]
        assert sorted(rows) == [["java", "t", str(number), "10", "10", "0"] for number in range(2)]
        stated = kafka.tool(GROUPS, "--bootstrap-server", daemon.bootstrap, "--describe", "--group", "java", "--state")
        assert "Empty" in stated

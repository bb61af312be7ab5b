"""Kafka's consumer with `group.protocol=consumer` and Kafka's tools on Barnabas, and Kafka on the resulting records."""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import Consumer, Producer

from barnabas.protocol.errors import ErrorCode
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.kafka_wire import KafkaWire

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
FEATURES = "org.apache.kafka.tools.FeatureCommand"

PARTITIONS = 4
RECORDS = 40


def produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce("t", str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def wait_until_loaded(daemon: Daemon) -> None:
    """Retry while the groups are loading, as clients do; the connection's timeout limits it."""
    with KafkaWire(daemon.host, daemon.port) as wire:
        while wire.call("list_groups", 0).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass


def test_a_java_consumer_of_the_new_protocol_reads_commits_and_is_described_and_kafka_goes_on_with_its_group(
    tmp_path: Path,
) -> None:
    kafka = Kafka("4.3.0", tmp_path / "ours" / "data", tmp_path / "scratch")
    with start_daemon(tmp_path / "ours") as daemon:
        daemon.create_topic("t", partitions=PARTITIONS)
        produce(daemon.bootstrap)
        server = ["--bootstrap-server", daemon.bootstrap]
        reading = [*server, "--include", "t.*", "--group", "java", "--from-beginning"]
        new = ["--command-property", "group.protocol=consumer"]
        read = kafka.tool(CONSUMER, *reading, *new, "--max-messages", str(RECORDS), "--timeout-ms", "30000")
        assert sorted(map(int, read.split())) == list(range(RECORDS))
        listed = kafka.tool(GROUPS, *server, "--list", "--type")
        assert [line.split() for line in listed.splitlines() if "java" in line] == [["java", "Consumer"]]
        member = Consumer(
            {"bootstrap.servers": daemon.bootstrap, "group.id": "java", "group.protocol": "consumer", "client.id": "m"}
        )
        member.subscribe(["t"])
        deadline = time.monotonic() + 60
        while len(member.assignment()) != PARTITIONS:
            assert time.monotonic() < deadline, member.assignment()
            member.poll(0.1)
        described = kafka.tool(GROUPS, *server, "--describe", "--group", "java")
        rows = [line.split()[:6] for line in described.splitlines() if line.startswith("java ")]
        assert sorted(rows) == [["java", "t", str(number), "10", "10", "0"] for number in range(PARTITIONS)]
        members = kafka.tool(GROUPS, *server, "--describe", "--group", "java", "--members", "--verbose")
        (row,) = [line for line in members.splitlines() if line.startswith("java ")]
        assert f"t:{','.join(map(str, range(PARTITIONS)))}" in row
        stated = kafka.tool(GROUPS, *server, "--describe", "--group", "java", "--state", "--verbose")
        assert "uniform" in stated
        assert "Stable" in stated
        assert "group.version" in kafka.tool(FEATURES, *server, "describe")
        member.close()
    ensure_kafka_decodes(kafka, tmp_path / "ours" / "data")
    with kafka.running() as broker:
        server = ["--bootstrap-server", broker.bootstrap]
        kafka.tool(FEATURES, *server, "upgrade", "--feature", "group.version=1")
        listed = kafka.tool(GROUPS, *server, "--list", "--type")
        assert [line.split() for line in listed.splitlines() if "java" in line] == [["java", "Consumer"]]
        produce(broker.bootstrap)
        reading = [*server, "--include", "t.*", "--group", "java"]
        read = kafka.tool(CONSUMER, *reading, *new, "--max-messages", str(RECORDS), "--timeout-ms", "30000")
        assert sorted(map(int, read.split())) == list(range(RECORDS)), "the offsets that were committed here hold there"
    with start_daemon(tmp_path / "ours") as daemon:
        wait_until_loaded(daemon)
        server = ["--bootstrap-server", daemon.bootstrap]
        described = kafka.tool(GROUPS, *server, "--describe", "--group", "java")
        rows = [line.split()[:6] for line in described.splitlines() if line.startswith("java ")]
        assert sorted(rows) == [["java", "t", str(number), "20", "20", "0"] for number in range(PARTITIONS)]
        assert "group.version" in kafka.tool(FEATURES, *server, "describe")


def ensure_kafka_decodes(kafka: Kafka, data: Path) -> None:
    """Check that Kafka decodes every kind of group record."""
    decoded = ""
    for log in sorted(data.glob("__consumer_offsets-*/*.log")):
        if log.stat().st_size:
            decoded += kafka.tool(DUMP, "--offsets-decoder", "--files", str(log))
    for kind in ("3", "5", "6", "7", "8"):
        assert f'"type":"{kind}"' in decoded, decoded[-3000:]
    assert "unknown" not in decoded.lower()

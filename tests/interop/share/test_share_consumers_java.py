"""Kafka's share consumers on Barnabas: the console's, and KafkaShareConsumer in both acknowledgement modes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.apache_kafka import Kafka

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
CONFIGS = "kafka.admin.ConfigCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
RECORDS = 20


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Kafka:
    scratch = tmp_path_factory.mktemp("kafka")
    return Kafka("4.3.0", scratch / "data", scratch / "scratch")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(
        tmp_path_factory.mktemp("ours"),
        "initial.features=share.version=1",
        "share.coordinator.state.topic.num.partitions=2",
        "offsets.topic.num.partitions=2",
        "group.share.min.record.lock.duration.ms=1000",
        "group.share.record.lock.duration.ms=2000",
    ) as daemon:
        yield daemon


def produce(daemon: Daemon, topic: str, count: int = RECORDS) -> None:
    producer = Producer({"bootstrap.servers": daemon.bootstrap})
    for number in range(count):
        producer.produce(topic, f"{number:03d}".encode(), partition=number % 2)
    assert producer.flush(30) == 0


def begin_at_first(kafka: Kafka, daemon: Daemon, group: str) -> None:
    kafka.tool(
        CONFIGS,
        *("--bootstrap-server", daemon.bootstrap, "--alter", "--entity-type", "groups", "--entity-name", group),
        *("--add-config", "share.auto.offset.reset=earliest"),
    )


def test_the_console_share_consumer_reads_a_topic(kafka: Kafka, daemon: Daemon) -> None:
    daemon.create_topic("console", partitions=2)
    produce(daemon, "console")
    begin_at_first(kafka, daemon, "console")
    server = ("--bootstrap-server", daemon.bootstrap)
    reading = ("--topic", "console", "--group", "console", "--max-messages", str(RECORDS), "--timeout-ms", "30000")
    read = kafka.tool(CONSOLE, *server, *reading)
    assert sorted(read.split()) == [f"{number:03d}" for number in range(RECORDS)]


@pytest.mark.parametrize("mode", ["implicit", "explicit", "limit"])
def test_a_share_consumer_gets_each_record_until_it_acknowledges_it(kafka: Kafka, daemon: Daemon, mode: str) -> None:
    daemon.create_topic(mode, partitions=2)
    produce(daemon, mode)
    begin_at_first(kafka, daemon, mode)
    read = kafka.java_program("ShareConsumers", daemon.bootstrap, mode, mode, mode, str(RECORDS))
    delivered = sorted(line.split()[:2] for line in read.splitlines())
    expected = [[f"{number:03d}", "1"] for number in range(RECORDS)]
    if mode == "explicit":
        expected += [[f"{number:03d}", "2"] for number in range(RECORDS) if number % 10 == 1]  # released
        expected += [[f"{number:03d}", "1"] for number in range(RECORDS) if number % 10 == 3]  # renewed
    assert delivered == sorted(expected)


def test_records_of_a_member_that_died_are_delivered_again_and_kill_9_of_the_broker_loses_no_acknowledgement(
    kafka: Kafka, daemon: Daemon
) -> None:
    daemon.create_topic("killed", partitions=2)
    produce(daemon, "killed")
    begin_at_first(kafka, daemon, "killed")
    crashed = kafka.java_program("ShareConsumers", daemon.bootstrap, "killed", "killed", "crash", "1")
    lost = {line.split()[0] for line in crashed.splitlines()}
    assert lost
    daemon.restart(clean=False)
    read = kafka.java_program("ShareConsumers", daemon.bootstrap, "killed", "killed", "implicit", str(RECORDS))
    counts = dict(line.split()[:2] for line in read.splitlines())
    assert sorted(counts) == [f"{number:03d}" for number in range(RECORDS)]
    daemon.restart(clean=False)
    described = kafka.tool(GROUPS, "--bootstrap-server", daemon.bootstrap, "--describe", "--group", "killed")
    rows = [line.split() for line in described.splitlines() if line.startswith("killed")]
    assert [row[1:3] for row in rows] == [["killed", "0"], ["killed", "1"]]
    assert {row[-1] for row in rows} == {"0"}, "nothing is left to deliver"

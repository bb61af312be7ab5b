"""MirrorMaker 2 between Apache Kafka and Barnabas, in both directions."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.building import need
from tests.support.daemon import Daemon
from tests.support.ecosystem.exchange import PARTITIONS, WAIT_S, values
from tests.support.ecosystem.flow import OUTPUT, carry_through_kills, stored
from tests.support.ecosystem.recipes import recipe
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.jars import fetch_mirror_maker
from tests.support.program import Program

VERSION = "4.3.0"
TOTAL = 20_000
"""Records: MirrorMaker takes seconds to start, and has to be at work when the broker is killed."""


def mirror_maker(directory: Path, source: str, target: str) -> Program:
    """Return MirrorMaker 2, which copies the topic under its own name."""
    need("mvn", "MirrorMaker 2")
    directory.mkdir()
    properties = directory / "mm2.properties"
    properties.write_text(recipe("mirror-maker.md", broker=source, other_broker=target, orders=f"topics={OUTPUT}"))
    jars = f"{fetch_mirror_maker(VERSION)}/*"
    return Program(
        directory, ["java", "-Xmx512m", "-cp", jars, "org.apache.kafka.connect.mirror.MirrorMaker", str(properties)]
    )


def carry(daemon: Daemon, kafka: Kafka, directory: Path, *, to_kafka: bool) -> None:
    with kafka.running() as theirs:
        source, target = (daemon.bootstrap, theirs.bootstrap) if to_kafka else (theirs.bootstrap, daemon.bootstrap)
        admin = AdminClient({"bootstrap.servers": source})
        admin.create_topics([NewTopic(OUTPUT, PARTITIONS, 1)])[OUTPUT].result(30)
        producer = Producer({"bootstrap.servers": source, "reconnect.backoff.max.ms": 200})

        def send(value: str) -> None:
            producer.produce(OUTPUT, value, key=value)
            producer.poll(0)

        with mirror_maker(directory / "mirror-maker", source, target) as program:
            log_directory = kafka.log_dirs[0] if to_kafka else daemon.data_directory
            carry_through_kills(daemon, program, send, total=TOTAL, log_directory=log_directory)
        assert producer.flush(WAIT_S) == 0
    # As the source, too: a record that the broker lost may have been copied before the kill.
    assert not set(values(TOTAL)) - stored(daemon.data_directory, OUTPUT)


@pytest.fixture
def kafka(tmp_path: Path) -> Kafka:
    broker = Kafka(VERSION, tmp_path / "kafka-data", tmp_path / "kafka")
    broker.format()
    return broker


@pytest.mark.ecosystem("MirrorMaker 2", VERSION, "from Apache Kafka to Barnabas, killed too")
def test_mirror_maker_loses_nothing_on_the_way_to_a_broker_that_is_killed(
    daemon: Daemon, kafka: Kafka, tmp_path: Path
) -> None:
    carry(daemon, kafka, tmp_path, to_kafka=False)


@pytest.mark.ecosystem("MirrorMaker 2", VERSION, "from Barnabas to Apache Kafka, killed too")
def test_mirror_maker_loses_nothing_on_the_way_from_a_broker_that_is_killed(
    daemon: Daemon, kafka: Kafka, tmp_path: Path
) -> None:
    carry(daemon, kafka, tmp_path, to_kafka=True)

"""Directories of Apache Kafka that do not say all that a start needs: of ZooKeeper times, or without meta.properties.

Kafka 3.9.1 with a real ZooKeeper writes the former. Barnabas refuses them and changes no byte; what its refusal says to
do works for it and for Kafka.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from barnabas.commands.main import main
from tests.support.daemon import DaemonError, start_daemon
from tests.support.eventually import eventually
from tests.support.kafka.apache_kafka import Kafka, KafkaError, ZooKeeperKafka, need_kafka

pytestmark = pytest.mark.timeout(300)
WAIT_S = 60.0
YEAR_2020_MS: Final = 1_577_836_800_000
RECORDS = 300
NODE = 3
WANTED = {"customers": {"cleanup.policy": "compact", "segment.bytes": "16384"}, "kept": {"retention.ms": "-1"}}
HELD = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


def produce(bootstrap: str, topic: str) -> None:
    """Write old records of few keys, into several segments where they are small."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, bytes(500), f"k{number % 5}".encode(), 0, timestamp=YEAR_2020_MS + number)
        if number % 20 == 0:
            assert producer.flush(WAIT_S) == 0
    assert producer.flush(WAIT_S) == 0


def held_records(bootstrap: str, topic: str) -> int:
    """Return how many records of partition 0 a consumer reads."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    try:
        start, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), WAIT_S)
        consumer.assign([TopicPartition(topic, 0, start)])
        count, offset = 0, start
        while offset < end:
            (message,) = consumer.consume(1, WAIT_S)
            assert message.error() is None
            count, offset = count + 1, (message.offset() or 0) + 1
        return count
    finally:
        consumer.close()


def create(bootstrap: str, topic: str, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1, config=configs)])[topic].result(WAIT_S)


def tree(*directories: Path) -> dict[Path, bytes]:
    files = (path for directory in directories for path in directory.rglob("*"))
    return {path: path.read_bytes() for path in files if path.is_file() and path.name != ".lock"}


def test_a_directory_of_zookeeper_times_is_refused_and_then_adopted_without_a_loss(tmp_path: Path) -> None:
    need_kafka("3.9.1")
    data = tmp_path / "barnabas" / "data"
    kafka = ZooKeeperKafka("3.9.1", data, tmp_path / "kafka", node_id=NODE)
    with kafka.zookeeper(), kafka.running() as broker:
        for topic, configs in WANTED.items():
            create(broker.bootstrap, topic, **configs)
            produce(broker.bootstrap, topic)
    assert "version=0" in (data / "meta.properties").read_text()
    before = tree(data)
    with pytest.raises(DaemonError, match="--adopt-topics"):
        start_daemon(tmp_path / "barnabas")
    assert tree(data) == before
    told = CliRunner().invoke(main, ["doctor", "dir", str(data)])
    assert "barnabas: no: zookeeper" in told.stdout

    checks = ("log.retention.ms=1000", "log.retention.check.interval.ms=200", "log.initial.task.delay.ms=200")
    with start_daemon(tmp_path / "barnabas", "adopt.topics=true", *checks) as daemon:
        create(daemon.bootstrap, "forgotten")
        produce(daemon.bootstrap, "forgotten")
        log = tmp_path / "barnabas" / "daemon.log"  # whole, because retention writes many lines
        eventually(lambda: "deleting 1 segments of forgotten-0" in log.read_text(), what="a check of retention")
        assert {topic: held_records(daemon.bootstrap, topic) for topic in WANTED} == dict.fromkeys(WANTED, RECORDS)
        assert "are adopted, and until their configs are set nothing is deleted" in log.read_text()
        assert daemon.stop() == 0

    handed = Kafka("3.9.1", data, tmp_path / "kraft", node_id=NODE, log_retention_ms="1000")
    with handed.running() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for topic in WANTED:
            resource = ConfigResource(ResourceType.TOPIC, topic)
            described = admin.describe_configs([resource])[resource].result(WAIT_S)
            assert {name: described[name].value for name in HELD} == HELD
            assert held_records(broker.bootstrap, topic) == RECORDS


def deleted(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def garbage(path: Path) -> None:
    path.write_bytes(b"\x01\x02garbage")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 2])


@pytest.mark.parametrize("version", ["3.9.1", "4.3.0"])
def test_the_remedy_of_a_lost_meta_properties_gives_kafka_its_identity_back(tmp_path: Path, version: str) -> None:
    need_kafka(version)
    paths = (tmp_path / "barnabas" / "one", tmp_path / "barnabas" / "two")
    log_dirs = f"log.dirs={paths[0]},{paths[1]}"
    kafka = Kafka(version, paths, tmp_path / "kafka", node_id=NODE)
    cluster_id = kafka.format()
    with kafka.running() as broker:
        for topic in ("a", "b", "c"):  # a partition in each directory, and one more
            create(broker.bootstrap, topic)
        produce(broker.bootstrap, "a")
    texts = [set((path / "meta.properties").read_text().splitlines()) for path in paths]
    spoilers: tuple[Callable[[Path], None], ...] = (empty, garbage, cut, deleted)
    for spoil in spoilers:
        for path, text in zip(paths, texts, strict=True):
            spoil(path / "meta.properties")
            before = tree(*paths)
            with pytest.raises(DaemonError) as refused:
                start_daemon(tmp_path / "barnabas", log_dirs)
            assert tree(*paths) == before
            if spoil is deleted:
                with pytest.raises(KafkaError):
                    kafka.start()
            *_, command = re.findall(r"printf .*", str(refused.value))  # the log has the earlier refusals, too
            subprocess.run(["sh", "-c", command], check=True)
            lines = set((path / "meta.properties").read_text().splitlines())
            assert lines == {line for line in text if not line.startswith("#")}
    with kafka.running() as broker:
        assert held_records(broker.bootstrap, "a") == RECORDS
    with start_daemon(tmp_path / "barnabas", log_dirs) as daemon:
        assert held_records(daemon.bootstrap, "a") == RECORDS
        assert AdminClient({"bootstrap.servers": daemon.bootstrap}).list_topics(timeout=WAIT_S).cluster_id == cluster_id

"""Apache Kafka starts on directories between which partitions were moved, and agrees on the location of each one.

One move was complete; another was interrupted by kill -9, and Kafka continues it.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.apache_kafka import Broker, Kafka, need_kafka

VERSION = "4.3.0"
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
RECORDS = 3000
WAIT_S = 60.0


async def write(daemon: Daemon, topic: str) -> None:
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap, batch_size=4096)) as producer:
        for number in range(RECORDS):
            await producer.send(topic, b"v%d" % number * 30, b"k%d" % number)


async def read(daemon: Daemon, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    partition = TopicPartition(topic, 0)
    found: list[tuple[int, bytes | None, bytes | None]] = []
    async with Consumer(ConsumerConfig(bootstrap=daemon.bootstrap)) as consumer:
        await consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        while len(found) < RECORDS:
            found += [(record.offset, record.key, record.value) for record in await consumer.poll(10_000)]
    return found


async def located(admin: Admin) -> dict[tuple[str, bool], str]:
    """Return the log directory by (topic, is a copy)."""
    return {
        (replica.topic_partition.topic, replica.is_future): directory.path
        for directory in await admin.describe_log_dirs()
        for replica in directory.replicas
    }


async def wait_until_moved(admin: Admin, topic: str, path: Path) -> None:
    deadline = time.monotonic() + WAIT_S
    while (await located(admin)).get((topic, False)) != str(path):
        assert time.monotonic() < deadline


def located_by_kafka(kafka: Kafka, broker: Broker) -> dict[tuple[str, bool], str]:
    text = kafka.tool("org.apache.kafka.tools.LogDirsCommand", "--bootstrap-server", broker.bootstrap, "--describe")
    described: Any = json.loads(text[text.index("{") :])
    return {
        (partition["partition"].rpartition("-")[0], partition["isFuture"]): directory["logDir"]
        for each in described["brokers"]
        for directory in each["logDirs"]
        for partition in directory["partitions"]
    }


async def test_kafka_opens_the_directories_after_a_move_and_in_the_middle_of_one(tmp_path: Path) -> None:
    need_kafka(VERSION)
    a, b = tmp_path / "a", tmp_path / "b"
    with start_daemon(tmp_path, f"log.dirs={a},{b}") as daemon:
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            for topic in ("moved", "moving"):
                await admin.create_topic(topic, partitions=1, configs={"retention.ms": "-1"})
                await write(daemon, topic)
            before = await located(admin)
            targets = {topic: b if path == str(a) else a for (topic, _), path in before.items()}
            await admin.alter_replica_log_dirs({TopicPartition("moved", 0): str(targets["moved"])})
            await wait_until_moved(admin, "moved", targets["moved"])
            await admin.alter_configs(broker=1, set_to={RATE: "60000"})
            await admin.alter_replica_log_dirs({TopicPartition("moving", 0): str(targets["moving"])})
            while True:
                copies = [
                    replica
                    for directory in await admin.describe_log_dirs()
                    for replica in directory.replicas
                    if replica.is_future
                ]
                if copies and copies[0].size_bytes:
                    break
            assert copies[0].offset_lag > 0
            written = {topic: await read(daemon, topic) for topic in targets}
        daemon.kill()

        kafka = Kafka(VERSION, (a, b), tmp_path / "kafka")
        with kafka.running() as broker:
            deadline = time.monotonic() + WAIT_S
            while (found := located_by_kafka(kafka, broker)) != {
                (topic, False): str(path) for topic, path in targets.items()
            }:
                assert found["moved", False] == str(targets["moved"])
                assert time.monotonic() < deadline, found
            ends = kafka.tool(
                "org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", broker.bootstrap, "--topic", "mov.*"
            )
            assert sorted(ends.split()) == [f"moved:0:{RECORDS}", f"moving:0:{RECORDS}"]

        daemon.start()
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            assert await located(admin) == {(topic, False): str(path) for topic, path in targets.items()}
        for topic in targets:
            assert await read(daemon, topic) == written[topic]

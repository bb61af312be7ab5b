"""A directory of Barnabas becomes node 1 of a Kafka cluster of three, which survives the loss of that node.

    1  our broker writes records and a group's offsets, and stops
    2  Kafka starts on the directory as node 1; features rise to newest levels, kraft.version to 1 (voters in the log)
    3  two empty nodes join, and become voters; every partition is reassigned to all three
    4  node 1 is killed; the other two elect a leader, serve every record at its offset, return the group's offsets, and
       accept new records; Barnabas with read.only=true serves the same records from node 1's disk alone

Needs three JVMs together and some minutes: run it by hand, with BARNABAS_INTEROP_GROWING=1. docs/growing.md has the
same steps with Kafka's own commands.
"""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from barnabas import Admin, AdminConfig, Producer, ProducerConfig
from barnabas.broker.metadata.directories.meta_properties import read_meta_properties
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import uuid_text
from tests.support.daemon import Daemon, DaemonError, start_daemon
from tests.support.kafka.apache_kafka import Broker, Kafka, need_kafka
from tests.support.storage.files import snapshot_of

VERSION = "4.3.0"
TOPIC = "orders"
PARTITIONS = 3
RECORDS = 300
GROUP = "readers"

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif("BARNABAS_INTEROP_GROWING" not in os.environ, reason="by hand: BARNABAS_INTEROP_GROWING=1"),
]


async def write(daemon: Daemon) -> None:
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        await admin.create_topic(TOPIC, partitions=PARTITIONS)
        async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
            for number in range(RECORDS):
                await producer.send(TOPIC, f"value-{number}".encode(), b"key", partition=number % PARTITIONS)
        offsets = {TopicPartition(TOPIC, number): CommittedOffset(50 + number) for number in range(PARTITIONS)}
        await admin.set_group_offsets(GROUP, offsets)


def controller_port(kafka: Kafka) -> int:
    found = re.search(r"CONTROLLER://127\.0\.0\.1:(\d+)", (kafka.scratch / "server.properties").read_text())
    assert found is not None
    return int(found[1])


def read_back(kafka: Kafka, broker: Broker) -> list[str]:
    return sorted(kafka.java_program("ReadBack", broker.bootstrap, TOPIC).splitlines())


def assert_a_rescue_shows_the_same(disk: Path, scratch: Path, kafka: Kafka, records: list[str]) -> None:
    """Serve the dead node's disk alone with Barnabas: the cluster's records, without a write."""
    with pytest.raises(DaemonError, match="cluster of several brokers"):
        start_daemon(scratch / "refused", f"log.dirs={disk}")
    left = snapshot_of(disk)
    with start_daemon(scratch / "read-only", f"log.dirs={disk}", "read.only=true") as daemon:
        found = kafka.java_program("ReadBack", daemon.bootstrap, TOPIC)
        assert sorted(found.splitlines()) == records
        assert daemon.stop() == 0
    assert snapshot_of(disk) == left


async def test_our_directory_grows_into_a_cluster_that_outlives_its_first_node(tmp_path: Path) -> None:
    need_kafka(VERSION)
    with start_daemon(tmp_path / "barnabas") as daemon:
        await write(daemon)
        assert daemon.stop() == 0
    properties = read_meta_properties(daemon.data_directory)
    assert properties is not None
    assert properties.cluster_id is not None
    first = Kafka(VERSION, daemon.data_directory, tmp_path / "node-1")

    def grow(broker: Broker, *arguments: str) -> str:
        return first.java_program("GrowCluster", broker.bootstrap, *arguments)

    with ExitStack() as stack:
        node_1 = first.start()
        stack.callback(node_1.kill)
        before = read_back(first, node_1)
        assert len(before) == RECORDS
        grow(node_1, "levels")
        others = []
        for node_id in (2, 3):
            other = Kafka(
                VERSION,
                tmp_path / f"data-{node_id}",
                tmp_path / f"node-{node_id}",
                node_id=node_id,
                controller_quorum_voters="",
                controller_quorum_bootstrap_servers=f"127.0.0.1:{controller_port(first)}",
            )
            other.format("--no-initial-controllers", cluster_id=properties.cluster_id)
            others.append(other.start())
            stack.callback(others[-1].kill)
            joined = read_meta_properties(other.log_dirs[0])
            assert joined is not None
            assert joined.directory_id is not None
            grow(node_1, "add-voter", str(node_id), uuid_text(joined.directory_id), str(controller_port(other)))
        assert grow(node_1, "voters").strip() == "1,2,3"
        grow(node_1, "spread", "1,2,3")

        node_1.kill()
        assert read_back(first, others[0]) == before
        assert_a_rescue_shows_the_same(daemon.data_directory, tmp_path / "rescue", first, before)
        committed = sorted(grow(others[0], "offsets", GROUP).splitlines())
        assert committed == [f"{TOPIC}-{number} {50 + number}" for number in range(PARTITIONS)]
        arguments = (others[0].bootstrap, TOPIC, str(PARTITIONS), "30", "after", "zstd", "true")
        first.java_program("WriteRecords", *arguments)
        after = read_back(first, others[1])
        assert len(after) == RECORDS + 30
        assert set(before) <= set(after)

"""Share groups and Apache Kafka 4.3: the same requests leave the same records; its tools; one directory in turn."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.groups.keys import ShareGroupKey, ShareGroupTargetAssignmentMetadataKey, decode_key
from barnabas.protocol.records import iter_batches, read_records
from barnabas.protocol.topic_name import OFFSETS_TOPIC
from tests.support.daemon import start_daemon
from tests.support.groups.share_groups import (
    NOT_READY,
    alter,
    create,
    delete_group,
    delete_offsets,
    describe,
    heartbeat,
    joined,
    settled,
)
from tests.support.kafka.apache_kafka import Kafka, KafkaError
from tests.support.kafka.kafka_wire import KafkaWire

SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
ONE_PARTITION = "offsets.topic.num.partitions=1"
_TIMESTAMP_BYTES = 8


def history(port: int) -> None:
    """Let groups live: members come, read other topics and go; offsets are set and deleted; one group is deleted.

    Two members share a topic of one partition: of several, Kafka moves those that come first in Java's hash order.
    """
    with KafkaWire("127.0.0.1", port) as kafka:
        joined(kafka, "g", "a", "one")
        joined(kafka, "g", "b", "one")
        heartbeat(kafka, "g", "a", 0, "one", "no-such-topic")
        heartbeat(kafka, "g", "a", -1)
        heartbeat(kafka, "g", "b", -1)
        assert delete_offsets(kafka, "g", "one").responses[0].error_code == ErrorCode.NONE
        assert alter(kafka, "g", "t", p0=3).responses[0].partitions[0].error_code == ErrorCode.NONE
        epoch, has = joined(kafka, "g", "c", "t")
        while has != [0, 1]:
            epoch, has = settled(kafka, "g", "c", epoch)
        joined(kafka, "deleted", "m", "t")
        heartbeat(kafka, "deleted", "m", -1)
        assert delete_group(kafka, "deleted") == ErrorCode.NONE
        assert alter(kafka, "new", "t", p1=1).error_code == ErrorCode.NONE


def share_records(data: Path) -> list[tuple[ShareGroupKey, bytes | None]]:
    """Return the records of share groups by group, without the time in those that have one."""
    found = []
    for path in sorted((data / f"{OFFSETS_TOPIC}-0").glob("*.log")):
        for batch in iter_batches(path.read_bytes()):
            for record in () if batch.is_control else read_records(batch):
                key = decode_key(record.key or b"")
                value = record.value
                if isinstance(key, ShareGroupTargetAssignmentMetadataKey) and value is not None:
                    value = value[:-_TIMESTAMP_BYTES]
                if isinstance(key, ShareGroupKey):
                    found.append((key, value))
    return sorted(found, key=lambda each: each[0].group)


def wait_until_loaded(kafka: KafkaWire, group: str) -> None:
    while describe(kafka, group).error_code in NOT_READY:
        pass


def test_the_same_requests_leave_the_records_of_kafka_and_each_goes_on_with_the_others_groups(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    with start_daemon(ours, ONE_PARTITION) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create(kafka, "t", 2)
        create(kafka, "one")
        joined(kafka, "first", "m", "t")  # creates the internal topics
        heartbeat(kafka, "first", "m", -1)
        assert daemon.stop() == 0
    shutil.copytree(ours / "data", theirs)
    kafka_node = Kafka("4.3.0", theirs, tmp_path / "scratch", group_share_assignment_interval_ms="0")
    with kafka_node.running() as broker:
        with KafkaWire("127.0.0.1", broker.port) as kafka:
            wait_until_loaded(kafka, "first")
        history(broker.port)
    with start_daemon(ours, ONE_PARTITION) as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            wait_until_loaded(kafka, "first")
        history(daemon.port)
        assert daemon.stop() == 0
    assert share_records(ours / "data") == share_records(theirs)
    shutil.rmtree(ours / "data")
    shutil.copytree(theirs, ours / "data")
    with start_daemon(ours, ONE_PARTITION) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        wait_until_loaded(kafka, "g")
        assert [each.member_id for each in describe(kafka, "g").members] == ["c"]
        assert describe(kafka, "deleted").error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert describe(kafka, "new").group_state == "Empty"


def test_kafkas_tool_lists_describes_resets_and_deletes_share_groups(tmp_path: Path) -> None:
    kafka_node = Kafka("4.3.0", tmp_path / "unused", tmp_path / "scratch")
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create(kafka, "t", 2)
        joined(kafka, "queue", "m", "t")

        def tool(*arguments: str) -> str:
            return kafka_node.tool(SHARE_GROUPS, "--bootstrap-server", daemon.bootstrap, *arguments)

        assert tool("--list").split() == ["queue"]
        assert re.search(r"queue +Stable", tool("--list", "--state"))
        chosen = ("--describe", "--group", "queue")
        assert re.search(r"queue .* Stable +1", tool(*chosen, "--state"))
        members = tool(*chosen, "--members", "--verbose")
        assert re.search(r"queue +m .*t:0,1", members), members
        shown = tool(*chosen, "--offsets")
        assert [line.split()[:3] for line in shown.splitlines() if line.startswith("queue")] == [
            ["queue", "t", "0"],
            ["queue", "t", "1"],
        ]
        assert "is not EMPTY" in refused(kafka_node, daemon.bootstrap, "--delete", "--group", "queue")
        heartbeat(kafka, "queue", "m", -1)
        reset = tool("--reset-offsets", "--group", "queue", "--topic", "t", "--to-earliest", "--execute")
        assert sorted(line.split() for line in reset.splitlines() if line.startswith("queue")) == [
            ["queue", "t", "0", "0"],
            ["queue", "t", "1", "0"],
        ]
        assert "Successful" in tool("--delete-offsets", "--group", "queue", "--topic", "t")
        assert "was successful" in tool("--delete", "--group", "queue")
        assert tool("--list").split() == []


def refused(kafka_node: Kafka, bootstrap: str, *arguments: str) -> str:
    """Return what the tool says when it fails, whatever its exit code."""
    try:
        return kafka_node.tool(SHARE_GROUPS, "--bootstrap-server", bootstrap, *arguments)
    except KafkaError as failed:
        return str(failed)

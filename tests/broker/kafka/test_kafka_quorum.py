"""DescribeQuorum against a daemon, compared with its metadata log on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.metadata.directories.meta_properties import NodeIdentity
from barnabas.broker.metadata.directories.opening import sole_voter
from barnabas.broker.metadata.log.log_replay import replay_metadata_directory
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.metadata.control import Voter
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.wire import WireClient

METADATA = "__cluster_metadata"


def quorum(kafka: KafkaWire, version: int, *topics: tuple[str, tuple[int, ...]]) -> Any:
    kinds = schema("describe_quorum", version, "request")
    rows = tuple(
        kinds.TopicData(
            topic_name=name, partitions=tuple(kinds.PartitionData(partition_index=each) for each in partitions)
        )
        for name, partitions in topics
    )
    return kafka.call("describe_quorum", version, topics=rows)


@pytest.mark.parametrize("version", range(3))
def test_the_quorum_is_this_node_as_far_as_the_log_on_disk(tmp_path: Path, version: int) -> None:
    with start_daemon(tmp_path) as daemon:
        with WireClient(daemon.host, daemon.port) as wire:
            wire.create_topic("a", 3)
        with KafkaWire(daemon.host, daemon.port) as kafka:
            answer = quorum(kafka, version, (METADATA, (0,)))
        host, port = daemon.host, daemon.port
    (log_directory,) = tmp_path.rglob(f"{METADATA}-0")
    stored = replay_metadata_directory(log_directory)
    (topic,) = answer.topics
    (partition,) = topic.partitions
    assert (answer.error_code, topic.topic_name) == (ErrorCode.NONE, METADATA)
    assert (partition.partition_index, partition.error_code, partition.leader_id) == (0, ErrorCode.NONE, 1)
    assert (partition.leader_epoch, partition.high_watermark) == (stored.last_epoch, stored.image.end_offset)
    (voter,) = partition.current_voters
    assert (voter.replica_id, voter.log_end_offset) == (1, stored.image.end_offset)
    assert partition.observers == ()
    if version >= 1:
        assert voter.last_fetch_timestamp == voter.last_caught_up_timestamp >= stored.last_timestamp
    if version >= 2:
        assert (answer.error_message, partition.error_message, voter.replica_directory_id) == (None, None, None)
        (node,) = answer.nodes
        assert (node.node_id, [(each.host, each.port) for each in node.listeners]) == (1, [(host, port)])


@pytest.mark.parametrize(
    "topics",
    [
        [("a", (0,))],
        [(METADATA, (1,))],
        [(METADATA, (0, 0))],
        [(METADATA, (0,)), ("a", (4, 5))],
        [(METADATA, ())],
        [],
    ],
)
@pytest.mark.parametrize("version", [0, 2])
def test_what_is_not_the_metadata_log_alone_is_unknown(
    daemon: Daemon, version: int, topics: list[tuple[str, tuple[int, ...]]]
) -> None:
    with KafkaWire(daemon.host, daemon.port) as kafka:
        answer = quorum(kafka, version, *topics)
    rows = [
        (topic.topic_name, [(each.partition_index, each.error_code) for each in topic.partitions])
        for topic in answer.topics
    ]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert rows == [(name, [(each, unknown) for each in partitions]) for name, partitions in topics]
    assert answer.error_code == ErrorCode.NONE
    assert version == 0 or answer.nodes == ()


def test_a_broker_that_only_reads_tells_what_it_found(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        (written,) = quorum(kafka, 2, (METADATA, (0,))).topics
    with start_daemon(tmp_path, "read.only=true") as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        (found,) = quorum(kafka, 2, (METADATA, (0,))).topics
    assert found.partitions[0].high_watermark == written.partitions[0].high_watermark > 0
    assert found.partitions[0].leader_epoch == written.partitions[0].leader_epoch > 0


def test_a_voters_directory_is_known_where_the_voters_are_in_the_log(tmp_path: Path) -> None:
    identity = NodeIdentity(3, "c" * 22, {tmp_path: b"d" * 16}, zookeeper=False)
    nothing = replay_metadata_directory(tmp_path / "none")
    assert sole_voter(identity, None, tmp_path) == sole_voter(identity, nothing, tmp_path) == Voter(3)
    assert sole_voter(identity, nothing._replace(kraft_version=1), tmp_path) == Voter(3, b"d" * 16)

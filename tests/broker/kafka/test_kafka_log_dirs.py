"""DescribeLogDirs, AlterReplicaLogDirs and DeleteRecords of Kafka's protocol against a daemon with two directories."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

from barnabas.protocol.errors import ErrorCode
from tests.broker.conftest import Batch
from tests.support.daemon import start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.wire import WireClient

WAIT_S = 20


def directories_of(kafka: KafkaWire, topic: str) -> dict[str, list[bool]]:
    """Map each log directory that has the topic's partition 0 to whether that log is the copy that a move fills."""
    kinds = schema("describe_log_dirs", 4, "request")
    wanted = kinds.DescribableLogDirTopic(topic=topic, partitions=(0,))
    results = kafka.call("describe_log_dirs", 4, topics=(wanted,)).results
    assert all(result.error_code == ErrorCode.NONE and result.total_bytes > 0 for result in results)
    return {
        result.log_dir: [each.is_future_key for topic in result.topics for each in topic.partitions]
        for result in results
    }


def test_a_partition_moves_to_the_directory_that_it_is_sent_to(tmp_path: Path, batch: Batch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with (
        start_daemon(tmp_path, f"log.dirs={first},{second}") as daemon,
        WireClient(daemon.host, daemon.port) as wire,
        KafkaWire(daemon.host, daemon.port) as kafka,
    ):
        wire.create_topic("moved")
        wire.produce("moved", batch(b"x" * 500))
        before = directories_of(kafka, "moved")
        (source,) = (path for path, logs in before.items() if logs)
        (target,) = (path for path, logs in before.items() if not logs)
        kinds = schema("alter_replica_log_dirs", 2, "request")
        topics = (kinds.AlterReplicaLogDirTopic(name="moved", partitions=(0, 9)),)
        dirs = (kinds.AlterReplicaLogDir(path=target, topics=topics),)
        (moved,) = kafka.call("alter_replica_log_dirs", 2, dirs=dirs).results
        codes = {each.partition_index: each.error_code for each in moved.partitions}
        assert codes == {0: ErrorCode.NONE, 9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        deadline = time.monotonic() + WAIT_S
        while directories_of(kafka, "moved") != {source: [], target: [False]}:
            assert time.monotonic() < deadline
        assert wire.end_offset("moved") == 1
        nowhere = (kinds.AlterReplicaLogDir(path="/no/such/directory", topics=topics[:1]),)
        (refused,) = kafka.call("alter_replica_log_dirs", 2, dirs=nowhere).results
        assert refused.partitions[0].error_code == ErrorCode.LOG_DIR_NOT_FOUND
        wire.create_topic("n" * 249)
        topics = (kinds.AlterReplicaLogDirTopic(name="n" * 249, partitions=(0,)),)
        dirs = (kinds.AlterReplicaLogDir(path=target, topics=topics),)
        (refused,) = kafka.call("alter_replica_log_dirs", 2, dirs=dirs).results
        assert refused.partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert "is refused: INVALID_TOPIC_EXCEPTION: the name of topic nnn" in daemon.log


def test_records_are_deleted_up_to_an_offset(tmp_path: Path, batch: Batch) -> None:
    kinds = schema("delete_records", 2, "request")
    with start_daemon(tmp_path) as daemon:
        with WireClient(daemon.host, daemon.port) as wire, KafkaWire(daemon.host, daemon.port) as kafka:
            wire.create_topic("compacted", cleanup_policy="compact")
            partition = kinds.DeleteRecordsPartition(partition_index=0, offset=-1)
            topics = (kinds.DeleteRecordsTopic(name="compacted", partitions=(partition,)),)
            (topic,) = kafka.call("delete_records", 2, topics=topics, timeout=timedelta(seconds=9)).topics
            assert topic.partitions[0].error_code == ErrorCode.POLICY_VIOLATION
            assert "is refused: POLICY_VIOLATION: records of compacted cannot be deleted: its cleanup" in daemon.log
            wire.create_topic("trimmed")
            for _ in range(5):
                wire.produce("trimmed", batch())
            for offset, code, low_watermark in ((3, 0, 3), (9, ErrorCode.OFFSET_OUT_OF_RANGE, -1), (-1, 0, 5)):
                partition = kinds.DeleteRecordsPartition(partition_index=0, offset=offset)
                topics = (kinds.DeleteRecordsTopic(name="trimmed", partitions=(partition,)),)
                (topic,) = kafka.call("delete_records", 2, topics=topics, timeout=timedelta(seconds=9)).topics
                (result,) = topic.partitions
                assert (result.error_code, result.low_watermark) == (code, low_watermark)
        daemon.restart()
        with WireClient(daemon.host, daemon.port) as wire:
            assert wire.fetch("trimmed", 4).error == ErrorCode.OFFSET_OUT_OF_RANGE
            assert wire.end_offset("trimmed") == 5

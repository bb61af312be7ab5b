"""delete_records: deleted records cannot be read any more, and waiting fetches end with an error."""

from __future__ import annotations

from pathlib import Path

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.delete_records import (
    HIGH_WATERMARK,
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.data.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.broker.conftest import Batch
from tests.support.daemon import start_daemon
from tests.support.metrics import wait_for_metric
from tests.support.wire import WireClient, fetch_request

LONG_POLL_MS = 100_000
"""Longer than a client of these tests waits for an answer: who is not woken fails the test."""


def delete(wire: WireClient, topic: str, offset: int, partition: int = 0) -> DeleteRecordsPartitionResult:
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition=partition, offset=offset)])]
    )
    result: DeleteRecordsPartitionResult = wire.call(request).topics[0].partitions[0]
    return result


def start_offset(wire: WireClient, topic: str) -> int:
    request = ListOffsetsRequest(
        isolation=0, topics=[ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition=0, timestamp=-2)])]
    )
    offset: int = wire.call(request).topics[0].partitions[0].offset
    return offset


def test_what_lies_below_the_offset_cannot_be_read_any_more(wire: WireClient, batch: Batch) -> None:
    wire.create_topic("below")
    for _ in range(5):
        wire.produce("below", batch(b"x"))
    result = delete(wire, "below", 3)
    assert (result.error, result.low_watermark) == (ErrorCode.NONE, 3)
    assert wire.fetch("below", 2).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert wire.fetch("below", 3).error == ErrorCode.NONE
    assert start_offset(wire, "below") == 3


def test_minus_one_deletes_up_to_the_high_watermark_and_offsets_go_on(wire: WireClient, batch: Batch) -> None:
    wire.create_topic("all")
    for _ in range(4):
        wire.produce("all", batch(b"x"))
    assert delete(wire, "all", HIGH_WATERMARK).low_watermark == 4
    assert start_offset(wire, "all") == wire.end_offset("all") == 4
    assert wire.produce("all", batch(b"x")).base_offset == 4


def test_an_offset_below_the_start_changes_nothing(wire: WireClient, batch: Batch) -> None:
    wire.create_topic("again")
    for _ in range(4):
        wire.produce("again", batch(b"x"))
    delete(wire, "again", 3)
    result = delete(wire, "again", 1)
    assert (result.error, result.low_watermark) == (ErrorCode.NONE, 3)


def test_each_partition_is_refused_for_its_own_reason(wire: WireClient, batch: Batch) -> None:
    wire.create_topic("one", partitions=2)
    wire.create_topic("compacted", cleanup_policy="compact")
    wire.create_topic("both", cleanup_policy="compact,delete")
    for topic in ("one", "compacted", "both"):
        wire.produce(topic, batch(b"x"))
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name="one",
                partitions=[
                    DeleteRecordsPartition(partition=number, offset=offset) for number, offset in [(0, 2), (7, 0)]
                ],
            ),
            DeleteRecordsTopic(
                name="one",
                partitions=[
                    DeleteRecordsPartition(partition=1, offset=-2),
                    DeleteRecordsPartition(partition=0, offset=1),
                ],
            ),
            DeleteRecordsTopic(name="compacted", partitions=[DeleteRecordsPartition(partition=0, offset=1)]),
            DeleteRecordsTopic(name="both", partitions=[DeleteRecordsPartition(partition=0, offset=1)]),
            DeleteRecordsTopic(name="__consumer_offsets", partitions=[DeleteRecordsPartition(partition=0, offset=1)]),
            DeleteRecordsTopic(name="nowhere", partitions=[DeleteRecordsPartition(partition=0, offset=1)]),
        ]
    )
    answer = wire.call(request)
    found = [
        (topic.name, each.partition, each.error, each.low_watermark)
        for topic in answer.topics
        for each in topic.partitions
    ]
    assert found == [
        ("one", 0, ErrorCode.NONE, 1),  # of two offsets the last counts
        ("one", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ("one", 1, ErrorCode.OFFSET_OUT_OF_RANGE, -1),
        ("compacted", 0, ErrorCode.POLICY_VIOLATION, -1),
        ("both", 0, ErrorCode.NONE, 1),
        ("__consumer_offsets", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ("nowhere", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]


def test_a_fetch_that_waits_below_the_new_start_is_told_so(tmp_path: Path, batch: Batch) -> None:
    with (
        start_daemon(tmp_path) as daemon,
        WireClient(daemon.host, daemon.port) as client,
        WireClient(daemon.host, daemon.port) as reader,
    ):
        client.create_topic("t")
        client.produce("t", batch(b"x"))
        client.produce("t", batch(b"x"))
        # min_bytes is far more than the records of this test.
        reader.send(fetch_request("t", 0, max_wait_ms=LONG_POLL_MS, min_bytes=1_000_000))
        wait_for_metric(daemon, "barnabas_fetches_waiting", 1)
        delete(client, "t", 2)
        answer = reader.receive().topics[0].partitions[0]
        assert answer.error == ErrorCode.OFFSET_OUT_OF_RANGE
        assert start_offset(client, "t") == 2


def test_the_new_start_outlives_a_clean_stop_and_lies_in_the_checkpoint(tmp_path: Path, batch: Batch) -> None:
    with start_daemon(tmp_path) as daemon:
        with WireClient(daemon.host, daemon.port) as client:
            client.create_topic("t")
            for _ in range(3):
                client.produce("t", batch(b"x"))
            delete(client, "t", 2)
        daemon.restart()
        checkpoint = (daemon.data_directory / "log-start-offset-checkpoint").read_text()
        assert checkpoint == "0\n1\nt 0 2\n"
        with WireClient(daemon.host, daemon.port) as client:
            assert start_offset(client, "t") == 2
            assert client.fetch("t", 1).error == ErrorCode.OFFSET_OUT_OF_RANGE
            assert client.fetch("t", 2).error == ErrorCode.NONE

"""A failed log directory: its partitions respond with KAFKA_STORAGE_ERROR, the others still work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics.metadata import MetadataRequest
from barnabas.protocol.messages.topics.topics import CreateTopicsRequest, NewTopic
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, metadata_request, schema
from tests.support.metrics import wait_for_metric
from tests.support.wire import WireClient, fetch_request

LONG_POLL_MS = 100_000
"""Longer than a client of these tests waits for an answer: who is not woken fails the test."""


class TwoDirectories(NamedTuple):
    """A broker with two log directories; partition `there` of topic t is in the second one."""

    daemon: Daemon
    second: Path
    here: int
    there: int

    def spoil(self) -> None:
        """Replace the partition's directory in the second log directory by a file, so that the next roll fails."""
        partition = self.second / f"t-{self.there}"
        partition.rename(self.second.parent / "set-aside")
        partition.write_text("no directory")


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoDirectories]:
    first, second = tmp_path / "first", tmp_path / "second"
    with start_daemon(tmp_path, f"log.dirs={first},{second}") as daemon:
        with WireClient(daemon.host, daemon.port) as client:
            client.create_topic("t", partitions=2, segment_bytes="2000", retention_ms="-1")
        there = next(number for number in (0, 1) if (second / f"t-{number}").exists())
        yield TwoDirectories(daemon, second, 1 - there, there)


def fail_second_directory(two: TwoDirectories, client: WireClient, batch: Batch) -> None:
    assert client.produce("t", batch(b"x" * 1500), two.there).error == ErrorCode.NONE
    two.spoil()
    assert client.produce("t", batch(b"x" * 1500), two.there).error == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_fetch_that_waits_is_told_when_its_directory_fails(two: TwoDirectories, batch: Batch) -> None:
    with (
        WireClient(two.daemon.host, two.daemon.port) as client,
        WireClient(two.daemon.host, two.daemon.port) as reader,
    ):
        # min_bytes is far more than the records of this test.
        reader.send(fetch_request("t", 0, two.there, max_wait_ms=LONG_POLL_MS, min_bytes=1_000_000))
        wait_for_metric(two.daemon, "barnabas_fetches_waiting", 1)
        fail_second_directory(two, client, batch)
        answer = reader.receive().topics[0].partitions[0]
        assert answer.error == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_consumer_at_the_end_of_an_offline_log_is_told_so(two: TwoDirectories, batch: Batch) -> None:
    with WireClient(two.daemon.host, two.daemon.port) as client:
        fail_second_directory(two, client, batch)
        assert client.fetch("t", 1, two.there).error == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.fetch("t", 0, two.there).error == ErrorCode.KAFKA_STORAGE_ERROR


def test_kafkas_metadata_names_the_replicas_of_a_failed_directory_offline(two: TwoDirectories, batch: Batch) -> None:
    with (
        WireClient(two.daemon.host, two.daemon.port) as client,
        KafkaWire(two.daemon.host, two.daemon.port) as kafka,
    ):
        fail_second_directory(two, client, batch)
        kafka.send(metadata_request(12, "t"))
        (topic,) = kafka.receive("metadata", 12).topics
        offline = {each.partition_index: each.offline_replicas for each in topic.partitions}
        assert offline == {two.here: (), two.there: (1,)}


def test_the_other_directory_goes_on_and_takes_new_topics(two: TwoDirectories, batch: Batch) -> None:
    with WireClient(two.daemon.host, two.daemon.port) as client:
        fail_second_directory(two, client, batch)
        assert client.produce("t", batch(b"x"), two.here).error == ErrorCode.NONE
        client.create_topic("later", partitions=2)
        assert client.produce("later", batch(b"x"), 1).error == ErrorCode.NONE


def test_a_directory_that_is_offline_at_start_is_no_unknown_partition(two: TwoDirectories, batch: Batch) -> None:
    with WireClient(two.daemon.host, two.daemon.port) as client:
        client.produce("t", batch(b"x"), two.here)
    two.daemon.stop()
    two.second.rename(two.second.parent / "unplugged")
    two.second.write_text("no directory")
    two.daemon.start()
    with WireClient(two.daemon.host, two.daemon.port) as client:
        assert client.produce("t", batch(b"x"), two.there).error == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.fetch("t", 0, two.there).error == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.produce("t", batch(b"x"), 7).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert client.end_offset("t", two.here) == 1


def test_a_log_that_cannot_be_made_fails_its_own_topic_only(two: TwoDirectories, batch: Batch) -> None:
    # A small full disk would have the same effect, but needs root.
    (two.second / "blocked-0").write_text("no directory")
    (two.second.parent / "first" / "blocked-0").write_text("no directory")
    with WireClient(two.daemon.host, two.daemon.port) as client:
        request = CreateTopicsRequest(
            topics=[NewTopic(name="fine", partitions=2), NewTopic(name="blocked", partitions=1)]
        )
        fine, blocked = client.call(request).topics
        assert (fine.name, fine.error) == ("fine", ErrorCode.NONE)
        assert (blocked.name, blocked.error) == ("blocked", ErrorCode.KAFKA_STORAGE_ERROR)


def test_a_partition_of_an_offline_directory_has_no_leader_in_the_metadata(two: TwoDirectories, batch: Batch) -> None:
    with WireClient(two.daemon.host, two.daemon.port) as client:
        fail_second_directory(two, client, batch)
        topic = client.call(MetadataRequest.of_names(["t"])).topics[0]
        found = {each.partition: (each.error, each.leader) for each in topic.partitions}
        assert found == {two.here: (ErrorCode.NONE, 1), two.there: (ErrorCode.LEADER_NOT_AVAILABLE, -1)}
    kinds = schema("describe_topic_partitions", 0, "request")
    with KafkaWire(two.daemon.host, two.daemon.port) as kafka:
        (page,) = kafka.call("describe_topic_partitions", 0, topics=(kinds.TopicRequest(name="t"),)).topics
    told = {each.partition_index: (each.error_code, each.leader_id, each.offline_replicas) for each in page.partitions}
    assert told == {
        two.here: (ErrorCode.NONE, 1, ()),
        two.there: (ErrorCode.LEADER_NOT_AVAILABLE, -1, (1,)),
    }

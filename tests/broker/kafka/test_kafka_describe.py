"""The describe APIs of Kafka's protocol for the cluster, topics (paged), producers and config resources."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import Codec, RecordBatchBuilder
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.wire import WireClient

PAGE = "describe_topic_partitions"


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


def page(kafka: KafkaWire, *topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
    kinds = schema(PAGE, 0, "request")
    return kafka.call(
        PAGE,
        0,
        topics=tuple(kinds.TopicRequest(name=name) for name in topics),
        response_partition_limit=limit,
        cursor=None if cursor is None else kinds.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def idempotent_batch(producer_id: int, sequence: int, records: int) -> bytes:
    builder = RecordBatchBuilder(
        Codec.NONE, max_bytes=1 << 20, producer_id=producer_id, producer_epoch=3, base_sequence=sequence
    )
    for number in range(records):
        assert builder.append(1_700_000_000_000 + number, None, b"v", ())
    return builder.build()


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_this_broker_at_the_address_that_was_asked(
    daemon: Daemon, kafka: KafkaWire, version: int
) -> None:
    fields: dict[str, Any] = {"include_cluster_authorized_operations": version == 2}
    if version == 2:
        fields["include_fenced_brokers"] = True
    answer = kafka.call("describe_cluster", version, **fields)
    assert [(each.broker_id, each.host, each.port) for each in answer.brokers] == [(1, daemon.host, daemon.port)]
    assert (answer.error_code, answer.controller_id) == (ErrorCode.NONE, 1)
    assert len(answer.cluster_id) == 22
    assert (answer.cluster_authorized_operations > 0) == (version == 2)


@pytest.mark.parametrize(
    ("endpoint", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_who_wants_a_controllers_endpoint_is_told_so(kafka: KafkaWire, endpoint: int, code: ErrorCode) -> None:
    answer = kafka.call("describe_cluster", 1, include_cluster_authorized_operations=False, endpoint_type=endpoint)
    assert answer.error_code == code
    assert "endpoint" in answer.error_message


def test_pages_of_topics_go_on_where_the_last_one_ended(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        with WireClient(daemon.host, daemon.port) as wire:
            for name, partitions in (("c", 1), ("a", 3), ("b", 2)):
                wire.create_topic(name, partitions)
        with KafkaWire(daemon.host, daemon.port) as kafka:
            seen, cursor, pages = [], None, 0
            while pages == 0 or cursor is not None:
                answer = page(kafka, limit=2, cursor=cursor)
                rows = [(topic.name, each.partition_index) for topic in answer.topics for each in topic.partitions]
                assert len(rows) <= 2
                seen += rows
                cursor = answer.next_cursor and (answer.next_cursor.topic_name, answer.next_cursor.partition_index)
                pages += 1
            assert seen == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("c", 0)]
            assert pages == 3
            (topic,) = page(kafka, "b").topics
            first = topic.partitions[0]
            assert (first.leader_id, first.replica_nodes, first.isr_nodes, first.error_code) == (1, (1,), (1,), 0)


def test_named_topics_that_are_not_there_are_told_by_their_errors(kafka: KafkaWire) -> None:
    answer = page(kafka, "no-such-topic", "no such name")
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("no such name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("no-such-topic", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


@pytest.mark.parametrize("cursor", [("zz", 0), ("there", -1)])
def test_a_cursor_that_cannot_be_is_an_invalid_request(
    kafka: KafkaWire, wire: WireClient, cursor: tuple[str, int]
) -> None:
    answer = page(kafka, "there", cursor=cursor)
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]


def test_producers_are_told_with_epoch_sequence_and_time(kafka: KafkaWire, wire: WireClient) -> None:
    wire.create_topic("produced", 2)
    assert wire.produce("produced", idempotent_batch(4000, 0, 3)).error == ErrorCode.NONE
    assert wire.produce("produced", idempotent_batch(4000, 3, 2)).error == ErrorCode.NONE
    kinds = schema("describe_producers", 0, "request")
    topics = (
        kinds.TopicRequest(name="produced", partition_indexes=(0, 1, 2)),
        kinds.TopicRequest(name="no such name", partition_indexes=(0,)),
    )
    produced, nameless = kafka.call("describe_producers", 0, topics=topics).topics
    assert [each.error_code for each in produced.partitions] == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    (producer,) = produced.partitions[0].active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (4000, 3, 4)
    assert producer.last_timestamp == 1_700_000_000_001
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, -1)
    assert produced.partitions[1].active_producers == ()
    assert nameless.partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_resources_with_configs_are_the_broker_its_loggers_and_the_topics(kafka: KafkaWire, wire: WireClient) -> None:
    wire.create_topic("listed")
    answer = kafka.call("list_config_resources", 1, resource_types=())
    rows = {(each.resource_type, each.resource_name) for each in answer.config_resources}
    assert {(4, "1"), (8, "1"), (2, "listed")} <= rows
    assert {kind for kind, _ in rows} == {2, 4, 8}
    assert kafka.call("list_config_resources", 0).config_resources == ()
    assert kafka.call("list_config_resources", 1, resource_types=(99,)).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_partition_stays_where_it_is_and_goes_nowhere_else(kafka: KafkaWire, wire: WireClient) -> None:
    wire.create_topic("stays", 4)
    kinds = schema("alter_partition_reassignments", 0, "request")

    def partitions(**replicas: tuple[int, ...] | None) -> Any:
        return tuple(
            kinds.ReassignablePartition(partition_index=int(number[1:]), replicas=each)
            for number, each in replicas.items()
        )

    topics = (
        kinds.ReassignableTopic(name="stays", partitions=partitions(p0=(1,), p1=(2,), p2=(), p3=None, p4=(1,))),
        kinds.ReassignableTopic(name="nowhere", partitions=partitions(p0=(1,))),
    )
    answer = kafka.call("alter_partition_reassignments", 0, timeout=timedelta(seconds=5), topics=topics)
    assert answer.error_code == ErrorCode.NONE
    assert [(each.partition_index, each.error_code) for each in answer.responses[0].partitions] == [
        (0, ErrorCode.NONE),
        (1, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (2, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        (4, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert "includes broker 2, but no such broker" in answer.responses[0].partitions[1].error_message
    (unknown,) = answer.responses[1].partitions
    assert (unknown.error_code, unknown.error_message) == (3, "Unable to find a topic named nowhere.")


def elect(kafka: KafkaWire, version: int, topics: dict[str, tuple[int, ...]] | None, election_type: int = 0) -> Any:
    kinds = schema("elect_leaders", version, "request")
    named = topics and tuple(kinds.TopicPartitions(topic=name, partitions=each) for name, each in topics.items())
    types = {"election_type": election_type} if version >= 1 else {}
    return kafka.call("elect_leaders", version, topic_partitions=named, timeout=timedelta(seconds=5), **types)


@pytest.mark.parametrize("version", range(3))
def test_a_partition_that_is_led_needs_no_election(kafka: KafkaWire, wire: WireClient, version: int) -> None:
    wire.create_topic(f"led-{version}", 2)
    topics = {f"led-{version}": (0, 7, 1), "nowhere": (0,), "": ()}
    rows = [
        (topic.topic, [(each.partition_id, each.error_code) for each in topic.partition_result])
        for topic in elect(kafka, version, topics).replica_election_results
    ]
    assert rows == [
        (f"led-{version}", [(0, 84), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (1, 84)]),
        ("nowhere", [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        ("", []),
    ]
    led, nowhere, _ = elect(kafka, version, topics).replica_election_results
    assert led.partition_result[1].error_message == f"No such partition as led-{version}-7"
    assert nowhere.partition_result[0].error_message == "No such topic as nowhere"
    everything = elect(kafka, version, None).replica_election_results
    assert (f"led-{version}", ()) in [(each.topic, each.partition_result) for each in everything]


def test_an_election_of_a_type_that_is_none_is_refused_as_a_whole_and_for_each(kafka: KafkaWire) -> None:
    answer = elect(kafka, 2, {"a": (0,)}, election_type=2)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.replica_election_results[0].partition_result[0].error_code == ErrorCode.INVALID_REQUEST
    assert elect(kafka, 1, None, election_type=-1).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("named", [True, False])
def test_no_partition_is_ever_reassigned(kafka: KafkaWire, wire: WireClient, *, named: bool) -> None:
    kinds = schema("list_partition_reassignments", 0, "request")
    asked = (kinds.ListPartitionReassignmentsTopics(name="a", partition_indexes=(0, 1)),) if named else None
    answer = kafka.call("list_partition_reassignments", 0, topics=asked, timeout=timedelta(seconds=5))
    assert (answer.error_code, answer.error_message, answer.topics) == (ErrorCode.NONE, None, ())

"""CreateTopics, DeleteTopics and CreatePartitions of Kafka's protocol against a real daemon."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, metadata_request, schema

TIMEOUT = timedelta(seconds=30)


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


def new_topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str | None) -> Any:
    """Return a topic to create; config names with underscores for dots."""
    kinds = schema("create_topics", 7, "request")
    return kinds.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=(),
        configs=tuple(
            kinds.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ),
    )


def create(kafka: KafkaWire, *topics: Any, validate_only: bool = False) -> list[Any]:
    answer = kafka.call("create_topics", 7, topics=topics, timeout=TIMEOUT, validate_only=validate_only)
    return list(answer.topics)


def delete(kafka: KafkaWire, name: str | None, topic_id: UUID | None = None) -> tuple[int, str | None]:
    kinds = schema("delete_topics", 6, "request")
    topics = (kinds.DeleteTopicState(name=name, topic_id=topic_id),)
    (row,) = kafka.call("delete_topics", 6, topics=topics, timeout=TIMEOUT).responses
    return row.error_code, row.name


def grow(kafka: KafkaWire, name: str, count: int, *assignments: tuple[int, ...]) -> tuple[int, str | None]:
    kinds = schema("create_partitions", 3, "request")
    assigned = tuple(kinds.CreatePartitionsAssignment(broker_ids=each) for each in assignments) or None
    topics = (kinds.CreatePartitionsTopic(name=name, count=count, assignments=assigned),)
    (row,) = kafka.call("create_partitions", 3, topics=topics, timeout=TIMEOUT, validate_only=False).results
    return row.error_code, row.error_message


def partitions(kafka: KafkaWire, name: str) -> int:
    """Return the partition count of a topic from DescribeTopicPartitions; -1 for an unknown topic."""
    kinds = schema("describe_topic_partitions", 0, "request")
    (topic,) = kafka.call("describe_topic_partitions", 0, topics=(kinds.TopicRequest(name=name),)).topics
    return -1 if topic.error_code else len(topic.partitions)


def test_a_created_topic_is_answered_with_its_id_and_its_configs(kafka: KafkaWire) -> None:
    (topic,) = create(kafka, new_topic("described", 3, -1, retention_ms="5000"))
    assert (topic.error_code, topic.num_partitions, topic.replication_factor) == (0, 3, 1)
    assert topic.topic_id is not None
    by_name = {config.name: config for config in topic.configs}
    assert (by_name["retention.ms"].value, by_name["retention.ms"].config_source) == ("5000", 1)
    assert (by_name["cleanup.policy"].value, by_name["cleanup.policy"].config_source) == ("delete", 5)
    assert list(by_name) == sorted(by_name)
    assert delete(kafka, None, topic.topic_id) == (ErrorCode.NONE, "described")
    assert delete(kafka, None, topic.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None)


def test_one_bad_topic_does_not_fail_the_others(kafka: KafkaWire) -> None:
    rows = create(
        kafka,
        new_topic("mixed-good"),
        new_topic("mixed bad"),
        new_topic("mixed-config", retention_ms="soon"),
        new_topic("mixed-null", retention_ms=None),
        new_topic("mixed-replicas", replicas=3),
        new_topic("mixed-partitions", partitions=0),
        new_topic("mixed-twice"),
        new_topic("mixed-twice"),
    )
    assert [(row.name, row.error_code) for row in rows] == [
        ("mixed-good", ErrorCode.NONE),
        ("mixed bad", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("mixed-config", ErrorCode.INVALID_CONFIG),
        ("mixed-null", ErrorCode.INVALID_CONFIG),
        ("mixed-replicas", ErrorCode.INVALID_REPLICATION_FACTOR),
        ("mixed-partitions", ErrorCode.INVALID_PARTITIONS),
        ("mixed-twice", ErrorCode.INVALID_REQUEST),
    ]
    assert "retention.ms=soon" in rows[2].error_message
    (row,) = create(kafka, new_topic("mixed-good"))
    assert (row.error_code, row.error_message) == (36, "Topic 'mixed-good' already exists.")
    assert partitions(kafka, "mixed-twice") == -1


@pytest.mark.parametrize("version", [9, 11, 12, 13])
@pytest.mark.parametrize("creates", [False, True])
def test_metadata_answers_an_empty_name_with_the_name(kafka: KafkaWire, version: int, creates: bool) -> None:
    request = replace(metadata_request(version, ""), allow_auto_topic_creation=creates)
    kafka.send(request)
    (topic,) = kafka.receive("metadata", version).topics
    assert (topic.error_code, topic.name) == (ErrorCode.INVALID_TOPIC_EXCEPTION, "")


def test_a_deletion_is_answered_with_the_name_of_the_request(kafka: KafkaWire) -> None:
    unknown = UUID(int=77)
    assert delete(kafka, "") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    assert delete(kafka, None) == (ErrorCode.INVALID_REQUEST, None)
    assert delete(kafka, None, unknown) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
    assert delete(kafka, "", unknown) == (ErrorCode.INVALID_REQUEST, "")


def test_validating_creates_nothing(kafka: KafkaWire) -> None:
    (row,) = create(kafka, new_topic("only-validated", 2), validate_only=True)
    assert (row.error_code, row.num_partitions) == (ErrorCode.NONE, 2)
    assert partitions(kafka, "only-validated") == -1


def test_topics_grow_and_never_shrink(kafka: KafkaWire) -> None:
    create(kafka, new_topic("growing", 2))
    assert grow(kafka, "growing", 4) == (ErrorCode.NONE, None)
    assert partitions(kafka, "growing") == 4
    assert grow(kafka, "growing", 4) == (ErrorCode.INVALID_PARTITIONS, "Topic already has 4 partition(s).")
    assert grow(kafka, "growing", 3)[0] == ErrorCode.INVALID_PARTITIONS
    assert grow(kafka, "growing", 5, (9,))[0] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(kafka, "growing", 5, (1,)) == (ErrorCode.NONE, None)
    assert grow(kafka, "no-such-topic", 5)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deleting_can_be_disabled(tmp_path: Path, version: int, code: ErrorCode) -> None:
    with (
        start_daemon(tmp_path, "delete.topic.enable=false") as daemon,
        KafkaWire(daemon.host, daemon.port) as kafka,
    ):
        create(kafka, new_topic("kept"))
        answer = kafka.call("delete_topics", version, topic_names=("kept",), timeout=TIMEOUT)
        assert [(row.name, row.error_code) for row in answer.responses] == [("kept", code)]
        assert partitions(kafka, "kept") == 1


def test_what_was_answered_outlives_a_kill(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            create(kafka, new_topic("stays", 2), new_topic("goes"))
            assert grow(kafka, "stays", 3) == (ErrorCode.NONE, None)
            assert delete(kafka, "goes") == (ErrorCode.NONE, "goes")
        daemon.restart(clean=False)
        with KafkaWire(daemon.host, daemon.port) as kafka:
            assert (partitions(kafka, "stays"), partitions(kafka, "goes")) == (3, -1)

"""Topic operations: names, counts, configs, and what each refusal is called on the wire."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.topics import (
    MAX_PARTITIONS_PER_REQUEST,
    Placement,
    plan_create_partitions,
    plan_create_topics,
    plan_delete_topics,
)
from barnabas.config import BrokerConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics import NewPartitions, NewTopic
from barnabas.protocol.metadata.partition_state import PartitionState
from barnabas.protocol.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

DIRECTORY, OTHER_DIRECTORY = bytes([7] * 16), bytes([8] * 16)
STATE = PartitionState((1,), (1,), 1, directories=(DIRECTORY,))
EXISTING: list[MetadataRecord] = [
    TopicRecord("old.topic", bytes([1] * 16)),
    PartitionRecord(0, bytes([1] * 16), STATE),
    PartitionRecord(1, bytes([1] * 16), STATE),
]

ImageOf = Callable[[list[MetadataRecord]], MetadataImage]
Configuration = Callable[..., BrokerConfig]


@pytest.fixture
def image(image_of: ImageOf) -> MetadataImage:
    """One topic, old.topic, of two partitions."""
    return image_of(EXISTING)


@pytest.fixture
def placement(image: MetadataImage) -> Placement:
    """Node 1 with one log directory."""
    return Placement(1, [DIRECTORY], image)


@pytest.fixture
def config(configuration: Configuration) -> BrokerConfig:
    """Three partitions by default."""
    return configuration("num.partitions=3")


def test_a_topic_becomes_a_topic_record_its_configs_and_its_partitions(
    image: MetadataImage, config: BrokerConfig, placement: Placement
) -> None:
    asked = NewTopic("orders", 2, 1, {"segment.bytes": "1048576", "cleanup.policy": "compact"})
    plan = plan_create_topics(image, [asked], config=config, placement=placement)
    (result,) = plan.results
    assert (result.error, result.message, result.partitions) == (ErrorCode.NONE, None, 2)
    assert plan.records == [
        TopicRecord("orders", result.topic_id),
        ConfigRecord(2, "orders", "cleanup.policy", "compact"),
        ConfigRecord(2, "orders", "segment.bytes", "1048576"),
        PartitionRecord(0, result.topic_id, STATE),
        PartitionRecord(1, result.topic_id, STATE),
    ]


def test_counts_of_minus_one_take_the_defaults(
    image: MetadataImage, config: BrokerConfig, placement: Placement
) -> None:
    plan = plan_create_topics(image, [NewTopic("orders")], config=config, placement=placement)
    assert plan.results[0].partitions == 3


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (NewTopic("old.topic", 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("old_topic", 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("../x", 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("a" * 250, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("", 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("__cluster_metadata", 1), ErrorCode.INVALID_REQUEST),
        (NewTopic("new", 0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("new", -2), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("new", MAX_PARTITIONS_PER_REQUEST + 1), ErrorCode.POLICY_VIOLATION),
        (NewTopic("new", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("new", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("new", 1, 1, {"no.such.config": "1"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("new", 1, 1, {"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG),
    ],
)
def test_what_cannot_be_created_is_refused_by_its_code_and_leaves_no_record(
    image: MetadataImage, config: BrokerConfig, placement: Placement, asked: NewTopic, code: ErrorCode
) -> None:
    plan = plan_create_topics(image, [asked], config=config, placement=placement)
    assert [result.error for result in plan.results] == [code]
    assert plan.results[0].message
    assert plan.records == []


def test_one_bad_topic_does_not_fail_the_others(
    image: MetadataImage, config: BrokerConfig, placement: Placement
) -> None:
    asked = [NewTopic("a", 1), NewTopic("..", 1), NewTopic("b", 1)]
    plan = plan_create_topics(image, asked, config=config, placement=placement)
    assert [result.error for result in plan.results] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.NONE,
    ]
    assert [record.name for record in plan.records if isinstance(record, TopicRecord)] == ["a", "b"]


def test_topics_of_one_request_see_each_other(image: MetadataImage, config: BrokerConfig, placement: Placement) -> None:
    asked = [NewTopic("x.y", 1), NewTopic("x_y", 1), NewTopic("twice", 1), NewTopic("twice", 2)]
    plan = plan_create_topics(image, asked, config=config, placement=placement)
    assert [result.error for result in plan.results] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]


def test_a_config_that_kafka_4_refuses_is_legal_and_said(
    image: MetadataImage, config: BrokerConfig, placement: Placement
) -> None:
    asked = NewTopic("small", 1, 1, {"segment.bytes": "16384"})
    (result,) = plan_create_topics(image, [asked], config=config, placement=placement).results
    assert result.error is ErrorCode.NONE
    assert result.message is not None
    assert "Apache Kafka 4.x" in result.message


def test_partitions_go_to_the_directory_with_the_fewest(image: MetadataImage, config: BrokerConfig) -> None:
    placement = Placement(1, [DIRECTORY, OTHER_DIRECTORY], image)  # two partitions are in the first
    plan = plan_create_topics(image, [NewTopic("a", 4)], config=config, placement=placement)
    directories = [record.state.directories for record in plan.records if isinstance(record, PartitionRecord)]
    assert directories == [(OTHER_DIRECTORY,), (OTHER_DIRECTORY,), (DIRECTORY,), (OTHER_DIRECTORY,)]


def test_deleting_names_the_topic_by_its_id(image: MetadataImage, config: BrokerConfig) -> None:
    plan = plan_delete_topics(image, ["old.topic", "none", "old.topic"], config=config)
    assert [result.error for result in plan.results] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert plan.records == [RemoveTopicRecord(bytes([1] * 16))]


def test_deleting_can_be_forbidden(image: MetadataImage, configuration: Configuration) -> None:
    plan = plan_delete_topics(image, ["old.topic"], config=configuration("delete.topic.enable=false"))
    assert [result.error for result in plan.results] == [ErrorCode.INVALID_REQUEST]
    assert plan.records == []


def test_a_topic_grows_by_the_partitions_that_it_lacks(image: MetadataImage, placement: Placement) -> None:
    plan = plan_create_partitions(image, [NewPartitions("old.topic", 4)], placement=placement)
    assert plan.records == [
        PartitionRecord(2, bytes([1] * 16), STATE),
        PartitionRecord(3, bytes([1] * 16), STATE),
    ]
    assert plan.results[0].partitions == 4


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (NewPartitions("none", 4), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (NewPartitions("old.topic", 2), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("old.topic", 1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("old.topic", -1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("old.topic", MAX_PARTITIONS_PER_REQUEST + 3), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_what_is_no_growth_is_refused(
    image: MetadataImage, placement: Placement, asked: NewPartitions, code: ErrorCode
) -> None:
    plan = plan_create_partitions(image, [asked], placement=placement)
    assert [result.error for result in plan.results] == [code]
    assert plan.records == []

"""Topic operations: names, counts, configs, and the wire error code of each rejection."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.metadata.placement import Placement
from barnabas.broker.metadata.topics import (
    MAX_PARTITIONS_PER_REQUEST,
    plan_create_partitions,
    plan_create_topics,
    plan_delete_topics,
)
from barnabas.config import BrokerConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics.topics import NewPartitions, NewTopic, ReplicaAssignment, TopicReference
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
    """Return an image with one topic, old.topic, of two partitions."""
    return image_of(EXISTING)


@pytest.fixture
def placement(image: MetadataImage) -> Placement:
    """Place partitions on node 1 with one log directory."""
    return Placement(1, [DIRECTORY], image)


@pytest.fixture
def config(configuration: Configuration) -> BrokerConfig:
    """Return a config with three partitions by default."""
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
def test_an_invalid_topic_is_refused_with_its_code_and_leaves_no_record(
    image: MetadataImage, config: BrokerConfig, placement: Placement, asked: NewTopic, code: ErrorCode
) -> None:
    plan = plan_create_topics(image, [asked], config=config, placement=placement)
    assert [result.error for result in plan.results] == [code]
    assert plan.results[0].message
    assert plan.records == []


def test_partitions_that_could_not_be_held_open_are_refused_before_anything_is_written(
    image: MetadataImage, config: BrokerConfig
) -> None:
    placement = Placement(1, [DIRECTORY], image, partitions_max=6)  # two partitions exist
    asked = [NewTopic("a", 3), NewTopic("b", 2), NewTopic("c", 1), NewTopic("d", 1)]
    plan = plan_create_topics(image, asked, config=config, placement=placement)
    none, refused = ErrorCode.NONE, ErrorCode.POLICY_VIOLATION
    assert [result.error for result in plan.results] == [none, refused, none, refused]
    assert "open files" in (plan.results[1].message or "")
    growth = [NewPartitions("old.topic", 3)]
    assert plan_create_partitions(image, growth, placement=placement).results[0].error is refused


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


def test_a_request_copies_the_image_once_however_many_topics_it_creates(
    image: MetadataImage, config: BrokerConfig, placement: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = []

    class CountedBuilder(ImageBuilder):
        def __init__(self, copied: MetadataImage) -> None:
            copies.append(copied)
            super().__init__(copied)

    monkeypatch.setattr("barnabas.broker.metadata.plan.ImageBuilder", CountedBuilder)
    topics = [NewTopic(f"orders_{number}", 1) for number in range(20)]
    plan = plan_create_topics(image, topics, config=config, placement=placement)
    assert [result.error for result in plan.results] == [ErrorCode.NONE] * 20
    assert copies == [image]


def test_a_config_that_kafka_4_refuses_is_legal_with_a_warning(
    image: MetadataImage, config: BrokerConfig, placement: Placement
) -> None:
    asked = NewTopic("small", 1, 1, {"segment.bytes": "16384"})
    (result,) = plan_create_topics(image, [asked], config=config, placement=placement).results
    assert result.error is ErrorCode.NONE
    assert result.message is not None
    assert "Apache Kafka 4.x" in result.message


def test_partitions_go_to_the_directory_with_the_fewest(image: MetadataImage, config: BrokerConfig) -> None:
    placement = Placement(1, [DIRECTORY, OTHER_DIRECTORY], image)  # the first directory has two partitions
    plan = plan_create_topics(image, [NewTopic("a", 4)], config=config, placement=placement)
    directories = [record.state.directories for record in plan.records if isinstance(record, PartitionRecord)]
    assert directories == [(OTHER_DIRECTORY,), (OTHER_DIRECTORY,), (DIRECTORY,), (OTHER_DIRECTORY,)]


def test_deleting_names_the_topic_by_its_id(image: MetadataImage, config: BrokerConfig) -> None:
    plan = plan_delete_topics(image, ["old.topic", "none"], config=config)
    assert [result.error for result in plan.results] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert plan.records == [RemoveTopicRecord(bytes([1] * 16))]


def test_a_topic_can_be_deleted_by_its_id(image: MetadataImage, config: BrokerConfig) -> None:
    references = [
        TopicReference(None, bytes([1] * 16)),
        TopicReference(None, bytes([2] * 16)),
        TopicReference(None),
        TopicReference("old.topic", bytes([1] * 16)),
    ]
    plan = plan_delete_topics(image, [], config=config, references=references)
    assert [(result.name, result.error) for result in plan.results] == [
        ("old.topic", ErrorCode.NONE),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
        (None, ErrorCode.INVALID_REQUEST),
        ("old.topic", ErrorCode.INVALID_REQUEST),
    ]
    assert plan.records == [RemoveTopicRecord(bytes([1] * 16))]


@pytest.mark.parametrize(
    ("names", "references", "errors"),
    [
        (["old.topic", "old.topic"], [], [ErrorCode.INVALID_REQUEST] * 2),
        ([], [TopicReference(None, bytes([1] * 16))] * 2, [ErrorCode.INVALID_REQUEST] * 2),
    ],
)
def test_a_topic_named_twice_in_one_deletion_is_refused(
    image: MetadataImage,
    config: BrokerConfig,
    names: list[str],
    references: list[TopicReference],
    errors: list[ErrorCode],
) -> None:
    plan = plan_delete_topics(image, names, config=config, references=references)
    assert [result.error for result in plan.results] == errors
    assert plan.records == []


def test_deleting_can_be_forbidden(image: MetadataImage, configuration: Configuration) -> None:
    plan = plan_delete_topics(image, ["old.topic"], config=configuration("delete.topic.enable=false"))
    assert [result.error for result in plan.results] == [ErrorCode.TOPIC_DELETION_DISABLED]
    assert plan.records == []


def test_a_topic_grows_by_its_missing_partitions(image: MetadataImage, placement: Placement) -> None:
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
def test_a_count_that_is_not_an_increase_is_refused(
    image: MetadataImage, placement: Placement, asked: NewPartitions, code: ErrorCode
) -> None:
    plan = plan_create_partitions(image, [asked], placement=placement)
    assert [result.error for result in plan.results] == [code]
    assert plan.records == []


def test_assignments_define_the_number_of_partitions(
    image: MetadataImage, config: BrokerConfig, placement: Placement
) -> None:
    asked = NewTopic("new", assignments=[ReplicaAssignment(1, (1,)), ReplicaAssignment(0, (1,))])
    plan = plan_create_topics(image, [asked], config=config, placement=placement)
    assert [(result.error, result.partitions) for result in plan.results] == [(ErrorCode.NONE, 2)]
    assert [record.partition for record in plan.records if isinstance(record, PartitionRecord)] == [0, 1]


@pytest.mark.parametrize(
    ("asked", "code", "sentence"),
    [
        (NewTopic("n", 1, assignments=[ReplicaAssignment(0, (1,))]), ErrorCode.INVALID_REQUEST, "numPartitions"),
        (NewTopic("n", -1, 1, {}, [ReplicaAssignment(0, (1,))]), ErrorCode.INVALID_REQUEST, "replication factor"),
        (
            NewTopic("n", assignments=[ReplicaAssignment(0, (1,))] * 2),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "multiple manual partition assignments for partition 0",
        ),
        (
            NewTopic("n", assignments=[ReplicaAssignment(1, (1,))]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "consecutive 0-based",
        ),
        (
            NewTopic("n", assignments=[ReplicaAssignment(0, ())]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "empty replica list",
        ),
        (
            NewTopic("n", assignments=[ReplicaAssignment(0, (1, 2))]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "includes broker 2, but no such broker is registered",
        ),
        (
            NewTopic("n", assignments=[ReplicaAssignment(0, (1, 1))]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "the broker 1 more than once",
        ),
        (NewTopic("n", 1, 3), ErrorCode.INVALID_REPLICATION_FACTOR, "only 1 broker(s) are registered"),
        (NewTopic("n", 1, 1, {"retention.ms": None}), ErrorCode.INVALID_CONFIG, "Null value not supported"),
    ],
)
def test_an_assignment_that_kafka_refuses_is_refused_in_its_words(
    image: MetadataImage,
    config: BrokerConfig,
    placement: Placement,
    asked: NewTopic,
    code: ErrorCode,
    sentence: str,
) -> None:
    plan = plan_create_topics(image, [asked], config=config, placement=placement)
    (result,) = plan.results
    assert result.error is code
    assert sentence in (result.message or "")
    assert plan.records == []


@pytest.mark.parametrize(
    ("assignments", "sentence"),
    [([(1,)], "Attempted to add 2 additional partition(s), but only 1"), ([(1,), (7,)], "includes broker 7")],
)
def test_growth_with_impossible_assignments_is_refused(
    image: MetadataImage, placement: Placement, assignments: list[tuple[int, ...]], sentence: str
) -> None:
    plan = plan_create_partitions(image, [NewPartitions("old.topic", 4, assignments)], placement=placement)
    (result,) = plan.results
    assert result.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert sentence in (result.message or "")
    assert plan.records == []

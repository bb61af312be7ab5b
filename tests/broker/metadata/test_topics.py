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
from barnabas.protocol.messages.topics.topics import (
    NewPartitionAssignment,
    NewPartitions,
    NewTopic,
    ReplicaAssignment,
    TopicReference,
    config_rows,
)
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
    asked = NewTopic(
        name="orders",
        partitions=2,
        replication_factor=1,
        configs=config_rows({"segment.bytes": "1048576", "cleanup.policy": "compact"}),
    )
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
    plan = plan_create_topics(image, [NewTopic(name="orders")], config=config, placement=placement)
    assert plan.results[0].partitions == 3


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (NewTopic(name="old.topic", partitions=1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic(name="old_topic", partitions=1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="../x", partitions=1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="a" * 250, partitions=1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="", partitions=1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="__cluster_metadata", partitions=1), ErrorCode.INVALID_REQUEST),
        (NewTopic(name="new", partitions=0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic(name="new", partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (NewTopic(name="new", partitions=MAX_PARTITIONS_PER_REQUEST + 1), ErrorCode.POLICY_VIOLATION),
        (NewTopic(name="new", partitions=1, replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic(name="new", partitions=1, replication_factor=2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (
            NewTopic(name="new", partitions=1, replication_factor=1, configs=config_rows({"no.such.config": "1"})),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            NewTopic(name="new", partitions=1, replication_factor=1, configs=config_rows({"retention.ms": "soon"})),
            ErrorCode.INVALID_CONFIG,
        ),
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
    asked = [
        NewTopic(name="a", partitions=3),
        NewTopic(name="b", partitions=2),
        NewTopic(name="c", partitions=1),
        NewTopic(name="d", partitions=1),
    ]
    plan = plan_create_topics(image, asked, config=config, placement=placement)
    none, refused = ErrorCode.NONE, ErrorCode.POLICY_VIOLATION
    assert [result.error for result in plan.results] == [none, refused, none, refused]
    assert "open files" in (plan.results[1].message or "")
    growth = [NewPartitions(name="old.topic", count=3)]
    assert plan_create_partitions(image, growth, placement=placement).results[0].error is refused


def test_one_bad_topic_does_not_fail_the_others(
    image: MetadataImage, config: BrokerConfig, placement: Placement
) -> None:
    asked = [NewTopic(name="a", partitions=1), NewTopic(name="..", partitions=1), NewTopic(name="b", partitions=1)]
    plan = plan_create_topics(image, asked, config=config, placement=placement)
    assert [result.error for result in plan.results] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.NONE,
    ]
    assert [record.name for record in plan.records if isinstance(record, TopicRecord)] == ["a", "b"]


def test_topics_of_one_request_see_each_other(image: MetadataImage, config: BrokerConfig, placement: Placement) -> None:
    asked = [
        NewTopic(name="x.y", partitions=1),
        NewTopic(name="x_y", partitions=1),
        NewTopic(name="twice", partitions=1),
        NewTopic(name="twice", partitions=2),
    ]
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
    topics = [NewTopic(name=f"orders_{number}", partitions=1) for number in range(20)]
    plan = plan_create_topics(image, topics, config=config, placement=placement)
    assert [result.error for result in plan.results] == [ErrorCode.NONE] * 20
    assert copies == [image]


def test_a_config_that_kafka_4_refuses_is_legal_with_a_warning(
    image: MetadataImage, config: BrokerConfig, placement: Placement
) -> None:
    asked = NewTopic(name="small", partitions=1, replication_factor=1, configs=config_rows({"segment.bytes": "16384"}))
    (result,) = plan_create_topics(image, [asked], config=config, placement=placement).results
    assert result.error is ErrorCode.NONE
    assert result.warning is not None
    assert "Apache Kafka 4.x" in result.warning


def test_partitions_go_to_the_directory_with_the_fewest(image: MetadataImage, config: BrokerConfig) -> None:
    placement = Placement(1, [DIRECTORY, OTHER_DIRECTORY], image)  # the first directory has two partitions
    plan = plan_create_topics(image, [NewTopic(name="a", partitions=4)], config=config, placement=placement)
    directories = [record.state.directories for record in plan.records if isinstance(record, PartitionRecord)]
    assert directories == [(OTHER_DIRECTORY,), (OTHER_DIRECTORY,), (DIRECTORY,), (OTHER_DIRECTORY,)]


def test_deleting_names_the_topic_by_its_id(image: MetadataImage, config: BrokerConfig) -> None:
    plan = plan_delete_topics(image, [TopicReference(name="old.topic"), TopicReference(name="none")], config=config)
    assert [result.error for result in plan.results] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert plan.records == [RemoveTopicRecord(bytes([1] * 16))]


def test_a_topic_can_be_deleted_by_its_id(image: MetadataImage, config: BrokerConfig) -> None:
    references = [
        TopicReference(name=None, topic_id=bytes([1] * 16)),
        TopicReference(name=None, topic_id=bytes([2] * 16)),
        TopicReference(name=None),
        TopicReference(name="old.topic", topic_id=bytes([1] * 16)),
    ]
    plan = plan_delete_topics(image, references, config=config)
    assert [(result.name, result.error) for result in plan.results] == [
        ("old.topic", ErrorCode.NONE),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
        (None, ErrorCode.INVALID_REQUEST),
        ("old.topic", ErrorCode.INVALID_REQUEST),
    ]
    assert plan.records == [RemoveTopicRecord(bytes([1] * 16))]


@pytest.mark.parametrize(
    "reference",
    [TopicReference(name="old.topic"), TopicReference(name=None, topic_id=bytes([1] * 16))],
    ids=["by name", "by id"],
)
def test_a_topic_named_twice_in_one_deletion_is_refused(
    image: MetadataImage,
    config: BrokerConfig,
    reference: TopicReference,
) -> None:
    plan = plan_delete_topics(image, [reference] * 2, config=config)
    assert [result.error for result in plan.results] == [ErrorCode.INVALID_REQUEST] * 2
    assert plan.records == []


def test_deleting_can_be_forbidden(image: MetadataImage, configuration: Configuration) -> None:
    plan = plan_delete_topics(
        image, [TopicReference(name="old.topic")], config=configuration("delete.topic.enable=false")
    )
    assert [result.error for result in plan.results] == [ErrorCode.TOPIC_DELETION_DISABLED]
    assert plan.records == []


def test_a_topic_grows_by_its_missing_partitions(image: MetadataImage, placement: Placement) -> None:
    plan = plan_create_partitions(image, [NewPartitions(name="old.topic", count=4)], placement=placement)
    assert plan.records == [
        PartitionRecord(2, bytes([1] * 16), STATE),
        PartitionRecord(3, bytes([1] * 16), STATE),
    ]
    assert plan.results[0].error is ErrorCode.NONE


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (NewPartitions(name="none", count=4), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (NewPartitions(name="old.topic", count=2), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions(name="old.topic", count=1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions(name="old.topic", count=-1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions(name="old.topic", count=MAX_PARTITIONS_PER_REQUEST + 3), ErrorCode.POLICY_VIOLATION),
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
    asked = NewTopic(
        name="new",
        assignments=[ReplicaAssignment(partition=1, replicas=(1,)), ReplicaAssignment(partition=0, replicas=(1,))],
    )
    plan = plan_create_topics(image, [asked], config=config, placement=placement)
    assert [(result.error, result.partitions) for result in plan.results] == [(ErrorCode.NONE, 2)]
    assert [record.partition for record in plan.records if isinstance(record, PartitionRecord)] == [0, 1]


@pytest.mark.parametrize(
    ("asked", "code", "sentence"),
    [
        (
            NewTopic(name="n", partitions=1, assignments=[ReplicaAssignment(partition=0, replicas=(1,))]),
            ErrorCode.INVALID_REQUEST,
            "numPartitions",
        ),
        (
            NewTopic(
                name="n",
                partitions=-1,
                replication_factor=1,
                configs=(),
                assignments=[ReplicaAssignment(partition=0, replicas=(1,))],
            ),
            ErrorCode.INVALID_REQUEST,
            "replication factor",
        ),
        (
            NewTopic(name="n", assignments=[ReplicaAssignment(partition=0, replicas=(1,))] * 2),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "multiple manual partition assignments for partition 0",
        ),
        (
            NewTopic(name="n", assignments=[ReplicaAssignment(partition=1, replicas=(1,))]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "consecutive 0-based",
        ),
        (
            NewTopic(name="n", assignments=[ReplicaAssignment(partition=0, replicas=())]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "empty replica list",
        ),
        (
            NewTopic(name="n", assignments=[ReplicaAssignment(partition=0, replicas=(1, 2))]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "includes broker 2, but no such broker is registered",
        ),
        (
            NewTopic(name="n", assignments=[ReplicaAssignment(partition=0, replicas=(1, 1))]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "the broker 1 more than once",
        ),
        (
            NewTopic(name="n", partitions=1, replication_factor=3),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "only 1 broker(s) are registered",
        ),
        (
            NewTopic(name="n", partitions=1, replication_factor=1, configs=config_rows({"retention.ms": None})),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported",
        ),
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
    ("replicas", "sentence"),
    [([(1,)], "Attempted to add 2 additional partition(s), but only 1"), ([(1,), (7,)], "includes broker 7")],
)
def test_growth_with_impossible_assignments_is_refused(
    image: MetadataImage, placement: Placement, replicas: list[tuple[int, ...]], sentence: str
) -> None:
    plan = plan_create_partitions(
        image,
        [
            NewPartitions(
                name="old.topic", count=4, assignments=[NewPartitionAssignment(replicas=each) for each in replicas]
            )
        ],
        placement=placement,
    )
    (result,) = plan.results
    assert result.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert sentence in (result.message or "")
    assert plan.records == []

"""Config changes of topics and brokers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.broker.metadata.configs import plan_alter_configs
from barnabas.broker.metadata.image import MetadataImage
from barnabas.config import BrokerConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import (
    BROKER_RESOURCE,
    OP_APPEND,
    OP_DELETE,
    OP_SET,
    OP_SUBTRACT,
    TOPIC_RESOURCE,
    AlterConfigOp,
    AlterConfigsResource,
)
from barnabas.protocol.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    TopicRecord,
)

STORED: list[MetadataRecord] = [
    TopicRecord("orders", bytes([1] * 16)),
    ConfigRecord(2, "orders", "retention.ms", "1000"),
    ConfigRecord(2, "orders", "property.of.the.future", "x"),
    ConfigRecord(4, "", "log.retention.ms", "1000"),
    ConfigRecord(4, "", "property.of.the.future", "x"),
]


@pytest.fixture
def image(image_of: Callable[[list[MetadataRecord]], MetadataImage]) -> MetadataImage:
    """Return an image with configs of a topic and of all brokers, some of which would be rejected today."""
    return image_of(STORED)


def alter(
    image: MetadataImage, config: BrokerConfig, resource_type: int, name: str, *operations: AlterConfigOp
) -> tuple[ErrorCode, list[MetadataRecord]]:
    asked = AlterConfigsResource(type=resource_type, name=name, operations=list(operations))
    plan = plan_alter_configs(image, [asked], config=config, node_id=1)
    (result,) = plan.results
    assert bool(result.message) or result.error is ErrorCode.NONE
    return result.error, plan.records


def set_to(name: str, value: str | None) -> AlterConfigOp:
    return AlterConfigOp(name=name, operation=OP_SET, value=value)


def deleted(name: str) -> AlterConfigOp:
    return AlterConfigOp(name=name, operation=OP_DELETE)


def test_a_topic_gets_loses_and_keeps_properties(
    image: MetadataImage, configuration: Callable[..., BrokerConfig]
) -> None:
    operations = [set_to("segment.bytes", "1048576"), deleted("retention.ms"), deleted("cleanup.policy")]
    assert alter(image, configuration(), TOPIC_RESOURCE, "orders", *operations) == (
        ErrorCode.NONE,
        [ConfigRecord(2, "orders", "retention.ms", None), ConfigRecord(2, "orders", "segment.bytes", "1048576")],
    )


def test_an_unchanged_value_creates_no_record(image: MetadataImage, configuration: Callable[..., BrokerConfig]) -> None:
    asked = set_to("retention.ms", "1000")
    assert alter(image, configuration(), TOPIC_RESOURCE, "orders", asked) == (ErrorCode.NONE, [])


@pytest.mark.parametrize(("name", "scope"), [("", ""), ("1", "1")])
def test_brokers_have_a_default_and_a_scope_of_their_own(
    image: MetadataImage, configuration: Callable[..., BrokerConfig], name: str, scope: str
) -> None:
    assert alter(image, configuration(), BROKER_RESOURCE, name, set_to("log.retention.bytes", "5000")) == (
        ErrorCode.NONE,
        [ConfigRecord(4, scope, "log.retention.bytes", "5000")],
    )


@pytest.mark.parametrize(
    ("resource_type", "name", "operations", "code"),
    [
        (TOPIC_RESOURCE, "none", [set_to("retention.ms", "1")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC_RESOURCE, "orders", [set_to("no.such.config", "1")], ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "orders", [set_to("retention.ms", "soon")], ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "orders", [set_to("retention.ms", None)], ErrorCode.INVALID_REQUEST),
        (
            TOPIC_RESOURCE,
            "orders",
            [AlterConfigOp(name="retention.ms", operation=4, value="1")],
            ErrorCode.INVALID_REQUEST,
        ),
        (
            TOPIC_RESOURCE,
            "orders",
            [AlterConfigOp(name="retention.ms", operation=OP_APPEND, value="1")],
            ErrorCode.INVALID_CONFIG,
        ),
        (
            TOPIC_RESOURCE,
            "orders",
            [AlterConfigOp(name="cleanup.policy", operation=OP_APPEND, value="x")],
            ErrorCode.INVALID_CONFIG,
        ),
        (TOPIC_RESOURCE, "orders", [set_to("compression.type", "x" * 40_000)], ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "orders", [deleted("retention.ms")] * 2, ErrorCode.INVALID_REQUEST),
        (BROKER_RESOURCE, "2", [set_to("log.retention.ms", "1")], ErrorCode.INVALID_REQUEST),
        (BROKER_RESOURCE, "1", [set_to("log.dirs", "/x")], ErrorCode.INVALID_REQUEST),
        (BROKER_RESOURCE, "1", [set_to("log.retention.ms", "x")], ErrorCode.INVALID_REQUEST),
        (BROKER_RESOURCE, "1", [set_to("no.such.config", "x")], ErrorCode.INVALID_REQUEST),
        (9, "x", [], ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_invalid_change_is_refused_with_its_code_and_as_a_whole(
    image: MetadataImage,
    configuration: Callable[..., BrokerConfig],
    resource_type: int,
    name: str,
    operations: list[AlterConfigOp],
    code: ErrorCode,
) -> None:
    good = set_to("flush.messages" if resource_type == TOPIC_RESOURCE else "log.retention.bytes", "7")
    assert alter(image, configuration(), resource_type, name, good, *operations) == (code, [])


def test_a_change_may_not_make_a_combination_impossible_and_one_that_is_stored_blocks_no_other_change(
    image_of: Callable[[list[MetadataRecord]], MetadataImage], configuration: Callable[..., BrokerConfig]
) -> None:
    lowest, highest = "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"
    some = image_of([ConfigRecord(4, "", lowest, "9"), ConfigRecord(4, "", highest, "20")])
    bad = image_of([ConfigRecord(4, "", lowest, "9"), ConfigRecord(4, "", highest, "5")])

    def code(image: MetadataImage, name: str, operation: AlterConfigOp) -> ErrorCode:
        return alter(image, configuration(f"{highest}=8"), BROKER_RESOURCE, name, operation)[0]

    for name in ("", "1"):
        assert code(some, name, set_to(highest, "8")) is ErrorCode.INVALID_REQUEST
        assert code(bad, name, set_to(highest, "8")) is ErrorCode.INVALID_REQUEST
        assert code(bad, name, set_to("log.flush.interval.messages", "7")) is ErrorCode.NONE
        assert code(bad, name, set_to(highest, "9")) is ErrorCode.NONE
        assert code(bad, name, set_to(lowest, "5")) is ErrorCode.NONE
    assert code(some, "", deleted(highest)) is ErrorCode.INVALID_REQUEST
    assert code(bad, "", deleted(lowest)) is ErrorCode.NONE


def test_a_stored_combination_of_a_topic_that_cannot_be_blocks_no_other_change(
    image_of: Callable[[list[MetadataRecord]], MetadataImage], configuration: Callable[..., BrokerConfig]
) -> None:
    lowest, highest = "min.compaction.lag.ms", "max.compaction.lag.ms"
    stored = image_of([*STORED, ConfigRecord(2, "orders", lowest, "9")])

    def code(operation: AlterConfigOp) -> ErrorCode:
        config = configuration("log.cleaner.max.compaction.lag.ms=5")  # lowered later
        return alter(stored, config, TOPIC_RESOURCE, "orders", operation)[0]

    assert code(set_to("retention.ms", "5")) is ErrorCode.NONE
    assert code(set_to(highest, "9")) is ErrorCode.NONE
    assert code(deleted(lowest)) is ErrorCode.NONE
    assert code(set_to(highest, "8")) is ErrorCode.INVALID_CONFIG
    assert code(set_to(lowest, "8")) is ErrorCode.INVALID_CONFIG


def test_a_resource_named_twice_is_refused(image: MetadataImage, configuration: Callable[..., BrokerConfig]) -> None:
    asked = AlterConfigsResource(type=TOPIC_RESOURCE, name="orders", operations=[set_to("retention.ms", "5")])
    plan = plan_alter_configs(image, [asked, asked], config=configuration(), node_id=1)
    assert [result.error for result in plan.results] == [ErrorCode.INVALID_REQUEST] * 2


def test_a_config_that_kafka_4_refuses_is_legal_with_a_warning(
    image: MetadataImage, configuration: Callable[..., BrokerConfig]
) -> None:
    asked = AlterConfigsResource(type=TOPIC_RESOURCE, name="orders", operations=[set_to("segment.bytes", "2048")])
    (result,) = plan_alter_configs(image, [asked], config=configuration(), node_id=1).results
    assert result.error is ErrorCode.NONE
    assert "Apache Kafka 4.x" in (result.warning or "")


@pytest.mark.parametrize(
    ("before", "operation", "entries", "after"),
    [
        (None, OP_APPEND, "compact", "delete,compact"),
        ("compact", OP_APPEND, "delete", "compact,delete"),
        ("compact", OP_APPEND, "compact", "compact"),
        ("compact,delete", OP_SUBTRACT, "delete", "compact"),
        ("compact", OP_SUBTRACT, "delete,compact", ""),
        (None, OP_SUBTRACT, "delete", ""),
        (None, OP_APPEND, "compact, delete", "delete,compact, delete"),
        ("delete", OP_APPEND, "compact,", "delete,compact"),
        ("delete", OP_APPEND, ",", "delete"),
        ("compact,compact", OP_SUBTRACT, "compact", "compact"),
    ],
)
def test_a_list_grows_and_shrinks_by_its_entries(
    image_of: Callable[[list[MetadataRecord]], MetadataImage],
    configuration: Callable[..., BrokerConfig],
    before: str | None,
    operation: int,
    entries: str,
    after: str,
) -> None:
    records: list[MetadataRecord] = [TopicRecord("listed", bytes([3] * 16))]
    if before is not None:
        records.append(ConfigRecord(2, "listed", "cleanup.policy", before))
    code, made = alter(
        image_of(records),
        configuration(),
        TOPIC_RESOURCE,
        "listed",
        AlterConfigOp(name="cleanup.policy", operation=operation, value=entries),
    )
    assert code is ErrorCode.NONE
    assert made == ([] if before == after else [ConfigRecord(2, "listed", "cleanup.policy", after)])


def test_replacing_deletes_properties_that_are_not_set_again(
    image: MetadataImage, configuration: Callable[..., BrokerConfig]
) -> None:
    asked = AlterConfigsResource(type=TOPIC_RESOURCE, name="orders", operations=[set_to("flush.messages", "9")])
    plan = plan_alter_configs(image, [asked], config=configuration(), node_id=1, replace=True)
    assert plan.records == [
        ConfigRecord(2, "orders", "flush.messages", "9"),
        *(ConfigRecord(2, "orders", name, None) for name in sorted(image.topic_configs("orders"))),
    ]
    assert plan.results[0].error is ErrorCode.NONE


@pytest.mark.parametrize(
    ("name", "operations", "replace", "message"),
    [
        ("", [deleted("min.insync.replicas")], False, "Cluster-level min.insync.replicas cannot be removed"),
        ("", [], True, "Cluster-level min.insync.replicas cannot be removed"),
        ("1", [set_to("min.insync.replicas", "1")], False, "Broker-level min.insync.replicas cannot be altered"),
        ("1", [deleted("min.insync.replicas")], False, "Broker-level min.insync.replicas cannot be altered"),
        ("", [set_to("min.insync.replicas", "1")], True, None),
        ("1", [], True, None),
    ],
)
@pytest.mark.parametrize("elr", [0, 1])
def test_with_eligible_leader_replicas_the_minimum_of_the_cluster_stays(
    image_of: Callable[[list[MetadataRecord]], MetadataImage],
    configuration: Callable[..., BrokerConfig],
    name: str,
    operations: list[AlterConfigOp],
    replace: bool,
    message: str | None,
    elr: int,
) -> None:
    image = image_of(
        [
            FeatureLevelRecord("eligible.leader.replicas.version", elr),
            ConfigRecord(BROKER_RESOURCE, "", "min.insync.replicas", "1"),
        ]
    )
    resource = AlterConfigsResource(type=BROKER_RESOURCE, name=name, operations=operations)
    plan = plan_alter_configs(image, [resource], config=configuration(), node_id=1, replace=replace)
    if message is None or not elr:
        assert plan.results[0].error is ErrorCode.NONE
    else:
        assert plan.results[0].error is ErrorCode.INVALID_CONFIG
        assert plan.results[0].message == f"{message} while ELR is enabled."
        assert not plan.records

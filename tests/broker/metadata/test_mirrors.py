"""Mirrors in the metadata: plans, replay, snapshots, and records that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.metadata.image import ALL_BROKERS
from barnabas.broker.metadata.mirrors.definitions import plan_alter_mirror, plan_delete_mirror
from barnabas.broker.metadata.mirrors.image import mirror_record
from barnabas.broker.metadata.mirrors.producer_ids import own_range
from barnabas.broker.metadata.mirrors.refusals import read_only_mirror
from barnabas.broker.metadata.mirrors.topics import (
    plan_follow_configs,
    plan_grow_topic,
    plan_raise_leader_epochs,
    plan_set_topic_mirror,
)
from barnabas.broker.metadata.plan import Plan
from barnabas.broker.metadata.topics import plan_create_topics, plan_delete_topics
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.cluster.configs import (
    OP_APPEND,
    OP_DELETE,
    OP_SET,
    AlterConfigOp,
)
from barnabas.protocol.messages.topics.topics import NewTopic, TopicReference
from barnabas.protocol.mirrors.definition import definition_of
from barnabas.protocol.mirrors.fields import DEFINITION_PREFIX
from barnabas.protocol.mirrors.topic import TopicMirror, TopicMirrorState, topic_mirror_key
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.mirrors.planned_cluster import CONFIG, DIRECTORY, FIELDS, SOURCE_ID, Cluster, ImageOf


@pytest.fixture
def cluster(image_of: ImageOf) -> Cluster:
    return Cluster(image_of([]))


def test_a_taken_topic_is_created_read_only_with_configs_in_one_batch(cluster: Cluster) -> None:
    cluster.create()
    result = cluster.take()
    assert (result.error, result.partitions) == (ErrorCode.NONE, 2)
    image = cluster.image
    assert image.mirror_of("orders") == TopicMirror("east", result.topic_id, SOURCE_ID)
    assert read_only_mirror(image, "orders") == "east"
    assert (len(image.topics["orders"].partitions), dict(image.topic_configs("orders"))) == (
        2,
        {"cleanup.policy": "compact"},
    )
    assert ALL_BROKERS not in image.configs


def test_a_snapshot_keeps_mirrors(cluster: Cluster) -> None:
    cluster.create()
    cluster.take()
    replayed = cluster.replayed_snapshot()
    assert replayed.mirrors == cluster.image.mirrors
    assert replayed.mirrors.definitions["east"] == definition_of("east", FIELDS)


def test_the_image_of_mirrors_stays_the_same_object_while_nothing_about_them_changes(cluster: Cluster) -> None:
    cluster.create()
    before = cluster.image.mirrors
    cluster.change(
        plan_create_topics(
            cluster.image,
            [NewTopic(name="other", partitions=1, replication_factor=1)],
            config=CONFIG,
            placement=cluster.placement(),
        )
    )
    assert cluster.image.mirrors is before


def test_the_first_mirror_moves_producer_ids_to_the_clusters_own_range(cluster: Cluster) -> None:
    cluster.create()
    first = own_range("c").start
    assert cluster.image.next_producer_id == first >= 2**40
    assert own_range("d").start != first
    cluster.change(Plan([], []))
    cluster.create("west")
    assert cluster.image.next_producer_id == first


@pytest.mark.parametrize(
    ("more", "code", "sentence"),
    [
        ({"topic": "__consumer_offsets"}, ErrorCode.INVALID_TOPIC_EXCEPTION, "is never mirrored"),
        ({"mirror": "north"}, ErrorCode.RESOURCE_NOT_FOUND, "mirror 'north' does not exist"),
        ({"topic": "local"}, ErrorCode.TOPIC_ALREADY_EXISTS, "exists here: delete it"),
        ({"topic": "a/b"}, ErrorCode.INVALID_TOPIC_EXCEPTION, ""),
        ({"configs": {"cleanup.policy": "x"}}, ErrorCode.INVALID_CONFIG, "cleanup.policy"),
    ],
)
def test_a_topic_that_cannot_be_taken_says_why(
    cluster: Cluster, more: dict[str, Any], code: ErrorCode, sentence: str
) -> None:
    cluster.create()
    cluster.change(
        plan_create_topics(
            cluster.image,
            [NewTopic(name="local", partitions=1, replication_factor=1)],
            config=CONFIG,
            placement=cluster.placement(),
        )
    )
    result = cluster.take(**more)
    assert result.error is code
    assert sentence in (result.message or "")


def test_a_topic_has_one_mirror(cluster: Cluster) -> None:
    cluster.create()
    cluster.create("west")
    cluster.take()
    result = cluster.take(mirror="west")
    assert result.error is ErrorCode.TOPIC_ALREADY_EXISTS
    assert "belongs to mirror 'east'" in (result.message or "")


def test_a_mirror_grows_its_topic_and_follows_configs(cluster: Cluster) -> None:
    cluster.create()
    cluster.take()
    cluster.change(plan_grow_topic(cluster.image, "orders", 5, placement=cluster.placement()))
    cluster.change(plan_follow_configs(cluster.image, "orders", {"retention.ms": "7"}))
    assert len(cluster.image.topics["orders"].partitions) == 5
    assert dict(cluster.image.topic_configs("orders")) == {"retention.ms": "7"}


def test_a_topic_deleted_here_is_taken_again_only_after_a_resume(cluster: Cluster) -> None:
    cluster.create()
    cluster.take()
    cluster.change(plan_delete_topics(cluster.image, [TopicReference(name="orders")], config=CONFIG))
    assert cluster.image.mirrors.topics["orders"].state is TopicMirrorState.DELETED_HERE
    assert cluster.take().error is ErrorCode.POLICY_VIOLATION
    cluster.change(plan_alter_mirror(cluster.image, "east", {"desired": "running"}))
    assert cluster.take().error is ErrorCode.NONE


def test_a_topic_of_the_same_name_and_another_id_is_no_mirror(cluster: Cluster) -> None:
    cluster.create()
    cluster.take()
    stored = cluster.image.mirrors.texts[topic_mirror_key("orders")]
    cluster.change(plan_delete_topics(cluster.image, [TopicReference(name="orders")], config=CONFIG))
    cluster.change(Plan([], [mirror_record(topic_mirror_key("orders"), stored)]))
    cluster.change(
        plan_create_topics(
            cluster.image,
            [NewTopic(name="orders", partitions=1, replication_factor=1)],
            config=CONFIG,
            placement=cluster.placement(),
        )
    )
    assert cluster.image.mirror_of("orders") is None


def test_a_mirror_with_read_only_topics_is_deleted_only_when_it_releases_them(cluster: Cluster) -> None:
    cluster.create()
    cluster.take()
    with pytest.raises(BrokerError, match="mirror 'east' has 1 read-only topic: delete") as refused:
        plan_delete_mirror(cluster.image, "east", releases_topics=False)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert cluster.change(plan_delete_mirror(cluster.image, "east", releases_topics=True)) == ["orders"]
    assert cluster.image.mirrors.texts == {}
    assert read_only_mirror(cluster.image, "orders") is None


def test_leader_epochs_only_rise(cluster: Cluster) -> None:
    cluster.create()
    cluster.take()
    first = TopicPartition("orders", 0)
    assert cluster.change(plan_raise_leader_epochs(cluster.image, {first: 9})) == [first]
    state = cluster.image.partition("orders", 0)
    assert state is not None
    assert (state.leader_epoch, state.partition_epoch, state.directories) == (9, 1, (DIRECTORY,))
    assert plan_raise_leader_epochs(cluster.image, {first: 8, TopicPartition("gone", 0): 1}) == Plan([], [])


def test_a_state_is_recorded_only_for_the_topic_that_the_mirror_has(cluster: Cluster) -> None:
    cluster.create()
    topic_id = cluster.take().topic_id
    failed = TopicMirror("east", topic_id, SOURCE_ID, TopicMirrorState.FAILED)
    cluster.change(plan_set_topic_mirror(cluster.image, "orders", failed))
    assert cluster.image.mirror_of("orders") == failed
    for other in (TopicMirror("west", topic_id), TopicMirror("east", bytes(16))):
        with pytest.raises(BrokerError, match="does not belong to mirror"):
            plan_set_topic_mirror(cluster.image, "orders", other)


def test_records_that_cannot_be_read_are_kept_and_named_and_their_topic_stays_read_only(cluster: Cluster) -> None:
    cluster.create()
    cluster.take()
    broken = [
        mirror_record(DEFINITION_PREFIX + "odd", '{"bootstrap":[]}'),
        mirror_record(topic_mirror_key("orders"), "{}"),
    ]
    cluster.change(Plan([], list(broken)))
    assert read_only_mirror(cluster.image, "orders") == "?"
    assert sorted(cluster.image.mirrors.complaints())[0].startswith("barnabas.mirror.definition.odd cannot be read")
    assert cluster.replayed_snapshot().mirrors == cluster.image.mirrors
    cluster.change(plan_alter_mirror(cluster.image, "odd", FIELDS))
    assert set(cluster.image.mirrors.definitions) == {"east", "odd"}


KEY = DEFINITION_PREFIX + "east"


def test_alter_configs_replaces_and_deletes_definitions_and_keeps_those_it_does_not_name(cluster: Cluster) -> None:
    cluster.create()
    paused = definition_of("east", {**FIELDS, "desired": "paused"})
    assert cluster.alter_default(AlterConfigOp(name=KEY, operation=OP_SET, value=paused.text())).error is ErrorCode.NONE
    assert cluster.image.mirrors.definitions["east"] == paused
    threads = AlterConfigOp(name="num.io.threads", operation=OP_SET, value="9")
    assert cluster.alter_default(threads, replace=True).error is ErrorCode.NONE
    assert cluster.image.mirrors.definitions["east"] == paused
    assert dict(cluster.image.default_broker_configs()) == {"num.io.threads": "9"}
    assert cluster.alter_default(AlterConfigOp(name=KEY, operation=OP_DELETE, value=None)).error is ErrorCode.NONE
    assert cluster.image.mirrors.texts == {}


def test_an_unchanged_definition_in_alter_configs_does_not_bring_deleted_topics_back(cluster: Cluster) -> None:
    cluster.create()
    cluster.take()
    cluster.change(plan_delete_topics(cluster.image, [TopicReference(name="orders")], config=CONFIG))
    before = cluster.image.mirrors
    same = AlterConfigOp(name=KEY, operation=OP_SET, value=cluster.image.mirrors.texts[KEY])
    assert (
        cluster.alter_default(same, AlterConfigOp(name="num.io.threads", operation=OP_SET, value="9")).error
        is ErrorCode.NONE
    )
    assert cluster.image.mirrors == before


@pytest.mark.parametrize(
    ("operation", "sentence"),
    [
        (AlterConfigOp(name=KEY, operation=OP_SET, value='{"passwort":"x"}'), "mirror 'east': unknown field passwort"),
        (AlterConfigOp(name=KEY, operation=OP_APPEND, value="x"), "can only be set or deleted"),
        (
            AlterConfigOp(name=DEFINITION_PREFIX + "new", operation=OP_SET, value=definition_of("new", FIELDS).text()),
            "mirror create",
        ),
        (
            AlterConfigOp(name=topic_mirror_key("orders"), operation=OP_DELETE, value=None),
            "is written by the mirror alone",
        ),
        (AlterConfigOp(name="barnabas.mirror.other", operation=OP_SET, value="1"), "barnabas.mirror.other"),
    ],
)
def test_alter_configs_refuses_what_is_no_definition(cluster: Cluster, operation: AlterConfigOp, sentence: str) -> None:
    cluster.create()
    cluster.take()
    before = cluster.image
    result = cluster.alter_default(operation)
    assert result.error is ErrorCode.INVALID_REQUEST
    assert sentence in (result.message or "")
    assert cluster.image.mirrors == before.mirrors

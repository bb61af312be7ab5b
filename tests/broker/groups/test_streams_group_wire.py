"""Streams groups of a running broker over Kafka's protocol: Kafka's answers and records, restarts, other groups."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups.streams_group_heartbeat import StatusCode
from barnabas.protocol.topic_name import OFFSETS_TOPIC
from tests.support.authorization.entities import request
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually
from tests.support.groups.streams_requests import (
    SETTINGS,
    Member,
    create_topic,
    describe,
    live,
    records_of,
    settled,
    statuses,
    topology,
)
from tests.support.kafka.kafka_wire import KafkaWire, schema

RECORDED = json.loads((Path(__file__).parent / "data" / "streams-kafka-4.3.0.json").read_text())
FEATURES = "initial.features=transaction.version=2,streams.version=1"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    settings = [f"{name}={value}" for name, value in SETTINGS.items()]
    with start_daemon(tmp_path_factory.mktemp("streams"), FEATURES, *settings) as daemon:
        yield daemon
        assert "Traceback" not in daemon.log


@pytest.fixture
def wire(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as wire:
        yield wire


def application(wire: KafkaWire, name: str, partitions: int = 2) -> dict[str, Any]:
    """Create the source topic of an application, and return its topology."""
    create_topic(wire, f"{name}-in", partitions)
    return topology(source=f"{name}-in", prefix=name)


def test_the_answers_and_records_of_a_groups_life_are_kafkas(tmp_path: Path) -> None:
    settings = [f"{name}={value}" for name, value in SETTINGS.items()]
    with start_daemon(tmp_path, FEATURES, *settings) as daemon:
        with KafkaWire(daemon.host, daemon.port) as wire:
            answers = live(wire)
        records = records_of(daemon.data_directory / f"{OFFSETS_TOPIC}-0")
    for number, (ours, kafkas) in enumerate(zip(answers, RECORDED["answers"], strict=True)):
        assert ours == kafkas, number
    assert records == RECORDED["records"]


def test_a_killed_broker_has_its_groups_again(daemon: Daemon, wire: KafkaWire) -> None:
    shape = application(wire, "killed")
    one, two = Member(wire, "killed", "one"), Member(wire, "killed", "two")
    one.join(topology=shape)
    settled(one, lambda answer: not answer.status)
    two.join(topology=shape)
    one.report()
    (before,) = describe(wire, "killed")

    daemon.restart(clean=False)

    with KafkaWire(daemon.host, daemon.port) as again:
        found = eventually(lambda: _loaded(again, "killed"), what="the group")
        assert (found.group_state, found.group_epoch, found.members) == (
            before.group_state,
            before.group_epoch,
            before.members,
        )
        restarted = Member(again, "killed", "one")
        restarted.epoch, restarted.active = one.epoch, one.active
        assert restarted.report().error_code == 0
        assert describe(again, "killed")[0].group_epoch == before.group_epoch


def test_internal_topics_get_the_configs_and_partition_counts_of_the_topology(daemon: Daemon, wire: KafkaWire) -> None:
    shape = application(wire, "made", partitions=3)
    member = Member(wire, "made", "one")
    answer = member.join(topology=shape)
    assert statuses(answer) == [StatusCode.MISSING_INTERNAL_TOPICS]
    found = wire.call("metadata", 8, **_metadata("made-rep-repartition", "made-store-changelog"))
    assert [(topic.name, len(topic.partitions)) for topic in found.topics] == [
        ("made-rep-repartition", 3),
        ("made-store-changelog", 3),
    ]
    assert _cleanup_policy(wire, "made-store-changelog") == "compact"
    assert not settled(member, lambda answer: answer.active_tasks).status
    assert member.active == {"0": (0, 1, 2), "1": (0, 1, 2)}


def test_topics_that_do_not_fit_are_told_and_give_no_tasks(wire: KafkaWire) -> None:
    shape = application(wire, "unfit", partitions=3)
    create_topic(wire, "unfit-rep-repartition", 2)
    create_topic(wire, "unfit-store-changelog", 3)
    member = Member(wire, "unfit", "one")
    answer = member.join(topology=shape)
    assert statuses(answer) == [StatusCode.INCORRECTLY_PARTITIONED_TOPICS]
    assert answer.active_tasks == ()
    assert describe(wire, "unfit")[0].group_state == "NotReady"


def test_a_member_id_has_at_most_36_characters(wire: KafkaWire) -> None:
    shape = application(wire, "named")
    assert Member(wire, "named", "x" * 36).join(topology=shape).error_code == ErrorCode.NONE
    refused = Member(wire, "named", "x" * 37).join(topology=shape)
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "MemberId can't be longer than 36 characters.",
    )
    assert [each.member_id for each in describe(wire, "named")[0].members] == ["x" * 36]


def test_standby_tasks_follow_the_groups_config(wire: KafkaWire) -> None:
    shape = application(wire, "standby")
    one, two = Member(wire, "standby", "one"), Member(wire, "standby", "two")
    one.join(topology=shape, user_endpoint={"host": "one", "port": 1})
    settled(one, lambda answer: not answer.status)
    two.join(topology=shape, user_endpoint={"host": "two", "port": 2})
    _set_group_config(wire, "standby", "streams.num.standby.replicas", "1")
    for _ in range(6):
        one.report()
        two.report()
    assert {**one.standby, **two.standby}.keys() == {"1"}  # only it has state
    assert sorted((*one.standby["1"], *two.standby["1"])) == [0, 1]
    assert set(one.standby["1"]).isdisjoint(one.active.get("1", ()))
    one.endpoint_epoch = 0
    found = {each.user_endpoint.host: each for each in one.report().partitions_by_user_endpoint}
    covered = {
        (topic.topic, number)
        for each in found.values()
        for topic in each.active_partitions
        for number in topic.partitions
    }
    assert covered == {(f"standby-{name}", number) for name in ("in", "rep-repartition") for number in (0, 1)}


def test_a_new_group_waits_for_more_members_before_its_first_assignment(wire: KafkaWire) -> None:
    shape = application(wire, "waiting")
    create_topic(wire, "waiting-rep-repartition", 2)
    create_topic(wire, "waiting-store-changelog", 2)
    _set_group_config(wire, "waiting", "streams.initial.rebalance.delay.ms", "300")
    one, two = Member(wire, "waiting", "one"), Member(wire, "waiting", "two")
    assert statuses(one.join(topology=shape)) == [StatusCode.ASSIGNMENT_DELAYED]
    assert statuses(two.join(topology=shape)) == [StatusCode.ASSIGNMENT_DELAYED]
    assert describe(wire, "waiting")[0].group_state == "Assigning"
    settled(one, lambda answer: not answer.status)
    two.send()
    assert {len(each.active["0"]) + len(each.active["1"]) for each in (one, two)} == {2}
    assert describe(wire, "waiting")[0].group_epoch == 3  # both joins, one assignment


def test_groups_of_other_types_keep_their_id_until_they_are_empty(wire: KafkaWire) -> None:
    shape = application(wire, "typed")
    member = Member(wire, "typed", "one")
    member.join(topology=shape)
    consumer = _join_consumer(wire, "typed", ["typed-in"])
    assert consumer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    described = wire.call("describe_groups", 6, groups=("typed",), include_authorized_operations=False)
    assert described.groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert _join_classic(wire, "typed").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    member.leave()
    joined = _join_classic(wire, "typed")
    assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert describe(wire, "typed")[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert Member(wire, "typed", "one").join(topology=shape).error_code == 0  # no member of the classic group came
    consumer = _join_consumer(wire, "consumers", ["typed-in"])
    assert consumer.error_code == 0
    assert Member(wire, "consumers", "one").join(topology=shape).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_the_protocol_is_served_from_the_change_of_the_feature_on(tmp_path: Path) -> None:
    before = "initial.features=transaction.version=2"
    with start_daemon(tmp_path, before) as daemon, KafkaWire(daemon.host, daemon.port) as wire:
        create_topic(wire, "in", 1)
        member = Member(wire, "app", "one")
        assert member.join().error_code == ErrorCode.UNSUPPORTED_VERSION
        assert describe(wire, "app")[0].error_code == ErrorCode.UNSUPPORTED_VERSION
        update = {"feature": "streams.version", "max_version_level": 1, "upgrade_type": 1}
        wire.send(request("update_features", 1, {"timeout": 1000, "feature_updates": [update], "validate_only": False}))
        assert wire.receive("update_features", 1).error_code == 0
        assert member.join().error_code == 0


def _loaded(wire: KafkaWire, group: str) -> Any:
    found = describe(wire, group)[0]
    return found if found.error_code == 0 else None


def _metadata(*names: str) -> dict[str, Any]:
    topic = schema("metadata", 8, "request").MetadataRequestTopic
    return {
        "topics": tuple(topic(name=name) for name in names),
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }


def _cleanup_policy(wire: KafkaWire, topic: str) -> str:
    resource = {"resource_type": 2, "resource_name": topic, "configuration_keys": ["cleanup.policy"]}
    values = {"resources": [resource], "include_synonyms": False, "include_documentation": False}
    wire.send(request("describe_configs", 4, values))
    (config,) = wire.receive("describe_configs", 4).results[0].configs
    value: str = config.value
    return value


def _set_group_config(wire: KafkaWire, group: str, name: str, value: str) -> None:
    config = {"name": name, "config_operation": 0, "value": value}
    resource = {"resource_type": 32, "resource_name": group, "configs": [config]}
    wire.send(request("incremental_alter_configs", 1, {"resources": [resource], "validate_only": False}))
    assert wire.receive("incremental_alter_configs", 1).responses[0].error_code == 0


def _join_consumer(wire: KafkaWire, group: str, topics: list[str]) -> Any:
    values = {
        "group_id": group,
        "member_id": "consumer",
        "member_epoch": 0,
        "rebalance_timeout": 60_000,
        "subscribed_topic_names": topics,
        "topic_partitions": [],
    }
    wire.send(request("consumer_group_heartbeat", 0, values))
    return wire.receive("consumer_group_heartbeat", 0)


def _join_classic(wire: KafkaWire, group: str) -> Any:
    values = {
        "group_id": group,
        "session_timeout": 30_000,
        "rebalance_timeout": 30_000,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    wire.send(request("join_group", 5, values))
    return wire.receive("join_group", 5)

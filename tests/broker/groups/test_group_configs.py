"""Configs of groups (resource type 32): set, listed, described, rejected, and their effect on members."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from barnabas.broker.groups.share.settings import ShareGroupSettings
from barnabas.commands.main import main
from barnabas.config import BrokerConfig, ConfigError, load
from barnabas.config.group_configs import GROUP_CONFIGS, SESSION_TIMEOUT, group_value, validate_group_configs
from barnabas.config.offset_reset import OffsetReset, ResetTo, parse_offset_reset
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import GROUP_RESOURCE, OP_APPEND, OP_DELETE, OP_SET
from barnabas.protocol.metadata.records import ConfigRecord
from tests.support.daemon import Daemon, start_daemon
from tests.support.groups.committed import until_loaded
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.storage.directories import append_metadata

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
OF_GROUP, DEFAULT = 8, 5


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


def alter(kafka: KafkaWire, group: str, name: str, value: str | None, operation: int = OP_SET) -> tuple[int, str]:
    kinds = schema("incremental_alter_configs", 1, "request")
    config = kinds.AlterableConfig(name=name, config_operation=operation, value=value)
    resource = kinds.AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=(config,))
    (result,) = kafka.call("incremental_alter_configs", 1, resources=(resource,), validate_only=False).responses
    return result.error_code, result.error_message or ""


def describe(kafka: KafkaWire, group: str) -> dict[str, Any]:
    kinds = schema("describe_configs", 4, "request")
    resource = kinds.DescribeConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configuration_keys=None)
    answer = kafka.call("describe_configs", 4, resources=(resource,), include_synonyms=True, include_documentation=True)
    (result,) = answer.results
    assert result.error_code == ErrorCode.NONE, result.error_message
    return {config.name: config for config in result.configs}


def told_interval(kafka: KafkaWire, group: str, epoch: int = 0) -> tuple[int, timedelta]:
    """Send a heartbeat; return the epoch and the heartbeat interval in the response."""
    joins: dict[str, Any] = {"rebalance_timeout": timedelta(milliseconds=-1), "topic_partitions": None}
    if epoch == 0:
        joins = {"rebalance_timeout": timedelta(seconds=60), "topic_partitions": ()}
    answer = kafka.call(
        "consumer_group_heartbeat",
        1,
        group_id=group,
        member_id="m",
        member_epoch=epoch,
        instance_id=None,
        rack_id=None,
        server_assignor=None,
        subscribed_topic_names=("t",) if epoch == 0 else None,
        subscribed_topic_regex=None,
        **joins,
    )
    assert answer.error_code == ErrorCode.NONE, answer.error_message
    return answer.member_epoch, answer.heartbeat_interval


def test_a_group_s_config_holds_from_the_member_s_next_heartbeat_and_is_kept(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        epoch, interval = told_interval(kafka, "g")
        assert interval == timedelta(seconds=5)
        assert alter(kafka, "g", HEARTBEAT, "7000")[0] == ErrorCode.NONE
        assert told_interval(kafka, "g", epoch)[1] == timedelta(seconds=7)
        assert told_interval(kafka, "other")[1] == timedelta(seconds=5)
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        assert describe(kafka, "g")[HEARTBEAT].value == "7000"
        assert alter(kafka, "g", HEARTBEAT, None, OP_DELETE)[0] == ErrorCode.NONE
        assert describe(kafka, "g")[HEARTBEAT].value == "5000"


def test_a_group_s_configs_are_described_with_their_sources(kafka: KafkaWire) -> None:
    assert alter(kafka, "described", SESSION, "50000")[0] == ErrorCode.NONE
    configs = describe(kafka, "described")
    assert set(configs) == set(GROUP_CONFIGS)
    session, heartbeat = configs[SESSION], configs[HEARTBEAT]
    assert (session.value, session.config_source, session.read_only) == ("50000", OF_GROUP, False)
    assert [(each.name, each.value, each.source) for each in session.synonyms] == [
        (SESSION, "50000", OF_GROUP),
        ("group.consumer.session.timeout.ms", "45000", DEFAULT),
    ]
    assert (heartbeat.value, heartbeat.config_source) == ("5000", DEFAULT)


def test_groups_that_have_configs_are_listed(kafka: KafkaWire) -> None:
    assert alter(kafka, "listed", SESSION, "50000")[0] == ErrorCode.NONE
    answer = kafka.call("list_config_resources", 1, resource_types=(GROUP_RESOURCE,))
    assert ("listed", GROUP_RESOURCE) in {(each.resource_name, each.resource_type) for each in answer.config_resources}


def test_a_config_of_streams_groups_is_kept_without_effect(kafka: KafkaWire) -> None:
    assert alter(kafka, "streams", "streams.num.standby.replicas", "1")[0] == ErrorCode.NONE
    assert describe(kafka, "streams")["streams.num.standby.replicas"].config_source == OF_GROUP


def test_the_configs_of_share_groups_without_a_broker_property_are_described(kafka: KafkaWire) -> None:
    assert alter(kafka, "share", "share.isolation.level", "read_committed")[0] == ErrorCode.NONE
    configs = describe(kafka, "share")
    isolation, reset = configs["share.isolation.level"], configs["share.auto.offset.reset"]
    assert (isolation.value, isolation.config_source) == ("read_committed", OF_GROUP)
    assert [(each.name, each.value, each.source) for each in isolation.synonyms] == [
        ("share.isolation.level", "read_committed", OF_GROUP),
        ("share.isolation.level", "read_uncommitted", DEFAULT),
    ]
    assert (reset.value, reset.config_source) == ("latest", DEFAULT)
    assert [(each.name, each.value, each.source) for each in reset.synonyms] == [
        ("share.auto.offset.reset", "latest", DEFAULT)
    ]


@pytest.mark.parametrize(
    ("name", "value", "operation", "code", "sentence"),
    [
        (SESSION, "44999", OP_SET, ErrorCode.INVALID_CONFIG, "group.consumer.min.session.timeout.ms=45000 (default)"),
        (SESSION, "60001", OP_SET, ErrorCode.INVALID_CONFIG, "group.consumer.max.session.timeout.ms=60000 (default)"),
        (HEARTBEAT, "4999", OP_SET, ErrorCode.INVALID_CONFIG, "group.consumer.min.heartbeat.interval.ms=5000"),
        (SESSION, "soon", OP_SET, ErrorCode.INVALID_CONFIG, "consumer.session.timeout.ms=soon in the group's config"),
        ("no.such", "1", OP_SET, ErrorCode.INVALID_CONFIG, "no.such in the group's config: Unknown group config name"),
        (f"group.{SESSION}", "50000", OP_SET, ErrorCode.INVALID_CONFIG, f"the group's is {SESSION}"),
        (SESSION, "50000", OP_APPEND, ErrorCode.INVALID_CONFIG, "its type is not LIST"),
        (SESSION, None, OP_SET, ErrorCode.INVALID_REQUEST, "Null value not supported"),
        (
            "share.delivery.count.limit",
            "11",
            OP_SET,
            ErrorCode.INVALID_CONFIG,
            "group.share.max.delivery.count.limit=10",
        ),
        ("share.auto.offset.reset", "by_duration:1h", OP_SET, ErrorCode.INVALID_CONFIG, "'by_duration:<PnDTnHnMn.nS>'"),
        ("share.isolation.level", "none", OP_SET, ErrorCode.INVALID_CONFIG, "read_committed, read_uncommitted"),
    ],
)
def test_invalid_configs_of_a_group_are_named(
    kafka: KafkaWire, name: str, value: str | None, operation: int, code: ErrorCode, sentence: str
) -> None:
    refused, message = alter(kafka, "refused", name, value, operation)
    assert refused == code
    assert sentence in message
    assert describe(kafka, "refused")[SESSION].value == "45000"


def test_there_is_no_default_of_all_groups(kafka: KafkaWire) -> None:
    code, message = alter(kafka, "", SESSION, "50000")
    assert code == ErrorCode.INVALID_REQUEST
    assert "Default group resources are not allowed" in message


def bounded(min_session_ms: int) -> BrokerConfig:
    return load(overrides=[f"group.consumer.min.session.timeout.ms={min_session_ms}"])


def test_a_session_is_longer_than_the_time_between_two_heartbeats() -> None:
    config = bounded(1000)
    with pytest.raises(ConfigError, match="must be greater than consumer"):
        validate_group_configs({SESSION: "5000"}, {SESSION: "5000"}, config)


def test_a_stored_value_outside_of_the_bounds_is_drawn_to_them() -> None:
    config = bounded(50_000)
    assert group_value(config, SESSION_TIMEOUT, {SESSION: "46000"}) == 50_000
    assert group_value(config, SESSION_TIMEOUT, {SESSION: "70000"}) == 60_000
    assert group_value(config, SESSION_TIMEOUT, {SESSION: "rubbish"}) == 45_000


def test_stored_configs_that_are_not_used_are_named_by_the_start_and_by_explain_group(tmp_path: Path) -> None:
    """Another program has stored them: a later Kafka, or one with other rules."""
    problems = [
        f"{SESSION}=soon in the group's config is not understood, not an int: the broker's value is used",
        "share.isolation.level=dirty in the group's config is not understood, "
        "must be one of read_committed, read_uncommitted: the default is used",
        "consumer.new=1 in the group's config: unknown here; it has no effect",
    ]
    with start_daemon(tmp_path) as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            told_interval(kafka, "g")
        assert daemon.stop() == 0
        append_metadata(
            tmp_path / "data",
            ConfigRecord(GROUP_RESOURCE, "g", SESSION, "soon"),
            ConfigRecord(GROUP_RESOURCE, "g", HEARTBEAT, "7000"),
            ConfigRecord(GROUP_RESOURCE, "g", "share.isolation.level", "dirty"),
            ConfigRecord(GROUP_RESOURCE, "g", "consumer.new", "1"),
        )
        daemon.start()
        for problem in problems:
            assert daemon.log.count(f"WARNING barnabas.broker.metadata.store: group g: {problem}\n") == 1
        with KafkaWire(daemon.host, daemon.port) as kafka:
            until_loaded(kafka)
        explained = CliRunner().invoke(main, ["explain", "group", "g", "--bootstrap", daemon.bootstrap])
        assert [line.strip() for line in explained.stdout.splitlines()[1:4]] == problems


def test_names_that_apache_kafka_could_not_read_again_are_refused(kafka: KafkaWire) -> None:
    """Strings in records have at most 32,767 bytes; Kafka could not start on a directory with a longer one."""
    assert alter(kafka, "g" * 32_767, SESSION, "50000") == (ErrorCode.NONE, "")
    assert alter(kafka, "g" * 32_768, SESSION, "50000") == (
        ErrorCode.INVALID_REQUEST,
        "The name of the group is longer than 32767 bytes.",
    )
    assert alter(kafka, "short", "n" * 32_768, "1") == (
        ErrorCode.INVALID_CONFIG,
        "The name of a config is longer than 32767 bytes.",
    )


def test_a_share_group_s_settings_are_the_broker_s_with_its_own_configs_on_top() -> None:
    broker = ShareGroupSettings.of(load(overrides=["group.share.record.lock.duration.ms=20000"]))
    assert broker.with_overrides({}) is broker
    assert (broker.record_lock_duration_ms, broker.offset_reset) == (20_000, OffsetReset(ResetTo.LATEST))
    own = broker.with_overrides(
        {
            "share.auto.offset.reset": "by_duration:P1DT1H0.5S",
            "share.delivery.count.limit": "3",
            "share.isolation.level": "read_committed",
            "share.record.lock.duration.ms": "rubbish",
            "share.renew.acknowledge.enable": "false",
        }
    )
    assert own.offset_reset == OffsetReset(ResetTo.BY_DURATION, 90_000_500)
    assert (own.delivery_count_limit, own.record_lock_duration_ms) == (3, 20_000)
    assert (own.reads_committed, own.may_renew) == (True, False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Earliest",
        "BY_DURATION:PT1S",
        "by_duration",
        "by_duration:",
        "by_duration:P",
        "by_duration:PT",
        "by_duration:-PT1S",
    ],
)
def test_an_offset_reset_is_in_lower_case_with_an_iso_8601_duration_that_is_not_negative(text: str) -> None:
    assert parse_offset_reset(text) is None

"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs of Kafka's protocol against a real daemon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    LOGGER_RESOURCE,
    OP_APPEND,
    OP_DELETE,
    OP_SET,
    OP_SUBTRACT,
    TOPIC_RESOURCE,
)
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.wire import WireClient

DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = 1, 2, 3, 4, 5
LIST = 7


class Scope(NamedTuple):
    """A config resource."""

    kind: int
    name: str


ALL_BROKERS, THIS_BROKER = Scope(BROKER_RESOURCE, ""), Scope(BROKER_RESOURCE, "1")


LOGGERS = Scope(LOGGER_RESOURCE, "1")


def topic(name: str) -> Scope:
    return Scope(TOPIC_RESOURCE, name)


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


def describe(kafka: KafkaWire, scope: Scope, *names: str) -> dict[str, Any]:
    """Return the broker's answer for these configs, or for all."""
    kinds = schema("describe_configs", 4, "request")
    resource = kinds.DescribeConfigsResource(
        resource_type=scope.kind, resource_name=scope.name, configuration_keys=names or None
    )
    answer = kafka.call("describe_configs", 4, resources=(resource,), include_synonyms=True, include_documentation=True)
    (result,) = answer.results
    assert result.error_code == ErrorCode.NONE, result.error_message
    return {config.name: config for config in result.configs}


def alter(
    kafka: KafkaWire, scope: Scope, operation: int, name: str, value: str | None = None, *, validate_only: bool = False
) -> tuple[int, str | None]:
    """Apply one operation to one config."""
    kinds = schema("incremental_alter_configs", 1, "request")
    config = kinds.AlterableConfig(name=name, config_operation=operation, value=value)
    resource = kinds.AlterConfigsResource(resource_type=scope.kind, resource_name=scope.name, configs=(config,))
    answer = kafka.call("incremental_alter_configs", 1, resources=(resource,), validate_only=validate_only)
    (result,) = answer.responses
    return result.error_code, result.error_message


def replace(kafka: KafkaWire, scope: Scope, **configs: str) -> int:
    """Replace all configs; names with underscores for dots."""
    kinds = schema("alter_configs", 2, "request")
    rows = tuple(kinds.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in configs.items())
    resource = kinds.AlterConfigsResource(resource_type=scope.kind, resource_name=scope.name, configs=rows)
    (result,) = kafka.call("alter_configs", 2, resources=(resource,), validate_only=False).responses
    code: int = result.error_code
    return code


def test_a_topics_configs_have_types_sources_synonyms_and_words(kafka: KafkaWire, wire: WireClient) -> None:
    wire.create_topic("told", retention_ms="5000")
    configs = describe(kafka, topic("told"))
    retention = configs["retention.ms"]
    assert (retention.value, retention.config_source, retention.config_type) == ("5000", DYNAMIC_TOPIC, 5)
    assert (retention.read_only, retention.is_sensitive) == (False, False)
    assert "How long records are kept" in retention.documentation
    # The daemon of the tests is started with log.retention.ms=-1.
    assert [(each.name, each.value, each.source) for each in retention.synonyms] == [
        ("retention.ms", "5000", DYNAMIC_TOPIC),
        ("log.retention.ms", "-1", STATIC),
        ("log.retention.hours", "168", DEFAULT),
    ]
    flush = configs["flush.messages"]
    assert (flush.config_source, flush.config_type) == (DEFAULT, 5)
    assert [each.name for each in flush.synonyms] == ["log.flush.interval.messages"]
    assert "internal.segment.bytes" not in configs
    assert list(describe(kafka, topic("told"), "flush.ms", "nonsense")) == ["flush.ms"]


def test_a_brokers_configs_are_read_only_where_they_are_read_at_start(kafka: KafkaWire) -> None:
    configs = describe(kafka, THIS_BROKER)
    assert configs["log.dirs"].read_only
    assert configs["log.dirs"].config_source == STATIC
    assert not configs["log.retention.ms"].read_only
    assert [(each.name, each.source) for each in configs["log.retention.ms"].synonyms] == [
        ("log.retention.ms", STATIC),
        ("log.retention.hours", DEFAULT),
    ]
    assert [each.name for each in configs["log.retention.hours"].synonyms] == ["log.retention.hours"]


def test_the_layers_of_brokers_show_in_the_synonyms_and_are_taken_back(kafka: KafkaWire) -> None:
    name = "log.cleaner.threads"
    assert describe(kafka, ALL_BROKERS) == {}
    assert alter(kafka, ALL_BROKERS, OP_SET, name, "2") == (ErrorCode.NONE, None)
    assert alter(kafka, THIS_BROKER, OP_SET, name, "3") == (ErrorCode.NONE, None)
    (config,) = describe(kafka, THIS_BROKER, name).values()
    assert [(each.value, each.source) for each in config.synonyms] == [
        ("3", DYNAMIC_BROKER),
        ("2", DYNAMIC_DEFAULT),
        ("1", DEFAULT),
    ]
    (config,) = describe(kafka, ALL_BROKERS).values()
    assert (config.name, config.value, config.config_source) == (name, "2", DYNAMIC_DEFAULT)
    assert [(each.value, each.source) for each in config.synonyms] == [("2", DYNAMIC_DEFAULT)]
    for scope in (ALL_BROKERS, THIS_BROKER):
        assert alter(kafka, scope, OP_DELETE, name) == (ErrorCode.NONE, None)
    assert describe(kafka, THIS_BROKER, name)[name].config_source == DEFAULT
    assert describe(kafka, ALL_BROKERS) == {}


def test_the_default_of_all_brokers_shows_when_one_broker_has_its_own(kafka: KafkaWire) -> None:
    name = "log.cleaner.backoff.ms"
    assert alter(kafka, THIS_BROKER, OP_SET, name, "30") == (ErrorCode.NONE, None)
    assert alter(kafka, ALL_BROKERS, OP_SET, name, "20") == (ErrorCode.NONE, None)
    assert describe(kafka, ALL_BROKERS, name)[name].value == "20"
    assert describe(kafka, THIS_BROKER, name)[name].value == "30"
    for scope in (ALL_BROKERS, THIS_BROKER):
        assert alter(kafka, scope, OP_DELETE, name) == (ErrorCode.NONE, None)


def test_lists_grow_and_shrink_by_entries(kafka: KafkaWire, wire: WireClient) -> None:
    wire.create_topic("listed")
    name = "cleanup.policy"
    assert alter(kafka, topic("listed"), OP_APPEND, name, "compact") == (ErrorCode.NONE, None)
    assert describe(kafka, topic("listed"), name)[name].value == "delete,compact"
    assert alter(kafka, topic("listed"), OP_SUBTRACT, name, "delete") == (ErrorCode.NONE, None)
    assert describe(kafka, topic("listed"), name)[name].value == "compact"
    code, message = alter(kafka, topic("listed"), OP_APPEND, "retention.ms", "5")
    assert (code, message) == (
        ErrorCode.INVALID_CONFIG,
        "Can't APPEND to key retention.ms because its type is not LIST.",
    )


def test_the_old_api_takes_away_what_it_does_not_set(kafka: KafkaWire, wire: WireClient) -> None:
    wire.create_topic("replaced", retention_ms="5000", flush_messages="7")
    assert replace(kafka, topic("replaced"), flush_messages="8") == ErrorCode.NONE
    configs = describe(kafka, topic("replaced"), "retention.ms", "flush.messages")
    assert (configs["retention.ms"].config_source, configs["flush.messages"].value) == (STATIC, "8")
    assert replace(kafka, topic("replaced"), flush_messages="many") == ErrorCode.INVALID_CONFIG
    assert describe(kafka, topic("replaced"), "flush.messages")["flush.messages"].value == "8"


def test_validating_alters_nothing(kafka: KafkaWire, wire: WireClient) -> None:
    wire.create_topic("checked")
    assert alter(kafka, topic("checked"), OP_SET, "flush.ms", "5", validate_only=True) == (ErrorCode.NONE, None)
    assert describe(kafka, topic("checked"), "flush.ms")["flush.ms"].config_source == DEFAULT


@pytest.mark.parametrize(
    ("scope", "name", "value", "code", "words"),
    [
        (topic("refused"), "retention.ms", "soon", ErrorCode.INVALID_CONFIG, ("retention.ms=soon", "not a long")),
        (topic("refused"), "compression.type", "zip", ErrorCode.INVALID_CONFIG, ("one of", "zstd", "producer")),
        (topic("refused"), "retntion.ms", "5", ErrorCode.INVALID_CONFIG, ("did you mean retention.ms?",)),
        (topic("refused"), "retention.ms", None, ErrorCode.INVALID_REQUEST, ("Null value not supported",)),
        (topic("no-such"), "retention.ms", "5", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ("no-such",)),
        (THIS_BROKER, "log.dirs", "/x", ErrorCode.INVALID_REQUEST, ("log.dirs", "read-only")),
        (THIS_BROKER, "log.retention.ms", "x", ErrorCode.INVALID_REQUEST, ("log.retention.ms=x", "not a long")),
        (Scope(BROKER_RESOURCE, "7"), "log.retention.ms", "5", ErrorCode.INVALID_REQUEST, ("expected 1",)),
        (LOGGERS, "root", "LOUD", ErrorCode.INVALID_CONFIG, ("not a supported log level", "DEBUG, ERROR, FATAL, INFO")),
        (LOGGERS, "no.such", "INFO", ErrorCode.INVALID_CONFIG, ("Logger no.such does not exist!",)),
        (Scope(8, "7"), "root", "INFO", ErrorCode.INVALID_REQUEST, ("Unexpected node id. Expected 1, but received 7",)),
        (Scope(8, ""), "root", "INFO", ErrorCode.INVALID_REQUEST, ("Node id must be an integer",)),
        (Scope(99, "1"), "x", "y", ErrorCode.INVALID_REQUEST, ("Unknown resource type 99",)),
    ],
)
def test_what_cannot_be_set_is_refused_in_words(
    kafka: KafkaWire,
    wire: WireClient,
    scope: Scope,
    name: str,
    value: str | None,
    code: ErrorCode,
    words: tuple[str, ...],
) -> None:
    if partly_new := scope == topic("refused"):
        create_once(wire, "refused")
    found, message = alter(kafka, scope, OP_SET, name, value)
    assert found == code
    assert all(word in (message or "") for word in words), message
    if partly_new:
        assert {config.config_source for config in describe(kafka, scope).values()} <= {STATIC, DEFAULT}


def create_once(wire: WireClient, name: str) -> None:
    from barnabas.protocol.messages.topics.topics import CreateTopicsRequest, NewTopic

    wire.call(CreateTopicsRequest(topics=[NewTopic(name=name)]))


def test_an_unserved_property_of_kafka_is_kept_and_shown(kafka: KafkaWire, wire: WireClient) -> None:
    wire.create_topic("moved-over", leader_replication_throttled_replicas="*")
    configs = describe(kafka, topic("moved-over"))
    config = configs["leader.replication.throttled.replicas"]
    assert (config.value, config.config_source, config.config_type) == ("*", DYNAMIC_TOPIC, LIST)
    assert config.documentation.startswith("Has no effect in Barnabas. In Apache Kafka: A list of replicas")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("leader.replication.throttled.replicas", "x"),
        ("local.retention.ms", "-3"),
        ("message.downconversion.enable", "true"),
        ("message.format.version", "3.0"),
    ],
)
def test_what_kafka_refuses_of_a_topic_is_refused_although_it_has_no_effect(
    kafka: KafkaWire, wire: WireClient, name: str, value: str
) -> None:
    wire.create_topic(f"refuses-{name}")
    assert alter(kafka, topic(f"refuses-{name}"), OP_SET, name, value)[0] == ErrorCode.INVALID_CONFIG


def test_the_default_of_all_brokers_is_described_as_it_was_set_and_a_brokers_as_it_is(kafka: KafkaWire) -> None:
    name, text = "log.cleaner.min.cleanable.ratio", " 0x1p-1"
    assert alter(kafka, ALL_BROKERS, OP_SET, name, text)[0] == ErrorCode.NONE
    try:
        assert describe(kafka, ALL_BROKERS)[name].value == text
        assert describe(kafka, THIS_BROKER)[name].value == "0.5"
    finally:
        alter(kafka, ALL_BROKERS, OP_DELETE, name)


def test_an_unserved_property_of_a_topic_has_its_default_from_the_broker(kafka: KafkaWire, wire: WireClient) -> None:
    wire.create_topic("tiered")
    assert alter(kafka, ALL_BROKERS, OP_SET, "log.local.retention.ms", "700")[0] == ErrorCode.NONE
    try:
        config = describe(kafka, topic("tiered"))["local.retention.ms"]
        assert (config.value, config.config_source) == ("700", DYNAMIC_DEFAULT)
        assert [(each.name, each.value, each.source) for each in config.synonyms] == [
            ("log.local.retention.ms", "700", DYNAMIC_DEFAULT),
            ("log.local.retention.ms", "-2", DEFAULT),
        ]
        assert describe(kafka, ALL_BROKERS)["log.local.retention.ms"].value == "700"
    finally:
        alter(kafka, ALL_BROKERS, OP_DELETE, "log.local.retention.ms")


def test_an_unserved_property_of_a_topic_with_a_value_of_another_type_is_refused(
    kafka: KafkaWire, wire: WireClient
) -> None:
    wire.create_topic("mistyped")
    code, message = alter(kafka, topic("mistyped"), OP_SET, "unclean.leader.election.enable", "perhaps")
    assert code == ErrorCode.INVALID_CONFIG
    assert message is not None
    assert "unclean.leader.election.enable=perhaps in the topic's config: not a boolean" in message


def test_unserved_secrets_and_properties_of_unknown_type_are_described_without_their_values(tmp_path: Path) -> None:
    settings = {
        "sasl.oauthbearer.client.credentials.client.secret": "hidden",
        "rsm.config.password": "hidden",
        "num.io.threads": "3",
        "listener.name.plaintext.ssl.provider": "theirs",
    }
    with (
        start_daemon(tmp_path, *[f"{name}={value}" for name, value in settings.items()]) as daemon,
        KafkaWire(daemon.host, daemon.port) as kafka,
    ):
        configs = describe(kafka, THIS_BROKER)
    found = {name: (configs[name].value, configs[name].is_sensitive, configs[name].config_source) for name in settings}
    assert found == {
        "sasl.oauthbearer.client.credentials.client.secret": (None, True, STATIC),
        "rsm.config.password": (None, True, STATIC),
        "num.io.threads": ("3", False, STATIC),
        "listener.name.plaintext.ssl.provider": ("theirs", False, STATIC),
    }
    assert [(each.value, each.source) for each in configs["num.io.threads"].synonyms] == [("3", STATIC), ("8", DEFAULT)]
    assert not configs["num.io.threads"].read_only
    assert configs["broker.rack"].read_only
    assert "hidden" not in repr(configs)


@pytest.mark.parametrize("clean", [True, False])
def test_altered_configs_outlive_the_broker(tmp_path: Path, clean: bool) -> None:
    with start_daemon(tmp_path) as daemon:
        with WireClient(daemon.host, daemon.port) as wire:
            wire.create_topic("kept")
        with KafkaWire(daemon.host, daemon.port) as kafka:
            assert alter(kafka, topic("kept"), OP_SET, "retention.ms", "5000")[0] == ErrorCode.NONE
            assert alter(kafka, ALL_BROKERS, OP_SET, "log.retention.bytes", "9000")[0] == ErrorCode.NONE
            assert alter(kafka, THIS_BROKER, OP_SET, "log.cleaner.threads", "2")[0] == ErrorCode.NONE
        daemon.restart(clean=clean)
        with KafkaWire(daemon.host, daemon.port) as kafka:
            configs = describe(kafka, topic("kept"))
            assert configs["retention.ms"].value == "5000"
            assert (configs["retention.bytes"].value, configs["retention.bytes"].config_source) == ("9000", 3)
            assert describe(kafka, THIS_BROKER)["log.cleaner.threads"].value == "2"


def test_topics_of_one_request_that_have_set_the_same_are_told_the_same_and_others_their_own(
    kafka: KafkaWire, wire: WireClient
) -> None:
    for name in ("plain.1", "plain.2"):
        wire.create_topic(name)
    for name, retention in (("set.1", "5"), ("set.2", "5"), ("set.3", "6")):
        wire.create_topic(name, retention_ms=retention)
    kinds = schema("describe_configs", 4, "request")
    asked = [("plain.1", None), ("set.1", None), ("set.2", ("retention.ms",)), ("set.3", None), ("plain.2", None)]
    resources = tuple(
        kinds.DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=keys)
        for name, keys in asked
    )
    answer = kafka.call("describe_configs", 4, resources=resources, include_synonyms=True, include_documentation=True)
    values = [{each.name: each.value for each in result.configs}["retention.ms"] for result in answer.results]
    assert values == [values[0], "5", "5", "6", values[0]]
    assert values[0] not in ("5", "6")
    counts = [len(result.configs) for result in answer.results]
    assert counts == [counts[0], counts[0], 1, counts[0], counts[0]]


def test_configs_of_a_topic_that_cannot_be_and_of_one_that_is_not_have_kafkas_codes(kafka: KafkaWire) -> None:
    kinds = schema("describe_configs", 4, "request")
    for name, code in (("a b", ErrorCode.INVALID_TOPIC_EXCEPTION), ("absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)):
        resource = kinds.DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None
        )
        (described,) = kafka.call("describe_configs", 4, resources=(resource,)).results
        assert described.error_code == code
        assert alter(kafka, topic(name), OP_SET, "retention.ms", "5")[0] == code


def test_the_level_of_a_logger_is_set_described_and_unset(kafka: KafkaWire, daemon: Daemon) -> None:
    name = "barnabas.broker.loggers"
    before = describe(kafka, LOGGERS)
    assert (before["root"].value, before["root"].config_source, before["root"].read_only) == ("INFO", 6, False)
    assert alter(kafka, LOGGERS, OP_SET, name, "FATAL", validate_only=True) == (ErrorCode.NONE, None)
    assert describe(kafka, LOGGERS)[name].value == before[name].value

    assert alter(kafka, LOGGERS, OP_SET, name, "TRACE") == (ErrorCode.NONE, None)
    assert describe(kafka, LOGGERS, name).keys() == {name}
    assert describe(kafka, LOGGERS)[name].value == "TRACE"
    assert f"updated the log level of {name} to TRACE" in daemon.log

    assert alter(kafka, LOGGERS, OP_DELETE, name) == (ErrorCode.NONE, None)
    assert describe(kafka, LOGGERS)[name].value == before[name].value


def test_operations_that_loggers_do_not_have_are_refused_with_kafkas_codes(kafka: KafkaWire) -> None:
    assert alter(kafka, LOGGERS, OP_DELETE, "root")[0] == ErrorCode.INVALID_REQUEST
    code, message = alter(kafka, LOGGERS, OP_APPEND, "root", "INFO")
    assert (code, message) == (
        ErrorCode.INVALID_REQUEST,
        "APPEND operation is not allowed for the BROKER_LOGGER resource",
    )
    assert replace(kafka, LOGGERS, root="INFO") == ErrorCode.INVALID_REQUEST


def test_a_subscription_of_client_metrics_is_set_described_listed_and_removed(kafka: KafkaWire) -> None:
    subscription = Scope(CLIENT_METRICS_RESOURCE, "producers")
    both = "org.apache.kafka.producer, org.apache.kafka.consumer,org.apache.kafka.producer"
    assert alter(kafka, subscription, OP_SET, "metrics", both)[0] == ErrorCode.NONE
    assert alter(kafka, subscription, OP_APPEND, "metrics", "a")[0] == ErrorCode.INVALID_CONFIG  # as in Kafka

    configs = describe(kafka, subscription)
    assert (configs["metrics"].value, configs["metrics"].config_source) == (
        "org.apache.kafka.producer,org.apache.kafka.consumer",
        7,
    )
    assert [(each.name, each.source) for each in configs["metrics"].synonyms] == [("metrics", 7)]
    assert (configs["interval.ms"].value, configs["interval.ms"].config_source) == ("300000", DEFAULT)
    listed = kafka.call("list_config_resources", 1, resource_types=(16,))
    assert [each.resource_name for each in listed.config_resources] == ["producers"]

    assert alter(kafka, subscription, OP_DELETE, "metrics")[0] == ErrorCode.NONE
    assert kafka.call("list_config_resources", 1, resource_types=(16,)).config_resources == ()


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("push.interval", "5", ErrorCode.INVALID_REQUEST),
        ("interval.ms", "99", ErrorCode.INVALID_REQUEST),
        ("interval.ms", "often", ErrorCode.INVALID_CONFIG),
        ("match", "client_id", ErrorCode.INVALID_CONFIG),
        ("match", "user=.*", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=(", ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_wrong_subscription_of_client_metrics_is_refused_with_kafkas_code(
    kafka: KafkaWire, name: str, value: str, code: ErrorCode
) -> None:
    assert alter(kafka, Scope(CLIENT_METRICS_RESOURCE, "wrong"), OP_SET, name, value)[0] == code

"""DescribeConfigs names what Kafka 4.3 names, with its types, defaults, synonyms and texts.

Both brokers run with different settings, so a property's default is compared, not its value. Every difference is listed
here with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

import pytest

from barnabas.config.document import DIFFERENCES
from barnabas.config.tables.kafka_properties import NO_EFFECT, unserved_broker_properties, unserved_topic_properties
from barnabas.protocol.messages.cluster.configs import OP_APPEND, OP_DELETE, OP_SET, OP_SUBTRACT
from tests.config.test_kafka_tables import OURS_ALONE
from tests.support.daemon import start_daemon
from tests.support.eventually import eventually
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.kafka_wire import KafkaWire, schema

BROKER, TOPIC, CLIENT_METRICS, GROUP = 4, 2, 16, 32
DEFAULT: Final = 5

NOT_DEFINED_BY_KAFKA = "read by Kafka without a definition, as its authorizer's"
INTERNAL_IN_KAFKA = "defined as internal by Kafka, which describes no such property"
NOT_IN_KAFKA = "a property of Barnabas"
MORE = {
    **dict.fromkeys(OURS_ALONE, NOT_IN_KAFKA),
    "allow.everyone.if.no.acl.found": NOT_DEFINED_BY_KAFKA,
    "group.share.initialize.retry.interval.ms": INTERNAL_IN_KAFKA,
    "log.initial.task.delay.ms": INTERNAL_IN_KAFKA,
    "producer.id.expiration.check.interval.ms": INTERNAL_IN_KAFKA,
    "replica.alter.log.dirs.io.max.bytes.per.second": NOT_DEFINED_BY_KAFKA,
    "share.coordinator.cold.partition.snapshot.interval.ms": INTERNAL_IN_KAFKA,
    "share.coordinator.state.topic.prune.interval.ms": INTERNAL_IN_KAFKA,
    "super.users": NOT_DEFINED_BY_KAFKA,
    "unstable.api.versions.enable": INTERNAL_IN_KAFKA,
}
MORE_OF_A_TOPIC = {"flush.acks.all": NOT_IN_KAFKA}
SET = {
    "log.cleaner.min.cleanable.ratio": "1",
    "log.cleanup.policy": "compact, delete",
    "log.cleaner.enable": "TRUE",
    "log.segment.bytes": "+2097152",
    "log.cleaner.io.max.bytes.per.second": "1e12",
    "group.consumer.heartbeat.interval.ms": "+6000",
    "group.share.delivery.count.limit": " 07",
    "num.network.threads": "+3",
}
"""Properties of both brokers, written in another way than Kafka writes values."""
SET_BY_TOPIC = {
    "min.cleanable.dirty.ratio": "0.0005",
    "cleanup.policy": "delete, compact",
    "preallocate": "False",
    "segment.bytes": " 3145728 ",
    "remote.storage.enable": " FALSE ",
    "local.retention.ms": "+007",
}
SET_BY_GROUP = {
    "consumer.session.timeout.ms": "+50000",
    "streams.num.standby.replicas": "01",
    "share.record.lock.duration.ms": "020000",
    "share.isolation.level": " read_committed ",
    "share.auto.offset.reset": " by_duration:pt1h ",
    "share.renew.acknowledge.enable": " FALSE ",
    "streams.session.timeout.ms": "0050000",
}
SET_BY_SUBSCRIPTION = {
    "metrics": " a , b",
    "interval.ms": "+01000",
    "match": " client_id=a , client_software_name = b ",
}
SET_AT_FORMAT = {"min.insync.replicas": "Kafka 4 sets it for all brokers when it formats a directory"}


class Pair:
    """Descriptions of the same resources by Kafka and by Barnabas."""

    def __init__(self, theirs: KafkaWire, ours: KafkaWire) -> None:
        self.theirs = theirs
        self.ours = ours

    def described(self, kind: int, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return Kafka's and our configs of a resource, by name."""
        return _described(self.theirs, kind, name), _described(self.ours, kind, name)


def _described(kafka: KafkaWire, kind: int, name: str) -> dict[str, Any]:
    kinds = schema("describe_configs", 4, "request")
    resource = kinds.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    answer = kafka.call("describe_configs", 4, resources=(resource,), include_synonyms=True, include_documentation=True)
    (result,) = answer.results
    assert result.error_code == 0, result.error_message
    return {config.name: config for config in result.configs}


def _set(kafka: KafkaWire, kind: int, name: str, values: Mapping[str, str]) -> None:
    kinds = schema("incremental_alter_configs", 1, "request")
    configs = tuple(
        kinds.AlterableConfig(name=each, config_operation=OP_SET, value=text) for each, text in values.items()
    )
    resource = kinds.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    (result,) = kafka.call("incremental_alter_configs", 1, resources=(resource,), validate_only=False).responses
    assert result.error_code == 0, result.error_message


def _alter(kafka: KafkaWire, kind: int, name: str, config: str, operation: int, value: str | None) -> int:
    """Change one config; return the error."""
    kinds = schema("incremental_alter_configs", 1, "request")
    change = kinds.AlterableConfig(name=config, config_operation=operation, value=value)
    resource = kinds.AlterConfigsResource(resource_type=kind, resource_name=name, configs=(change,))
    (result,) = kafka.call("incremental_alter_configs", 1, resources=(resource,), validate_only=False).responses
    return int(result.error_code)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("configs")
    kafka = Kafka("4.3.0", directory / "kafka", directory / "scratch")
    kafka.settings |= SET
    kafka.format()
    kio = schema("create_topics", 7, "request")
    configs = tuple(kio.CreatableTopicConfig(name=name, value=value) for name, value in SET_BY_TOPIC.items())
    new = [
        kio.CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=own)
        for name, own in (("described", ()), ("with-configs", configs), ("appended", ()))
    ]
    with (
        kafka.running() as theirs,
        start_daemon(directory / "ours", *(f"{name}={value}" for name, value in SET.items())) as ours,
        KafkaWire("127.0.0.1", theirs.port) as their_wire,
        KafkaWire(ours.host, ours.port) as our_wire,
    ):
        for wire in (their_wire, our_wire):
            _set(wire, GROUP, "with-configs", SET_BY_GROUP)
            _set(wire, CLIENT_METRICS, "with-configs", SET_BY_SUBSCRIPTION)
            wire.call("create_topics", 7, topics=tuple(new), timeout=timedelta(seconds=30), validate_only=False)
        yield Pair(their_wire, our_wire)


def defaults(config: Any) -> list[tuple[str, str | None]]:
    """Return the synonyms that are defaults."""
    return [(each.name, each.value) for each in config.synonyms if each.source == DEFAULT]


def test_a_broker_describes_the_properties_of_kafkas_and_those_of_its_own(pair: Pair) -> None:
    theirs, ours = pair.described(BROKER, "1")

    assert len(theirs) == 340
    assert set(theirs) - set(ours) == set()
    assert set(ours) - set(theirs) == set(MORE)


def test_a_broker_describes_types_defaults_and_what_may_change_as_kafkas_except_for_documented_differences(
    pair: Pair,
) -> None:
    theirs, ours = pair.described(BROKER, "1")
    different = {
        name
        for name, config in theirs.items()
        if (config.config_type, config.is_sensitive, config.read_only, defaults(config))
        != (ours[name].config_type, ours[name].is_sensitive, ours[name].read_only, defaults(ours[name]))
    }

    assert different - set(DIFFERENCES) == set()


def test_a_topic_describes_what_kafkas_does_with_the_same_values_and_synonyms(pair: Pair) -> None:
    theirs, ours = pair.described(TOPIC, "described")

    assert len(theirs) == 33
    assert set(theirs) - set(ours) == set()
    assert set(ours) - set(theirs) == set(MORE_OF_A_TOPIC)
    for name in set(theirs) - set(SET_AT_FORMAT):
        expected, config = theirs[name], ours[name]
        assert (config.value, config.config_type, config.config_source, config.read_only, config.is_sensitive) == (
            (expected.value, expected.config_type, expected.config_source, False, False)
        ), name
        assert defaults(config) == defaults(expected), name


@pytest.mark.parametrize(("kind", "count"), [(GROUP, 17), (CLIENT_METRICS, 3)])
def test_what_is_unset_of_a_group_and_of_a_subscription_is_described_as_kafkas_with_the_same_synonyms(
    pair: Pair, kind: int, count: int
) -> None:
    def seen(config: Any) -> tuple[Any, ...]:
        synonyms = [(each.name, each.value, each.source) for each in config.synonyms]
        return config.value, config.config_type, config.config_source, config.read_only, config.is_sensitive, synonyms

    theirs, ours = pair.described(kind, "without-configs")

    assert set(ours) == set(theirs)
    assert len(ours) == count
    for name in theirs:
        if f"group.{name}" not in DIFFERENCES:
            assert seen(ours[name]) == seen(theirs[name]), name


@pytest.mark.parametrize(
    ("kind", "name", "names"),
    [
        (BROKER, "1", SET),
        (TOPIC, "described", SET_BY_TOPIC),
        (TOPIC, "with-configs", SET_BY_TOPIC),
        (GROUP, "with-configs", SET_BY_GROUP),
        (CLIENT_METRICS, "with-configs", SET_BY_SUBSCRIPTION),
    ],
)
def test_a_value_is_described_as_kafka_writes_it_and_not_as_it_was_set(
    pair: Pair, kind: int, name: str, names: Mapping[str, str]
) -> None:
    def seen(described: Mapping[str, Any]) -> dict[str, Any]:
        return {
            each: (described[each].value, [(synonym.name, synonym.value) for synonym in described[each].synonyms])
            for each in names
        }

    theirs, ours = pair.described(kind, name)

    assert seen(ours) == seen(theirs)


@pytest.mark.parametrize(
    ("kind", "name", "config", "operations"),
    [
        (TOPIC, "appended", "cleanup.policy", [(OP_SET, text)])
        for text in (
            "compact,compact",
            "compact, delete,compact",
            "",
            ",",
            "compact,",
            "COMPACT",
            "\u00a0",
            "delete\x1f",
        )
    ]
    + [
        (TOPIC, "appended", "cleanup.policy", [(OP_SET, "delete"), (OP_APPEND, text)])
        for text in ("compact, delete", " delete", "delete,compact,delete", "compact,", ",", "", "archive", ",compact")
    ]
    + [
        (TOPIC, "appended", "cleanup.policy", [(OP_SET, text), (OP_SUBTRACT, "compact")])
        for text in ("compact,compact", "compact, delete", "delete, compact", "compact")
    ]
    + [
        (TOPIC, "appended", config, [(OP_SET, text)])
        for config, texts in {
            "leader.replication.throttled.replicas": ("x", "0:1,", "*", "*, ", "0:1, 1:1", "0:1,*"),
            "local.retention.ms": ("-2", "-3", "soon"),
            "message.format.version": ("3.0",),
            "message.downconversion.enable": ("true",),
            "min.cleanable.dirty.ratio": ("NaN", "0.5f", "0x1p-1", "1.5", "inf", "4.9E-324"),
            "segment.index.bytes": ("4", "3", "\u0663\u0663"),
            "internal.segment.bytes": ("100", "-1"),
            "retention.ms": ("\u0663", "+5", "\x1f5", "-2"),
            "preallocate": ("fal\u017fe", "yes"),
        }.items()
        for text in texts
    ]
    + [
        (TOPIC, "appended", "leader.replication.throttled.replicas", [(OP_APPEND, "0:1"), (OP_APPEND, "1:1,0:1")]),
        (CLIENT_METRICS, "appended", "metrics", [(OP_SET, "a,a"), (OP_APPEND, "b, a"), (OP_SUBTRACT, "a")]),
        (CLIENT_METRICS, "appended", "match", [(OP_SET, "client_id=a,client_id=a")]),
        (GROUP, "appended", "share.isolation.level", [(OP_APPEND, "read_committed")]),
        (BROKER, "", "log.cleanup.policy", [(OP_SET, "compact,compact"), (OP_APPEND, "delete, compact")]),
        (BROKER, "", "num.io.threads", [(OP_SET, "0"), (OP_SET, "+8")]),
        (BROKER, "", "num.partitions", [(OP_SET, "2")]),
        (BROKER, "", "metadata.log.segment.bytes", [(OP_SET, "8388608")]),
        (BROKER, "", "sasl.kerberos.service.name", [(OP_SET, "kafka")]),
        (BROKER, "1", "log.cleanup.policy", [(OP_SET, "compact,compact")]),
    ],
)
def test_a_change_of_a_config_has_kafkas_answer_and_is_described_as_kafkas(
    pair: Pair, kind: int, name: str, config: str, operations: list[tuple[int, str]]
) -> None:
    def described(kafka: KafkaWire) -> tuple[Any, ...]:
        found = _described(kafka, kind, name).get(config)
        return () if found is None else (found.value, found.config_source)

    answers = [[_alter(kafka, kind, name, config, *each) for each in operations] for kafka in (pair.ours, pair.theirs)]
    assert answers[0] == answers[1]
    if 0 in answers[0]:
        expected = described(pair.ours)
        # Kafka's broker applies a change after its controller has answered.
        eventually(lambda: described(pair.theirs) == expected or None, what=str(expected), timeout_s=20)
    for kafka in (pair.ours, pair.theirs):
        _alter(kafka, kind, name, config, OP_DELETE, None)


def test_the_answer_to_create_topics_has_a_topics_own_configs_as_they_were_sent(pair: Pair) -> None:
    kio = schema("create_topics", 7, "request")
    sent = SET_BY_TOPIC | {"cleanup.policy": "compact, compact"}
    configs = tuple(kio.CreatableTopicConfig(name=name, value=value) for name, value in sent.items())
    topic = kio.CreatableTopic(name="answered", num_partitions=1, replication_factor=1, assignments=(), configs=configs)

    def answered(kafka: KafkaWire) -> dict[str, str]:
        answer = kafka.call("create_topics", 7, topics=(topic,), timeout=timedelta(seconds=30), validate_only=True)
        return {each.name: each.value for each in answer.topics[0].configs if each.name in sent}

    assert answered(pair.ours) == answered(pair.theirs)


@pytest.mark.parametrize(("kind", "name"), [(BROKER, "1"), (TOPIC, "described")])
def test_what_has_no_effect_says_so_before_kafkas_documentation_and_all_else_has_some(
    pair: Pair, kind: int, name: str
) -> None:
    theirs, ours = pair.described(kind, name)
    unserved = unserved_broker_properties() if kind == BROKER else unserved_topic_properties()

    assert len(unserved) >= 8
    for each in unserved:
        assert ours[each].documentation == NO_EFFECT + theirs[each].documentation
    assert [each for each in set(ours) - set(unserved) if not ours[each].documentation] == []

"""Topics: defaults from the broker, overrides, what may be set, and how it is described."""

from __future__ import annotations

import dataclasses

import pytest

from barnabas.config import (
    TOPIC_PROPERTIES,
    ConfigError,
    LogConfig,
    complaints,
    describe_topic,
    load,
    log_config,
    validate_topic_configs,
)
from barnabas.config.log_config import DECIDES_DELETION, KEPT

LONG_MAX = 2**63 - 1


def refusal(overrides: dict[str, str], *broker: str) -> str:
    with pytest.raises(ConfigError) as caught:
        validate_topic_configs(overrides, load(overrides=broker))
    return str(caught.value)


def described(overrides: dict[str, str], *broker: str) -> dict[str, tuple[str | None, str, str]]:
    entries = describe_topic(load(overrides=broker), overrides)
    return {known.name: (value.text, value.source.name, value.origin) for known, value in entries}


# LogConfig


def test_the_defaults_are_kafkas() -> None:
    assert load().log_config == LogConfig(
        segment_bytes=1073741824,
        segment_ms=604800000,
        segment_jitter_ms=0,
        index_interval_bytes=4096,
        segment_index_bytes=10485760,
        preallocate=False,
        compact=False,
        delete=True,
        retention_ms=604800000,
        retention_bytes=-1,
        file_delete_delay_ms=60000,
        flush_messages=LONG_MAX,
        flush_ms=LONG_MAX,
        flush_acks_all=False,
        max_message_bytes=1048588,
        compression_type="producer",
        compression_gzip_level=-1,
        compression_lz4_level=9,
        compression_zstd_level=3,
        timestamp_type="CreateTime",
        timestamp_before_max_ms=LONG_MAX,
        timestamp_after_max_ms=3600000,
        min_cleanable_dirty_ratio=0.5,
        min_compaction_lag_ms=0,
        max_compaction_lag_ms=LONG_MAX,
        delete_retention_ms=86400000,
        min_insync_replicas=1,
    )


# A legal value that is not the default, for each topic property and each broker property that gives its default.
OTHER_VALUES = {
    "segment.bytes": ("2048", 2048),
    "segment.ms": ("7", 7),
    "segment.jitter.ms": ("7", 7),
    "index.interval.bytes": ("7", 7),
    "segment.index.bytes": ("240", 240),
    "preallocate": ("true", True),
    "retention.ms": ("7", 7),
    "retention.bytes": ("7", 7),
    "file.delete.delay.ms": ("7", 7),
    "flush.messages": ("7", 7),
    "flush.ms": ("7", 7),
    "flush.acks.all": ("true", True),
    "max.message.bytes": ("7", 7),
    "compression.type": ("zstd", "zstd"),
    "compression.gzip.level": ("7", 7),
    "compression.lz4.level": ("7", 7),
    "compression.zstd.level": ("7", 7),
    "message.timestamp.type": ("LogAppendTime", "LogAppendTime"),
    "message.timestamp.before.max.ms": ("7", 7),
    "message.timestamp.after.max.ms": ("7", 7),
    "min.cleanable.dirty.ratio": ("0.25", 0.25),
    "min.compaction.lag.ms": ("7", 7),
    "max.compaction.lag.ms": ("7", 7),
    "delete.retention.ms": ("7", 7),
    "min.insync.replicas": ("7", 7),
}


def changed(config: LogConfig) -> dict[str, object]:
    base = load().log_config
    names = [field.name for field in dataclasses.fields(LogConfig)]
    return {name: getattr(config, name) for name in names if getattr(config, name) != getattr(base, name)}


def test_every_property_of_a_topic_has_a_field() -> None:
    assert set(OTHER_VALUES) | {"cleanup.policy", "internal.segment.bytes"} == set(TOPIC_PROPERTIES)


@pytest.mark.parametrize("name", list(OTHER_VALUES))
def test_a_topics_value_sets_its_field_and_no_other(name: str) -> None:
    text, value = OTHER_VALUES[name]

    assert list(changed(load().log_config.with_overrides({name: text})).values()) == [value]


@pytest.mark.parametrize("name", list(OTHER_VALUES))
def test_the_brokers_value_is_the_topics_default(name: str) -> None:
    text, value = OTHER_VALUES[name]
    synonym = TOPIC_PROPERTIES[name].synonyms[0].name

    assert list(changed(load(overrides=[f"{synonym}={text}"]).log_config).values()) == [value]


@pytest.mark.parametrize(
    ("policy", "compact", "delete"),
    [("delete", False, True), ("compact", True, False), ("compact, delete", True, True), ("", False, False)],
)
def test_the_cleanup_policy_is_two_flags(policy: str, compact: bool, delete: bool) -> None:
    config = load().log_config.with_overrides({"cleanup.policy": policy})

    assert (config.compact, config.delete) == (compact, delete)


@pytest.mark.parametrize(
    "names", [("segment.bytes", "internal.segment.bytes"), ("internal.segment.bytes", "segment.bytes")]
)
def test_kafkas_internal_segment_size_wins_whatever_the_order(names: tuple[str, str]) -> None:
    sizes = {"segment.bytes": "1048576", "internal.segment.bytes": "16384"}

    assert load().log_config.with_overrides({name: sizes[name] for name in names}).segment_bytes == 16384


def test_a_topic_without_overrides_costs_nothing() -> None:
    config = load()

    assert config.log_config is config.log_config.with_overrides({})


def test_a_log_config_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        load().log_config.segment_bytes = 1  # type: ignore[misc]


def test_a_compacted_segment_rolls_no_later_than_it_must_be_compacted() -> None:
    overrides = {"segment.ms": "100", "max.compaction.lag.ms": "50"}

    assert load().log_config.with_overrides(overrides).max_segment_ms == 100
    assert load().log_config.with_overrides(overrides | {"cleanup.policy": "compact"}).max_segment_ms == 50


@pytest.mark.parametrize(
    ("name", "text", "change"),
    [
        ("segment.index.bytes", "4", {"segment_index_bytes": 24}),
        ("internal.segment.bytes", "-7", {"segment_bytes": 1024}),
        ("cleanup.policy", "compact,compact", {"compact": True, "delete": False}),
        ("cleanup.policy", " compact ,delete,compact", {"compact": True}),
        ("min.cleanable.dirty.ratio", "0x1p-2", {"min_cleanable_dirty_ratio": 0.25}),
        ("retention.ms", "\u0663", {"retention_ms": 3}),
    ],
)
def test_what_kafka_stores_has_kafkas_meaning(name: str, text: str, change: dict[str, object]) -> None:
    config = load()

    assert validate_topic_configs({name: text}, config) is not None
    assert complaints({name: text}) == []
    assert changed(config.log_config.with_overrides({name: text})) == change


def test_illegal_stored_configs_never_stop_a_topic() -> None:
    stored = {"segment.index.bytes": "3", "of.a.later.kafka": "1", "retention.ms": "soon", "segment.ms": "9"}

    assert changed(load().log_config.with_overrides(stored)) == {
        "segment_ms": 9,
        "delete": False,
        "unread": ("segment.index.bytes", "retention.ms"),
        "understood": (False, True),
    }
    assert complaints(stored | {"flush.ms": "soon"}) == [
        f"segment.index.bytes=3 in the topic's config: must be at least 4; {KEPT}",
        "of.a.later.kafka in the topic's config: topics have no such property; `barnabas config list` shows them all; "
        "it has no effect",
        f"retention.ms=soon in the topic's config: not a long; {KEPT}",
        "flush.ms=soon in the topic's config: not a long; the broker's value is used",
    ]
    assert complaints({"segment.ms": "9", "unclean.leader.election.enable": "true"}) == []


@pytest.mark.parametrize("policy", ["delete", "compact", "compact,delete"])
@pytest.mark.parametrize("name", sorted(DECIDES_DELETION - {"cleanup.policy"}))
def test_a_topic_with_a_stored_value_that_is_not_understood_is_neither_deleted_from_nor_compacted(
    name: str, policy: str
) -> None:
    base = load().log_config

    config = base.with_overrides({"cleanup.policy": policy, name: "of a later Kafka"})

    assert (config.compact, config.delete, config.unread) == (False, False, (name,))
    assert config.needs_keys == policy.startswith("compact")
    assert config.may_delete_records == ("delete" in policy)  # as without the value
    assert complaints({name: "of a later Kafka"})[0].endswith(KEPT)


def test_a_stored_policy_that_is_not_understood_deletes_nothing() -> None:
    config = load().log_config.with_overrides({"cleanup.policy": "compact,archive", "retention.ms": "1"})

    assert (config.compact, config.delete, config.retention_ms) == (False, False, 1)
    assert not config.may_delete_records


def test_other_stored_values_that_are_not_understood_leave_the_brokers_in_force() -> None:
    others = TOPIC_PROPERTIES.keys() - DECIDES_DELETION

    assert {"flush.ms", "max.message.bytes", "compression.type"} <= others
    base = load().log_config
    assert base.with_overrides(dict.fromkeys(others, "of a later Kafka")) == base


# What may be set


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            {"segment.byte": "1"},
            "segment.byte in the topic's config: topics have no such property; did you mean segment.bytes?",
        ),
        (
            {"log.segment.bytes": "2048"},
            "log.segment.bytes in the topic's config: a property of the broker; the topic's is segment.bytes",
        ),
        (
            {"num.partitions": "2"},
            "num.partitions in the topic's config: a property of the broker, which topics lack",
        ),
        ({"segment.bytes": "12x"}, "segment.bytes=12x in the topic's config: not an int"),
        ({"segment.bytes": "1023"}, "segment.bytes=1023 in the topic's config: must be at least 1024"),
        ({"segment.index.bytes": "3"}, "segment.index.bytes=3 in the topic's config: must be at least 4"),
        ({"retention.ms": "-2"}, "retention.ms=-2 in the topic's config: must be at least -1"),
        (
            {"cleanup.policy": "compact,archive"},
            "cleanup.policy=compact,archive in the topic's config: archive is none of compact, delete",
        ),
        (
            {"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"},
            "min.compaction.lag.ms=6 in the topic's config is above max.compaction.lag.ms=5 in the topic's config",
        ),
        (
            {"remote.storage.enable": "true"},
            "remote.storage.enable=true in the topic's config: Barnabas has no tiered storage",
        ),
    ],
)
def test_an_illegal_topic_config_is_refused(overrides: dict[str, str], sentence: str) -> None:
    assert refusal(overrides) == sentence


def test_a_topics_value_may_be_impossible_with_the_brokers() -> None:
    assert refusal({"min.compaction.lag.ms": "6"}, "log.cleaner.max.compaction.lag.ms=5") == (
        "min.compaction.lag.ms=6 in the topic's config is above log.cleaner.max.compaction.lag.ms=5 in --set"
    )


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"retention.ms": "0"},
        {"retention.ms": "-1"},
        {"cleanup.policy": ""},
        {"remote.storage.enable": "false", "unclean.leader.election.enable": "false"},
        {"segment.bytes": "2147483647"},
        {"max.message.bytes": "2000000"},
        {"segment.bytes": "1048588", "max.message.bytes": "1048588"},
        {"segment.bytes": "1048576"},
        {"segment.index.bytes": "3145752"},
        {"min.insync.replicas": "1"},
        {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"},
    ],
)
def test_legal_topic_configs_of_kafka_are_accepted(overrides: dict[str, str]) -> None:
    warnings = validate_topic_configs(overrides, load())

    assert all("Barnabas does not serve" in each for each in warnings)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"segment.bytes": "16384"}, "Apache Kafka 4.x does not start on a directory with a topic under 1048576"),
        (
            {"segment.index.bytes": "2400"},
            "the indexes are full after about 815104 bytes, before segment.bytes=1073741824",
        ),
        ({"index.interval.bytes": "0", "segment.index.bytes": "2400"}, "the indexes are full after about 12139 bytes"),
        ({"segment.bytes": "1048576", "max.message.bytes": "1048588"}, "a batch larger than a segment is refused"),
        ({"cleanup.policy": "compact,compact"}, "names compact more than once, which counts once"),
        ({"min.insync.replicas": "2"}, "acks=all is answered NOT_ENOUGH_REPLICAS (19)"),
        ({"unclean.leader.election.enable": "true"}, "does not serve, without effect: unclean.leader.election.enable"),
    ],
)
def test_a_legal_setting_with_a_consequence_is_warned_about(overrides: dict[str, str], words: str) -> None:
    warnings = validate_topic_configs(overrides, load())

    assert len(warnings) == 1
    assert words in warnings[0]


def test_a_smaller_segment_may_be_all_that_the_brokers_indexes_hold() -> None:
    config = load(overrides=["log.index.size.max.bytes=2400"])

    assert validate_topic_configs({"segment.bytes": "1048576"}, config) != []
    assert validate_topic_configs({"retention.ms": "5"}, config) == []


# Description


def test_every_source_has_kafkas_name_and_the_exact_origin() -> None:
    config = load(overrides=["log.retention.hours=1"]).with_dynamic(
        {"log.segment.bytes": "4096"}, {"message.max.bytes": "5000"}
    )

    entries = {known.name: value for known, value in describe_topic(config, {"segment.ms": " 7 "})}
    told = {name: (each.text, each.source.name, each.origin) for name, each in entries.items()}

    assert told["segment.ms"] == ("7", "DYNAMIC_TOPIC_CONFIG", "the topic's config")
    assert told["segment.bytes"] == ("4096", "DYNAMIC_DEFAULT_BROKER_CONFIG", "the dynamic config of all brokers")
    assert told["max.message.bytes"] == ("5000", "DYNAMIC_BROKER_CONFIG", "the dynamic config of this broker")
    assert told["retention.ms"] == ("3600000", "STATIC_BROKER_CONFIG", "log.retention.hours=1 in --set")
    assert told["flush.ms"] == (str(LONG_MAX), "DEFAULT_CONFIG", "default")
    assert told["internal.segment.bytes"] == (None, "DEFAULT_CONFIG", "default")


def test_the_description_equals_the_log_config() -> None:
    overrides = {"segment.bytes": "16384", "retention.ms": "never", "compression.type": "zstd"}
    config = load(overrides=["log.roll.hours=3"])

    values = {known.name: value.value for known, value in describe_topic(config, overrides)}
    running = config.log_config.with_overrides(overrides)

    for name, field in log_config._FIELDS.items():
        assert values[name] == getattr(running, field), name


def test_every_property_is_described_once_in_the_order_of_the_table() -> None:
    assert list(described({})) == list(TOPIC_PROPERTIES)


def test_sources_carry_kafkas_numbers() -> None:
    entries = describe_topic(load(), {})

    # org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource
    assert {value.source.value for _, value in entries} == {5}

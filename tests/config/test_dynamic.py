"""The dynamic layers: for all brokers, then for this one; what may be set there, and what the metadata log may hold."""

from __future__ import annotations

import pytest

from barnabas.broker.live_config import LiveConfig
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.startup_error import StartupError
from barnabas.config import TOPIC_PROPERTIES, ConfigError, ConfigSource, load
from barnabas.config.log_config import DECIDES_DELETION, KEPT
from barnabas.config.property import show
from barnabas.protocol.metadata.records import ConfigRecord
from tests.config.conftest import WriteFile

OF_TOPICS = f"of topics without a value of their own {KEPT}"


def refusal(default: dict[str, str], broker: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load().with_dynamic(default, broker or {})
    return str(caught.value)


def test_static_loses_to_the_dynamic_default_and_that_to_the_dynamic_broker() -> None:
    static = load(overrides=["log.segment.bytes=2048", "max.connections=1", "log.cleaner.backoff.ms=1"])

    config = static.with_dynamic({"log.segment.bytes": "4096", "max.connections": "2"}, {"max.connections": "3"})

    described = {
        name: (config.value(name).value, config.value(name).source.name, config.value(name).origin)
        for name in ("log.cleaner.backoff.ms", "log.segment.bytes", "max.connections")
    }
    assert described == {
        "log.cleaner.backoff.ms": (1, "STATIC_BROKER_CONFIG", "--set"),
        "log.segment.bytes": (4096, "DYNAMIC_DEFAULT_BROKER_CONFIG", "the dynamic config of all brokers"),
        "max.connections": (3, "DYNAMIC_BROKER_CONFIG", "the dynamic config of this broker"),
    }


def test_the_static_configuration_stays_as_it_was() -> None:
    static = load()

    static.with_dynamic({"log.segment.bytes": "4096"}, {})

    assert static.get_int("log.segment.bytes") == 1 << 30
    assert static.log_config.segment_bytes == 1 << 30


def test_new_dynamic_layers_replace_the_old_ones() -> None:
    once = load().with_dynamic({"log.segment.bytes": "4096", "max.connections": "5"}, {})

    again = once.with_dynamic({"max.connections": "6"}, {})

    assert again.get_int("log.segment.bytes") == 1 << 30
    assert again.get_int("max.connections") == 6


def test_topics_follow_a_dynamic_value() -> None:
    config = load().with_dynamic({"log.retention.ms": "5", "log.cleanup.policy": "compact"}, {})

    assert config.log_config.retention_ms == 5
    assert config.log_config.with_overrides({"retention.ms": "6"}).retention_ms == 6
    assert (config.log_config.compact, config.log_config.delete) == (True, False)


def test_a_dynamic_value_in_the_finest_unit_wins_over_a_static_coarser_one_without_a_warning(
    write_file: WriteFile,
) -> None:
    config = load(config_file=write_file("log.retention.hours=1")).with_dynamic({"log.retention.ms": "5"}, {})

    assert config.retention_ms == 5
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("default", "broker", "sentence"),
    [
        (
            {"num.partitions": "2"},
            {},
            "num.partitions in the dynamic config of all brokers: read-only, it is read when the broker starts",
        ),
        (
            {},
            {"listeners": ":1"},
            "listeners in the dynamic config of this broker: read-only, it is read when the broker starts",
        ),
        (
            {"log.retention.minutes": "1"},
            {},
            "log.retention.minutes in the dynamic config of all brokers: read-only, it is read when the broker starts",
        ),
        (
            {"log.segmnt.bytes": "1"},
            {},
            "log.segmnt.bytes in the dynamic config of all brokers: no such property; did you mean log.segment.bytes?",
        ),
        (
            {"log.segment.bytes": "12x"},
            {},
            "log.segment.bytes=12x in the dynamic config of all brokers: not an int",
        ),
        (
            {"num.io.threads": "0"},
            {},
            "num.io.threads in the dynamic config of all brokers: must be at least 1",
        ),
        (
            {"sasl.kerberos.service.name": "kafka"},
            {},
            "sasl.kerberos.service.name in the dynamic config of all brokers: it can be set for one broker only",
        ),
        (
            {},
            {"metadata.log.segment.bytes": "8388608"},
            "metadata.log.segment.bytes in the dynamic config of this broker: read-only, it is read when the broker "
            "starts",
        ),
        (
            {"log.retention.ms": "0"},
            {},
            "log.retention.ms=0 in the dynamic config of all brokers: the broker's retention cannot be 0 "
            "(negative is forever; a topic's may be 0)",
        ),
        (
            {"log.cleaner.min.compaction.lag.ms": "2"},
            {"log.cleaner.max.compaction.lag.ms": "1"},
            "log.cleaner.min.compaction.lag.ms=2 in the dynamic config of all brokers is above "
            "log.cleaner.max.compaction.lag.ms=1 in the dynamic config of this broker",
        ),
    ],
)
def test_a_property_that_cannot_change_at_run_time_is_refused_with_name_and_layer(
    default: dict[str, str], broker: dict[str, str], sentence: str
) -> None:
    assert refusal(default, broker) == sentence


@pytest.mark.parametrize(
    "name", ["replica.alter.log.dirs.io.max.bytes.per.second", "listener.name.client.ssl.keystore.location"]
)
def test_a_property_of_one_broker_is_refused_as_a_default_of_all(name: str) -> None:
    assert load().with_dynamic({}, {name: "5"}).is_set(name)
    assert refusal({name: "5"}) == f"{name} in the dynamic config of all brokers: it can be set for one broker only"


def test_kafkas_names_that_are_not_served_are_kept_with_a_warning() -> None:
    config = load().with_dynamic({"num.io.threads": "4"}, {})

    assert config.unserved["num.io.threads"].source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert config.warnings == (
        "properties of Apache Kafka that Barnabas does not serve, without effect: "
        "num.io.threads in the dynamic config of all brokers",
    )


def test_illegal_stored_values_are_skipped_with_a_warning_so_that_the_broker_starts() -> None:
    stored = {
        "listeners": "SSL://:9093",
        "of.a.later.kafka": "1",
        "log.segment.bytes": "14",
        "log.retention.ms": "5",
    }

    config = load().with_dynamic({}, stored, stored=True)

    assert config.retention_ms == 5
    assert config.get_int("log.segment.bytes") == 1 << 30
    assert [str(listener) for listener in config.listeners] == ["PLAINTEXT://127.0.0.1:9092"]
    assert config.warnings == (
        "listeners in the dynamic config of this broker: read-only, it is read when the broker starts; ignored",
        "of.a.later.kafka in the dynamic config of this broker: no such property; `barnabas config list` shows them "
        "all; ignored",
        f"log.segment.bytes=14 in the dynamic config of this broker: must be at least 1024; {OF_TOPICS}",
    )
    assert config.stored_problems == config.warnings


BROKERS_OWN = {
    TOPIC_PROPERTIES[name].synonyms[0].name: name
    for name in DECIDES_DELETION & TOPIC_PROPERTIES.keys() - {"internal.segment.bytes"}
}


@pytest.mark.parametrize("is_default", [True, False])
@pytest.mark.parametrize("name", sorted(BROKERS_OWN))
def test_a_stored_value_that_is_not_understood_keeps_the_topics_that_take_it(name: str, is_default: bool) -> None:
    topic_name = BROKERS_OWN[name]
    stored, legal = {name: "of a later Kafka"}, {topic_name: show(TOPIC_PROPERTIES[topic_name].default) or ""}

    config = load().with_dynamic(*((stored, {}) if is_default else ({}, stored)), stored=True)

    kept = config.log_config
    assert (kept.compact, kept.delete, kept.unread) == (False, False, (topic_name,))
    assert kept.with_overrides({"flush.ms": "5"}).unread == (topic_name,)
    assert kept.with_overrides(legal) == load().log_config.with_overrides(legal)
    (problem,) = config.stored_problems
    assert problem.startswith(f"{name}=of a later Kafka in the dynamic config of ")
    assert problem.endswith(OF_TOPICS)
    (value,) = (each for known, each in config.describe() if known.name == name)
    assert (value.text, value.problem is None) == ("of a later Kafka", False)


LAGS = "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"


@pytest.mark.parametrize(
    ("static", "default", "broker", "unread"),
    [
        ([], dict(zip(LAGS, "95", strict=True)), {}, {"min.compaction.lag.ms", "max.compaction.lag.ms"}),
        ([], {LAGS[0]: "9"}, {LAGS[1]: "5"}, {"min.compaction.lag.ms", "max.compaction.lag.ms"}),
        ([f"{LAGS[1]}=5"], {LAGS[0]: "8"}, {LAGS[0]: "9"}, {"min.compaction.lag.ms"}),
        ([f"{LAGS[0]}=9"], {LAGS[1]: "5"}, {LAGS[1]: "6"}, {"max.compaction.lag.ms"}),
        (["log.retention.hours=2"], {"log.retention.ms": "0"}, {}, {"retention.ms"}),
        ([], {"log.retention.ms": "0", LAGS[0]: "9"}, {LAGS[1]: "5"}, {"retention.ms", *LAGS}),
    ],
)
def test_a_stored_combination_that_cannot_be_keeps_the_topics_that_take_it(
    static: list[str], default: dict[str, str], broker: dict[str, str], unread: set[str]
) -> None:
    config = load(overrides=static).with_dynamic({**default, "log.flush.interval.messages": "7"}, broker, stored=True)

    kept = config.log_config
    assert (kept.compact, kept.delete, kept.flush_messages) == (False, False, 7)
    assert set(kept.unread) == {name.removeprefix("log.cleaner.") for name in unread}
    before = load(overrides=static)
    assert config.retention_ms == before.retention_ms
    assert [config.get_int(name) for name in LAGS] == [before.get_int(name) for name in LAGS]
    described = {known.name: value for known, value in config.describe() if value.problem is not None}
    assert {name: value.text for name, value in described.items()} == {**default, **broker}
    for problem in config.stored_problems:
        assert problem.endswith(OF_TOPICS)
        assert " is above " in problem or "cannot be 0" in problem
    assert config.with_dynamic({}, {}).stored_problems == ()


@pytest.mark.parametrize(
    ("stored", "fault"),
    [
        ({"log.cleaner.threads": "1000"}, "each thread must get more than 1048576 bytes"),
        ({"log.cleaner.io.max.bytes.per.second": "0"}, "it must be above 0, or no log would ever be clean"),
        ({"log.cleaner.io.buffer.load.factor": "0"}, "it must be above 0, or no log would ever be clean"),
    ],
)
def test_a_stored_combination_that_decides_no_deletion_is_ignored(stored: dict[str, str], fault: str) -> None:
    config = load().with_dynamic({}, stored, stored=True)

    (problem,) = config.stored_problems
    assert problem.endswith(f"{fault}; ignored")
    (name,) = stored
    assert config.value(name) == load().value(name)
    assert config.log_config == load().log_config


def test_stored_properties_that_kafka_would_not_take_while_it_runs_are_ignored() -> None:
    stored = {"client.quota.callback.class": "x", "num.io.threads": "4"}

    config = load().with_dynamic({}, stored, stored=True)

    assert list(config.unserved) == ["num.io.threads"]
    (problem,) = config.stored_problems
    assert problem.startswith("client.quota.callback.class in the dynamic config of this broker: ")
    assert problem.endswith("; ignored")


def test_a_start_is_refused_in_a_sentence_if_a_stored_value_leaves_a_listener_without_protection() -> None:
    static = load(
        overrides=["listeners=SASL_PLAINTEXT://127.0.0.1:9092", "sasl.enabled.mechanisms=SCRAM-SHA-256"],
    )
    builder = ImageBuilder(MetadataImage())
    name = "listener.name.sasl_plaintext.sasl.enabled.mechanisms"
    builder.apply(ConfigRecord(4, "1", name, "GSSAPI"))

    with pytest.raises(StartupError, match=f"{name}=GSSAPI in the dynamic config of this broker: "):
        LiveConfig(static, 1, builder.build())


def test_this_brokers_illegal_value_is_judged_before_combinations() -> None:
    config = load().with_dynamic({LAGS[0]: "9", LAGS[1]: "5"}, {LAGS[1]: "soon"}, stored=True)

    assert set(config.log_config.unread) == {"min.compaction.lag.ms", "max.compaction.lag.ms"}


def test_this_brokers_legal_value_wins_over_an_illegal_one_of_all_brokers_and_not_the_reverse() -> None:
    def unread(default: str, broker: str) -> tuple[str, ...]:
        config = load().with_dynamic({"log.cleanup.policy": default}, {"log.cleanup.policy": broker}, stored=True)
        return config.log_config.unread

    assert unread("archive", "compact") == ()
    assert unread("compact", "archive") == ("cleanup.policy",)


def test_a_running_broker_logs_a_stored_value_that_is_not_understood_once(caplog: pytest.LogCaptureFixture) -> None:
    def image(**configs: str) -> MetadataImage:
        builder = ImageBuilder(MetadataImage())
        for name, value in configs.items():
            builder.apply(ConfigRecord(4, "", name.replace("_", "."), value))
        return builder.build()

    bad = image(log_cleanup_policy="archive")
    live = LiveConfig(load(), 1, bad)
    assert not live.log_config("t").delete
    live.apply(image(log_cleanup_policy="archive", log_retention_ms="5"))
    live.apply(image(log_cleanup_policy="compact"))
    assert live.log_config("t").compact
    live.apply(bad)

    sentence = (
        "log.cleanup.policy=archive in the dynamic config of all brokers: archive is none of compact, delete; "
        f"{OF_TOPICS}"
    )
    assert caplog.messages == [sentence, sentence]


def test_warnings_of_one_dynamic_state_are_not_carried_into_the_next() -> None:
    once = load().with_dynamic({"of.a.later.kafka": "1"}, {}, stored=True)

    assert once.warnings != ()
    assert once.with_dynamic({}, {}).warnings == ()

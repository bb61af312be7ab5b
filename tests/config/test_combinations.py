"""What several properties decide together: families of units, node id, directories, and what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config import TOPIC_PROPERTIES, ConfigError, ConfigSource, load
from tests.config.conftest import WriteFile

HOUR_MS = 3_600_000


def refusal(*overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(overrides=overrides)
    return str(caught.value)


# Families


@pytest.mark.parametrize(
    ("overrides", "retention_ms"),
    [
        ([], 168 * HOUR_MS),
        (["log.retention.hours=1"], HOUR_MS),
        (["log.retention.minutes=2", "log.retention.hours=1"], 120_000),
        (["log.retention.ms=3", "log.retention.minutes=2", "log.retention.hours=1"], 3),
        (["log.retention.hours=-1"], -1),
        (["log.retention.minutes=-5"], -1),
        (["log.retention.ms=-7"], -1),
        (["log.retention.hours=2147483647"], 2147483647 * HOUR_MS),
    ],
)
def test_the_finest_unit_of_retention_wins_and_negative_is_forever(overrides: list[str], retention_ms: int) -> None:
    assert load(overrides=overrides).retention_ms == retention_ms


def test_roll_jitter_and_flush_are_families_too() -> None:
    config = load(overrides=["log.roll.hours=2", "log.roll.jitter.hours=1", "log.flush.scheduler.interval.ms=500"])
    assert (config.segment_ms, config.segment_jitter_ms, config.flush_ms) == (2 * HOUR_MS, HOUR_MS, 500)

    config = load(overrides=["log.roll.ms=7", "log.roll.jitter.ms=5", "log.flush.interval.ms=0"])
    assert (config.segment_ms, config.segment_jitter_ms, config.flush_ms) == (7, 5, 0)


def test_a_finer_unit_in_an_earlier_layer_beats_a_coarser_one_in_a_later_with_a_warning(
    write_file: WriteFile,
) -> None:
    path = write_file("log.retention.ms=5000")

    config = load(config_file=path, overrides=["log.retention.hours=1"])

    assert config.retention_ms == 5000
    assert config.warnings == (
        "log.retention.hours=1 in --set has no effect: "
        "log.retention.ms=5000 in server.properties line 1 wins everywhere",
    )


def test_two_equal_values_in_different_units_cause_no_warning() -> None:
    assert load(overrides=["log.retention.hours=1", "log.retention.ms=3600000"]).warnings == ()


def test_a_family_names_the_property_that_decided_its_value(write_file: WriteFile) -> None:
    config = load(config_file=write_file("log.retention.minutes=5"))

    value = config.topic_default(TOPIC_PROPERTIES["retention.ms"])

    assert (value.value, value.text, value.source, value.origin) == (
        300_000,
        "300000",
        ConfigSource.STATIC_BROKER_CONFIG,
        "log.retention.minutes=5 in server.properties line 1",
    )


# Node id


@pytest.mark.parametrize(
    ("overrides", "node_id"),
    [
        ([], None),
        (["node.id=0"], 0),
        (["broker.id=3"], 3),
        (["broker.id=-1"], None),
        (["node.id=4", "broker.id=4"], 4),
        (["node.id=4", "broker.id=-1"], 4),
    ],
)
def test_the_node_id_is_that_of_node_id_or_broker_id_or_left_open(overrides: list[str], node_id: int | None) -> None:
    assert load(overrides=overrides).node_id == node_id


def test_two_node_ids_are_refused() -> None:
    assert refusal("node.id=1", "broker.id=2") == "node.id=1 in --set and broker.id=2 in --set: they must be equal"


# Directories


def test_directories_are_absolute_and_the_first_holds_the_metadata_log(in_tmp: Path) -> None:
    config = load(overrides=["log.dirs=b, a"])

    assert config.log_dirs == (in_tmp / "b", in_tmp / "a")
    assert config.metadata_log_dir == in_tmp / "b"


def test_log_dirs_wins_over_log_dir_and_the_metadata_log_may_be_elsewhere(in_tmp: Path) -> None:
    config = load(overrides=["log.dir=x", "log.dirs=a", "metadata.log.dir=m"])

    assert config.log_dirs == (in_tmp / "a",)
    assert config.metadata_log_dir == in_tmp / "m"
    assert load(overrides=["log.dir=x"]).log_dirs == (in_tmp / "x",)
    assert load().log_dirs == (in_tmp / "barnabas-data",)
    assert load(overrides=["log.dir=x", "metadata.log.dir="]).metadata_log_dir == in_tmp / "x"


def test_the_metadata_log_may_be_in_any_data_directory(in_tmp: Path) -> None:
    assert load(overrides=["log.dirs=a,b", "metadata.log.dir=b"]).metadata_log_dir == in_tmp / "b"


def test_one_directory_twice_is_refused_also_under_another_name(in_tmp: Path) -> None:
    (in_tmp / "a").mkdir()
    (in_tmp / "link").symlink_to("a")

    assert refusal("log.dirs=a,./a/") == "log.dirs=a,./a/ in --set: ./a/ and a are the same directory"
    assert refusal("log.dirs=a,link") == "log.dirs=a,link in --set: link and a are the same directory"


def test_a_directory_inside_another_is_refused(in_tmp: Path) -> None:
    assert refusal("log.dirs=a,a/b") == "log.dirs=a,a/b in --set: a/b is inside a"
    assert refusal("log.dirs=a", "metadata.log.dir=a/m") == "metadata.log.dir=a/m in --set: a/m is inside a"
    assert load(overrides=["log.dirs=a,ab"]).log_dirs == (in_tmp / "a", in_tmp / "ab")


@pytest.mark.parametrize("text", ["", "a,,b"])
def test_a_list_of_directories_names_each(text: str) -> None:
    assert refusal(f"log.dirs={text}").startswith(f"log.dirs={text} in --set: ")


# What cannot be


@pytest.mark.parametrize("name", ["log.retention.ms", "log.retention.minutes", "log.retention.hours"])
def test_a_retention_of_nothing_is_refused_for_the_broker(name: str) -> None:
    assert refusal(f"{name}=0") == (
        f"{name}=0 in --set: the broker's retention cannot be 0 (negative is forever; a topic's may be 0)"
    )


def test_a_coarser_retention_of_nothing_does_not_matter_where_a_finer_one_wins() -> None:
    assert load(overrides=["log.retention.hours=0", "log.retention.ms=5"]).retention_ms == 5


def test_a_minimum_compaction_lag_above_the_maximum_is_refused_with_both_sources(write_file: WriteFile) -> None:
    path = write_file("log.cleaner.max.compaction.lag.ms=5")

    with pytest.raises(ConfigError) as caught:
        load(config_file=path, overrides=["log.cleaner.min.compaction.lag.ms=6"])

    assert str(caught.value) == (
        "log.cleaner.min.compaction.lag.ms=6 in --set is above "
        "log.cleaner.max.compaction.lag.ms=5 in server.properties line 1"
    )


def test_a_delay_of_failed_logins_that_lasts_as_long_as_the_idle_limit_is_refused() -> None:
    delay, idle = "connection.failed.authentication.delay.ms=500", "connections.max.idle.ms=500"
    assert refusal(delay, idle) == (
        f"{delay} in --set must be less than {idle} in --set, or connections would be closed as idle before a failed "
        "authentication is answered"
    )
    assert load(overrides=[delay, "connections.max.idle.ms=501"]).get_int("connections.max.idle.ms") == 501
    assert load(overrides=[delay, "connections.max.idle.ms=-1"]).get_int("connections.max.idle.ms") == -1


def test_a_cleaner_thread_needs_more_than_a_mebibyte() -> None:
    assert refusal("log.cleaner.dedupe.buffer.size=2097152", "log.cleaner.threads=2") == (
        "log.cleaner.dedupe.buffer.size=2097152 in --set over log.cleaner.threads=2 in --set: "
        "each thread must get more than 1048576 bytes"
    )
    assert load(overrides=["log.cleaner.dedupe.buffer.size=1048577"]).get_int("log.cleaner.threads") == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.cleaner.io.max.bytes.per.second", "0"),
        ("log.cleaner.io.max.bytes.per.second", "-1.5"),
        ("log.cleaner.io.buffer.load.factor", "0"),
    ],
)
def test_a_cleaner_that_could_never_clean_is_refused(name: str, value: str) -> None:
    assert "no log would ever be clean" in refusal(f"{name}={value}")


def test_a_controller_alone_is_refused() -> None:
    assert refusal("process.roles=controller").startswith("process.roles=controller in --set: Barnabas is a broker")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("log.index.size.max.bytes=3", "must be at least 4"),
        ("log.segment.bytes=1023", "must be at least 1024"),
        ("log.cleanup.policy=compress", "compress is none of compact, delete"),
        ("min.insync.replicas=0", "must be at least 1"),
        ("log.cleaner.min.cleanable.ratio=1.5", "must be 0 to 1"),
        ("compression.type=brotli", "must be one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("log.message.timestamp.type=createtime", "must be one of CreateTime, LogAppendTime"),
        ("node.id=-1", "must be at least 0"),
    ],
)
def test_a_value_against_its_rule_is_refused(setting: str, reason: str) -> None:
    assert refusal(setting) == f"{setting} in --set: {reason}"


# What people should know


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("log.cleanup.policy=compact, compact", ("compact",)),
        ("sasl.enabled.mechanisms=PLAIN,PLAIN", ("PLAIN",)),
        ("ssl.enabled.protocols=TLSv1.3,TLSv1.2,TLSv1.3", ("TLSv1.3", "TLSv1.2")),
        ("ssl.cipher.suites=a,a", ("a",)),
        ("group.coordinator.rebalance.protocols=classic,consumer,classic", ("classic", "consumer")),
        ("group.consumer.assignors=uniform,uniform", ("uniform",)),
        ("process.roles=broker,controller,broker", ("broker", "controller")),
        ("listeners=localhost:0,localhost:0", ("localhost:0",)),
        ("log.dirs=a,b,a", ("a", "b")),
    ],
)
def test_an_entry_that_a_list_names_again_counts_once_and_is_warned_about(
    setting: str, value: tuple[str, ...], in_tmp: Path
) -> None:
    config = load(overrides=[setting])

    assert config.get(setting.partition("=")[0]) == value
    assert f"{setting} in --set: names {value[0]} more than once, which counts once" in config.warnings


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["default.replication.factor=3"], "a topic gets one replica"),
        (["min.insync.replicas=2"], "acks=all is answered NOT_ENOUGH_REPLICAS (19)"),
        (["controller.quorum.voters=1@a:1,2@b:1"], "Barnabas is a single node and does not join a quorum"),
        (
            ["message.max.bytes=2000", "socket.request.max.bytes=1000"],
            "a request with a batch of that size is never read",
        ),
        (["log.cleaner.enable=false", "log.cleanup.policy=compact"], "logs only grow"),
        (
            ["log.index.size.max.bytes=2400", "log.segment.bytes=1048576"],
            "the indexes are full first, after about 815104 bytes",
        ),
    ],
)
def test_a_legal_setting_with_a_consequence_is_warned_about(overrides: list[str], words: str) -> None:
    config = load(overrides=overrides)

    assert len(config.warnings) == 1
    assert words in config.warnings[0]
    assert all(each.split("=")[0] in config.warnings[0] for each in overrides)


@pytest.mark.parametrize(
    "overrides",
    [
        ["log.cleaner.min.compaction.lag.ms=5", "log.cleaner.max.compaction.lag.ms=5"],
        ["message.max.bytes=1000", "socket.request.max.bytes=1000"],
        ["log.cleaner.enable=false"],
        ["log.cleanup.policy=compact"],
        # 199 time index entries (the 200th is kept for the roll) of 4096 bytes.
        ["log.index.size.max.bytes=2400", "log.segment.bytes=815104"],
        ["controller.quorum.voters=1@localhost:9093"],
    ],
)
def test_a_setting_at_the_limit_of_a_warning_causes_none(overrides: list[str]) -> None:
    assert load(overrides=overrides).warnings == ()


def test_a_refusal_marks_defaults() -> None:
    assert refusal("log.cleaner.dedupe.buffer.size=5") == (
        "log.cleaner.dedupe.buffer.size=5 in --set over log.cleaner.threads=1 (default): "
        "each thread must get more than 1048576 bytes"
    )


def test_an_empty_cleanup_policy_is_legal() -> None:
    config = load(overrides=["log.cleanup.policy="])

    assert (config.log_config.compact, config.log_config.delete) == (False, False)
    assert config.warnings == ()

"""`barnabas explain` on a stopped daemon's directory, against what the daemon deletes at its next start."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas.broker.metadata.directories.meta_properties import read_meta_properties, write_meta_properties
from barnabas.commands.main import main
from barnabas.config.log_config import KEPT
from barnabas.protocol.metadata.records import ConfigRecord
from barnabas.protocol.uuids import random_uuid
from tests.support.daemon import start_daemon
from tests.support.eventually import eventually
from tests.support.storage.bench import keyed_batch, sized_batch
from tests.support.storage.metadata_store import opened
from tests.support.wire import WireClient

HOUR_MS = 3_600_000
NO_POLICY = "archive is none of compact, delete"
SEGMENTS = [0, 1, 2, 3]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["explain", *map(str, arguments)])


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def bases(data: Path) -> list[int]:
    return sorted(int(path.stem) for path in (data / "held-0").glob("*.log"))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of a stopped daemon: one batch to a segment, the second one with a timestamp of tomorrow."""
    directory = tmp_path_factory.mktemp("explain")
    now_ms = time.time_ns() // 1_000_000
    with start_daemon(directory) as daemon:
        with WireClient(daemon.host, daemon.port) as wire:
            configs = {"retention_ms": str(HOUR_MS), "message_timestamp_after_max_ms": str(100 * HOUR_MS)}
            wire.create_topic("held", 1, segment_bytes="16384", **configs)
            for age_ms in (2 * HOUR_MS, -24 * HOUR_MS, 2 * HOUR_MS, 0):
                assert wire.produce("held", bytes(sized_batch(10_000, now_ms - age_ms))).error == 0
        assert daemon.stop() == 0
    assert bases(directory / "data") == SEGMENTS
    return directory


def test_the_sentences_name_the_numbers_the_property_and_its_source(scratch: Path) -> None:
    result = run("partition", "held-0", "--log-dir", scratch / "data")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    assert f"retention.ms={HOUR_MS} (" in result.stdout
    assert "ms in the future, and retention.ms counts from there" in result.stdout
    assert "segment 1 before it cannot go yet" in result.stdout


def test_a_configuration_file_decides_where_the_topic_does_not(scratch: Path, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={scratch / 'data'}\nlog.retention.bytes=20000\n")
    told = json.loads(run("topic", "held", "--config", file, "--json").stdout)
    assert told["settings"]["retention.bytes"]["source"] == "STATIC_BROKER_CONFIG"
    assert told["settings"]["retention.ms"]["source"] == "DYNAMIC_TOPIC_CONFIG"
    assert [each["rule"] for each in told["partitions"][0]["segments"][:2]] == ["retention.bytes"] * 2


def test_the_layers_of_a_setting_are_listed_with_the_deciding_one_first(scratch: Path, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={scratch / 'data'}\nlog.retention.ms=5000\nlog.segment.bytes=99999\n")
    told = json.loads(run("config", "retention.ms", "--topic", "held", "--config", file, "--json").stdout)
    assert (told["value"], told["source"]) == (str(HOUR_MS), "DYNAMIC_TOPIC_CONFIG")
    assert [(each["name"], each["value"], each["source"]) for each in told["chain"][:2]] == [
        ("retention.ms", str(HOUR_MS), "DYNAMIC_TOPIC_CONFIG"),
        ("log.retention.ms", "5000", "STATIC_BROKER_CONFIG"),
    ]
    lines = run("config", "segment.bytes", "--topic", "held", "--config", file).stdout.splitlines()
    assert lines[0] == "segment.bytes of held is 16384, from the topic's own config"
    assert lines[1] == "  segment.bytes=16384 in the topic's own config: in force"
    assert lines[2].startswith("  log.segment.bytes=99999 in the broker's start (")
    assert lines[2].endswith("): overridden")
    lines = run("config", "retention.bytes", "--topic", "held", "--log-dir", scratch / "data").stdout.splitlines()
    assert lines == [
        "retention.bytes of held is -1, from the default",
        "  log.retention.bytes=-1 in the default: in force",
    ]


def test_a_stored_value_that_is_not_understood_is_named_and_nothing_goes(scratch: Path, tmp_path: Path) -> None:
    data = shutil.copytree(scratch / "data", tmp_path / "data")
    with opened(data) as node:
        node.store.commit([ConfigRecord(2, "held", "cleanup.policy", "compact,archive")])
        node.store.commit([ConfigRecord(4, "", "log.segment.bytes", "14"), ConfigRecord(4, "", "log.roll.ms", "soon")])

    lines = run("config", "cleanup.policy", "--topic", "held", "--log-dir", data).stdout.splitlines()
    assert lines[:2] == [
        "cleanup.policy of held is compact,archive, from the topic's own config",
        "  cleanup.policy=compact,archive in the topic's own config: not understood",
    ]
    assert lines[3:] == [
        f"cleanup.policy=compact,archive from the topic's own config is not understood, {NO_POLICY}: {KEPT}",
        f"segment.ms=soon from the dynamic default of all brokers is not understood, not a long: {KEPT}",
    ]
    told = run("topic", "held", "--log-dir", data).stdout
    assert lines[3] in told
    assert "a stored config is not understood, see above" in told
    assert "is deleted between" not in told
    changed = run("config", "cleanup.policy", "--topic", "held", "--log-dir", data, "--to", "delete").stdout
    assert "deletes nothing that it does not delete as things are" in changed  # segment.ms is not understood either


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("topic", "other", "--log-dir", "DATA"), "no readable log of other in "),
        (("partition", "held-7", "--log-dir", "DATA"), "no readable log of held-7 in "),
        (("config", "retention.ms", "--topic", "other", "--log-dir", "DATA"), "the metadata log has no topic other"),
        (("config", "retention.m", "--topic", "held", "--log-dir", "DATA"), "topics have no property retention.m"),
        (("partition", "held", "--log-dir", "DATA"), "held is not a partition"),
    ],
)
def test_what_cannot_be_explained_is_named(scratch: Path, arguments: tuple[str, ...], sentence: str) -> None:
    result = run(*(str(scratch / "data") if each == "DATA" else each for each in arguments))
    assert result.exit_code != 0
    assert sentence in result.stderr


def test_a_broker_then_deletes_what_was_predicted_and_the_command_has_changed_nothing(
    scratch: Path, tmp_path: Path
) -> None:
    data = shutil.copytree(scratch / "data", tmp_path / "data")
    before = contents(data)
    result = run("topic", "held", "--log-dir", data, "--json")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    assert contents(data) == before
    told: dict[str, Any] = json.loads(result.stdout)
    segments = told["partitions"][0]["segments"]
    assert [(each["base_offset"], each["kept_by"], each["held_by"]) for each in segments] == [
        (0, ["check_interval"], None),
        (1, ["future_timestamp"], None),
        (2, ["earlier_segment"], 1),
        (3, ["earlier_segment", "active_segment", "within_retention"], 1),
    ]
    tomorrow = segments[1]["largest_timestamp_ms"] + HOUR_MS + 1
    assert [each["deleted_earliest_ms"] for each in segments] == [told["now_ms"], *[tomorrow] * 3]
    due = [each["base_offset"] for each in segments if each["deleted_earliest_ms"] <= told["now_ms"]]
    with start_daemon(tmp_path, "log.initial.task.delay.ms=0", "log.retention.check.interval.ms=50") as daemon:
        eventually(lambda: bases(data) if bases(data) != SEGMENTS else None, what="a deletion by retention")
        assert bases(data) == [base for base in SEGMENTS if base not in due]
        running = json.loads(run("topic", "held", "--bootstrap", daemon.bootstrap, "--json").stdout)
        (left,) = running["partitions"]
        assert [each["kept_by"] for each in left["segments"]] == [each["kept_by"] for each in segments[1:]]
        assert [each["deleted_earliest_ms"] for each in left["segments"]] == [tomorrow] * 3
        assert (left["log_start_offset"], left["check_interval_ms"]) == (1, 50)
        refused = run("topic", "held", "--log-dir", data)
        assert refused.exit_code == 1
        assert "another broker is using this data directory" in refused.stderr
        assert daemon.stop() == 0


def test_a_move_that_a_stop_interrupted_keeps_what_is_due_until_a_broker_has_ended_it(
    scratch: Path, tmp_path: Path
) -> None:
    data, other = shutil.copytree(scratch / "data", tmp_path / "data"), tmp_path / "other"
    copy = other / f"held-0.{'a' * 32}-future"
    copy.mkdir(parents=True)
    for name in ("00000000000000000000.log", "partition.metadata"):
        shutil.copy(data / "held-0" / name, copy)
    node = read_meta_properties(data)
    assert node is not None
    write_meta_properties(other, node_id=1, cluster_id=node.cluster_id or "", directory_id=random_uuid())
    before = contents(tmp_path)
    both = ("--log-dir", data, "--log-dir", other)
    (partition,) = json.loads(run("topic", "held", *both, "--json").stdout)["partitions"]
    assert partition["copy"] == {"log_dir": str(other), "size_bytes": 10_000}
    due = partition["segments"][0]
    assert (due["kept_by"], due["deleted_latest_ms"]) == (["move_under_way"], None)
    assert f"a move to {other} has copied 10,000 of 40,000 bytes" in run("partition", "held-0", *both).stdout
    assert contents(tmp_path) == before
    settings = ("log.initial.task.delay.ms=0", "log.retention.check.interval.ms=50")
    with start_daemon(tmp_path, f"log.dirs={data},{other}", *settings) as daemon:
        moved = other / "held-0"
        eventually(lambda: moved.exists() and len([*moved.glob("*.log")]) == 3, what="the end of the move, a deletion")
        assert daemon.stop() == 0


def test_a_copy_without_its_log_is_named(scratch: Path, tmp_path: Path) -> None:
    data = shutil.copytree(scratch / "data", tmp_path / "data")
    (data / "held-0").rename(data / f"held-0.{'a' * 32}-future")
    refused = run("partition", "held-0", "--log-dir", data)
    assert refused.exit_code == 1
    assert f"no readable log of held-0 in {data}; a move has left a copy of held-0 in {data}" in refused.stderr


def test_a_running_broker_explains_its_settings_and_names_what_it_does_not_have(scratch: Path, tmp_path: Path) -> None:
    shutil.copytree(scratch / "data", tmp_path / "data")
    with start_daemon(tmp_path, "log.retention.ms=5000") as daemon:
        address = ("--bootstrap", daemon.bootstrap)
        told = json.loads(run("config", "retention.ms", "--topic", "held", *address, "--json").stdout)
        assert [(each["name"], each["value"], each["source"]) for each in told["chain"][:2]] == [
            ("retention.ms", str(HOUR_MS), "DYNAMIC_TOPIC_CONFIG"),
            ("log.retention.ms", "5000", "STATIC_BROKER_CONFIG"),
        ]
        assert "segment 1 before it cannot go yet" in run("partition", "held-0", *address).stdout
        for arguments, sentence in (
            (("topic", "other"), "there is no topic other"),
            (("partition", "held-7"), "there is no partition held-7 here"),
            (("config", "retention.m", "--topic", "held"), "topics have no property retention.m"),
        ):
            refused = run(*arguments, *address)
            assert refused.exit_code == 1
            assert sentence in refused.stderr


def test_a_power_cut_would_cost_what_is_not_synced(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        address = ("--bootstrap", daemon.bootstrap)
        with WireClient(daemon.host, daemon.port) as wire:
            for name, configs in (("cached", {"flush_ms": "86400000"}), ("synced", {"flush_messages": "1"})):
                wire.create_topic(name, 1, **configs)
                for _ in range(3):
                    assert wire.produce(name, bytes(sized_batch(1000, time.time_ns() // 1_000_000))).error == 0
        told = json.loads(run("durability", *address, "--json").stdout)
        assert (told["unsynced_records"], told["unsynced_bytes"]) == (3, 3000)
        (partition,) = told["partitions"]
        assert (partition["topic"], partition["durable_offset"], partition["log_end_offset"]) == ("cached", 0, 3)
        lines = run("durability", *address).stdout.splitlines()
        assert lines[0].startswith("a power cut would cost up to 3 records (3,000 bytes) in 1 partition")
        assert "offsets 0 to 2; synced by flush.ms=86400000 (" in lines[1]
        assert "nothing now" in run("durability", "--topic", "synced", *address).stdout
        assert daemon.stop() == 0
    (log,) = json.loads(run("topic", "cached", "--log-dir", tmp_path / "data", "--json").stdout)["partitions"]
    assert log["high_watermark"] == 3


def test_a_change_deletes_what_was_predicted(scratch: Path, tmp_path: Path) -> None:
    data = shutil.copytree(scratch / "data", tmp_path / "data")
    change = ("config", "retention.bytes", "--topic", "held", "--to", "20000")
    told = json.loads(run(*change, "--log-dir", data, "--json").stdout)["change"]
    assert (told["deleted_segments"], told["deleted_bytes"], told["deleted_offsets"]) == (
        2,
        20_000,
        2,
    )  # one by size; it held the next one
    (partition,) = told["partitions"]
    assert (partition["partition"], partition["new_start_offset"]) == (0, 3)
    settings = ("log.initial.task.delay.ms=0", "log.retention.check.interval.ms=50")
    with start_daemon(tmp_path, *settings) as daemon:
        eventually(lambda: bases(data) == SEGMENTS[1:] or None, what="the deletion that was due")
        address = ("--bootstrap", daemon.bootstrap)
        lines = run(*change, *address).stdout.splitlines()
        assert lines[-3].startswith(
            "with retention.bytes=20000, the next check deletes 2 further segments (20,000 bytes"
        )
        assert run("config", "retention.ms", "--topic", "held", "--to", "-1", *address).stdout.splitlines()[-1] == (
            "with retention.ms=-1, the next check deletes nothing that it does not delete as things are"
        )
        for name, value, sentence in (
            (
                "segment.ms",
                "5",
                "--to: the effect is explained for a change of retention.ms, retention.bytes, cleanup.policy",
            ),
            ("retention.ms", "soon", "retention.ms"),
        ):
            refused = run("config", name, "--topic", "held", "--to", value, *address)
            assert refused.exit_code == 1
            assert sentence in refused.stderr
        altered = CliRunner().invoke(main, ["topic", "alter", "held", "--config", "retention.bytes=20000", *address])
        assert altered.exit_code == 0, altered.output
        eventually(lambda: bases(data) == SEGMENTS[3:] or None, what="the deletion that was predicted")
        assert daemon.stop() == 0


def test_a_compacted_topic_says_what_it_waits_for_and_is_cleaned_when_that_comes(tmp_path: Path) -> None:
    settings = {"cleanup_policy": "compact", "segment_bytes": "1024", "min_cleanable_dirty_ratio": "1"}
    with start_daemon(tmp_path, "log.cleaner.backoff.ms=50") as daemon:
        address = ("--bootstrap", daemon.bootstrap)
        with WireClient(daemon.host, daemon.port) as wire:
            wire.create_topic("keys", 1, **settings)
            for _ in range(25):
                assert wire.produce("keys", bytes(keyed_batch(100, time.time_ns() // 1_000_000))).error == 0

        def compaction(*place: object) -> dict[str, Any]:
            (partition,) = json.loads(run("topic", "keys", *place, "--json").stdout)["partitions"]
            found: dict[str, Any] = partition["compaction"]
            return found

        found = compaction(*address)
        assert (found["dirty_bytes"], found["clean_bytes"], found["dirty_ratio"]) == (2000, 0, 1.0)
        assert found["waits_for"] == ["dirty_ratio", "active_segment"]
        lines = run("topic", "keys", *address).stdout
        assert "2,000 of 2,000 bytes are dirty (ratio 1.00), from offset 0 to 20" in lines
        assert "no log is ever dirtier than min.cleanable.dirty.ratio=1 (" in lines
        altered = ("topic", "alter", "keys", "--config", "min.cleanable.dirty.ratio=0.1", *address)
        assert CliRunner().invoke(main, altered).exit_code == 0
        eventually(lambda: compaction(*address)["first_dirty_offset"] == 20 or None, what="a round of the cleaner")
        found = compaction(*address)
        assert found["waits_for"] == ["active_segment"]
        assert daemon.stop() == 0
    assert compaction("--log-dir", tmp_path / "data") == {**found, "seconds": None, "freed_bytes": None}


def test_segments_go_and_a_log_is_cleaned_at_the_moments_that_were_said(tmp_path: Path) -> None:
    """With the real clock: nothing happens before, and then all of it, and as many bytes as were said."""
    settings = ("log.initial.task.delay.ms=0", "log.retention.check.interval.ms=50", "log.cleaner.backoff.ms=50")
    compacted = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "1", "max_compaction_lag_ms": str(HOUR_MS)}
    with start_daemon(tmp_path, *settings) as daemon:
        moment_ms = time.time_ns() // 1_000_000 + 3000
        old_ms = moment_ms - HOUR_MS
        with WireClient(daemon.host, daemon.port) as wire:
            wire.create_topic("held", 1, segment_bytes="16384", retention_ms=str(HOUR_MS))
            for timestamp in (old_ms, old_ms, moment_ms):
                assert wire.produce("held", bytes(sized_batch(10_000, timestamp))).error == 0
            wire.create_topic("keys", 1, segment_bytes="1024", segment_ms=str(100 * HOUR_MS), **compacted)
            for _ in range(25):
                assert wire.produce("keys", bytes(keyed_batch(100, old_ms))).error == 0

        def explained(topic: str) -> dict[str, Any]:
            told = json.loads(run("topic", topic, "--bootstrap", daemon.bootstrap, "--json").stdout)
            (found,) = told["partitions"]
            assert isinstance(found, dict)
            return {**found, "now_ms": told["now_ms"]}

        def stored_bytes() -> int:
            return sum(path.stat().st_size for path in (tmp_path / "data" / "held-0").glob("*.log"))

        held, keys = explained("held"), explained("keys")
        assert [each["deleted_earliest_ms"] for each in held["segments"][:2]] == [moment_ms + 1] * 2
        assert keys["compaction"]["due_latest_ms"] == moment_ms + 1
        before, freed = stored_bytes(), sum(each["size_bytes"] for each in held["segments"][:2])
        early = [explained("held"), explained("keys")]
        if max(each["now_ms"] for each in early) <= moment_ms:  # a machine under load may be late
            assert len(early[0]["segments"]) == 3
            assert early[1]["compaction"]["first_dirty_offset"] == 0
        eventually(lambda: bases(tmp_path / "data") == [2] or None, what="the deletion that was predicted")
        assert time.time_ns() // 1_000_000 > moment_ms
        assert abs((before - stored_bytes()) - freed) <= freed / 100
        eventually(lambda: explained("keys")["compaction"]["first_dirty_offset"] == 20 or None, what="a round")
        assert time.time_ns() // 1_000_000 > moment_ms

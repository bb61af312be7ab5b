"""`barnabas mirror` against a real broker, and what `doctor dir` and `handover` say about mirrors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas.commands.main import main
from barnabas.explanation.mirror import sentences_of
from barnabas.protocol.messages.cluster.mirrors import (
    MirrorDescription,
    MirroredPartition,
    MirrorProblem,
    definition_fields,
)
from barnabas.protocol.mirrors.definition import definition_of
from barnabas.protocol.uuids import uuid_text
from tests.support.daemon import Daemon, start_daemon
from tests.support.mirrored_topics import SOURCE_ID, add_mirror, broker_config, store_definition

NOWHERE = "127.0.0.1:1"
STALE: dict[str, Any] = {"bootstrap": [NOWHERE], "topics": ["(?!x).*"]}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A broker with the paused mirror `old`, which has the topic `orders` with two partitions.

    Another one, `stale`, was stored by a broker that matched with Python's `re`.
    """
    directory: Path = tmp_path_factory.mktemp("mirrors")
    with start_daemon(directory) as prepared:
        assert prepared.stop() == 0
    add_mirror(broker_config(directory / "data"), "old", {"orders": 2})
    store_definition(broker_config(directory / "data"), definition_of("stale", STALE))
    with start_daemon(directory) as daemon:
        yield daemon


def run(daemon: Daemon, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["mirror", *arguments, "--bootstrap", daemon.bootstrap])


def described(daemon: Daemon, name: str) -> dict[str, Any]:
    found = run(daemon, "describe", name, "--json")
    assert found.exit_code == 0, found.stderr
    parsed: dict[str, Any] = json.loads(found.stdout)
    return parsed


def test_a_mirror_is_created_paused_resumed_and_deleted(daemon: Daemon) -> None:
    created = run(
        daemon,
        *("create", "new", "--source", f"{NOWHERE}, localhost:2", "--topics", "bills.*", "--topics", "x"),
        *("--groups", "readers", "--command-config", "/etc/source.properties", "--start", "2026-01-01", "--paused"),
        *("--no-follow-configs", "--max-bytes-per-second", "1000000", "--keep-cut"),
        *("--metadata-max-age-ms", "30000"),
    )
    assert (created.exit_code, created.stdout) == (
        0,
        "created mirror new; `barnabas mirror describe new` shows its progress\n",
    )
    found = described(daemon, "new")
    assert found["state"] == "paused"
    assert found["definition"] == {
        "bootstrap": [NOWHERE, "localhost:2"],
        "topics": ["bills.*", "x"],
        "groups": ["readers"],
        "command_config": "/etc/source.properties",
        "start": "1767225600000",
        "follow_configs": False,
        "max_bytes_per_second": 1_000_000,
        "keep_cut": True,
        "take_existing": [],
        "metadata_max_age_ms": 30_000,
        "desired": "paused",
    }
    assert run(daemon, "resume", "new").stdout == "resumed mirror new\n"
    assert described(daemon, "new")["definition"] == {**found["definition"], "desired": "running"}
    assert run(daemon, "pause", "new").stdout == "paused mirror new\n"
    assert run(daemon, "delete", "new").stdout == "deleted mirror new\n"
    assert run(daemon, "describe", "new").exit_code == 1


def test_options_of_alter_change_only_their_fields(daemon: Daemon) -> None:
    assert run(daemon, "create", "m", "--source", NOWHERE, "--topics", "a", "--groups", "g", "--paused").exit_code == 0
    before = described(daemon, "m")["definition"]
    altered = run(
        daemon,
        *("alter", "m", "--topics", "b.*", "--topics", "c", "--no-groups", "--max-bytes-per-second", "5", "--keep-cut"),
        *("--command-config", "/etc/source.properties", "--no-follow-configs", "--metadata-max-age-ms", "100"),
    )
    assert altered.stdout == (
        "altered mirror m: command_config, follow_configs, groups, keep_cut, max_bytes_per_second, "
        "metadata_max_age_ms, topics\n"
    )
    after = {
        **before,
        "topics": ["b.*", "c"],
        "groups": [],
        "max_bytes_per_second": 5,
        "keep_cut": True,
        "command_config": "/etc/source.properties",
        "follow_configs": False,
        "metadata_max_age_ms": 100,
    }
    assert described(daemon, "m")["definition"] == after
    removed = run(daemon, "alter", "m", "--no-max-bytes-per-second", "--no-command-config", "--source", "b:1", "--json")
    assert json.loads(removed.stdout)["definition"] == {
        **after,
        "max_bytes_per_second": None,
        "command_config": None,
        "bootstrap": ["b:1"],
    }
    assert run(daemon, "delete", "m").exit_code == 0


def test_a_mirror_is_explained_in_sentences(daemon: Daemon) -> None:
    told = CliRunner().invoke(main, ["explain", "mirror", "old", "--bootstrap", daemon.bootstrap])
    assert told.exit_code == 0, told.output
    paused = "is paused, like its mirror: `barnabas mirror resume` goes on where it ends"
    assert told.stdout.splitlines() == [
        f"mirror old of {NOWHERE} is paused: 2 partitions of 1 topic",
        f"  orders-0 {paused}",
        f"  orders-1 {paused}",
    ]
    missing = CliRunner().invoke(main, ["explain", "mirror", "none", "--bootstrap", daemon.bootstrap])
    assert missing.exit_code == 1
    assert "none" in missing.stderr


def test_an_explained_mirror_names_what_is_missing_and_why() -> None:
    fields = {"bootstrap": ["k:9092"]}
    partitions = [
        MirroredPartition("a", 0, "copying", 10, 25, 15, 2.5, lag_bytes=1500),
        MirroredPartition("a", 1, "caught_up", 25, 25, 0, 0.0, lag_bytes=0),
        MirroredPartition("b", 0, "failed", 0, error="the source refuses READ on the topic"),
        MirroredPartition("b", 1, "copying", 3, 4, 1, None),
    ]
    problems = [MirrorProblem("c", "a topic of this name exists")]
    mirror = MirrorDescription(
        name="east", definition=definition_fields(fields), state="running", partitions=partitions, problems=problems
    )
    assert list(sentences_of(mirror)) == [
        "mirror east of k:9092 is running: 4 partitions of 2 topics",
        "  topic c: a topic of this name exists",
        "  a-0 is being copied; 15 records (about 1,500 bytes) are missing, from offset 10 to 25; "
        "it had every record 2.5 s ago",
        "  b-0 is not copied: the source refuses READ on the topic; it is tried again",
        "  b-1 is being copied; 1 record is missing, from offset 3 to 4",
        "  1 partition has every record of the source",
    ]


def test_a_paused_mirror_shows_its_topics_and_partitions(daemon: Daemon) -> None:
    found = described(daemon, "old")
    assert (found["state"], found["error"], found["problems"]) == ("paused", None, [])
    assert found["topics"] == [{"topic": "orders", "state": "mirrored", "source_id": uuid_text(SOURCE_ID)}]
    assert found["partitions"] == [
        {
            "topic": "orders",
            "partition": number,
            "state": "paused",
            "offset": 0,
            "source_offset": None,
            "lag_records": None,
            "lag_bytes": None,
            "lag_seconds": None,
            "error": None,
        }
        for number in range(2)
    ]
    text = run(daemon, "describe", "old").stdout.splitlines()
    assert text[:5] == [
        "mirror old: paused",
        f"  source: {NOWHERE}",
        "  topics: .*",
        "  start: earliest",
        "  configs: as at the source",
    ]
    assert text[-1].split() == ["orders", "1", "paused", "0", "-", "-", "-", "-"]
    listed = run(daemon, "list").stdout.splitlines()
    assert listed[-2].split() == ["old", "paused", NOWHERE, "1", "2", "-", "-"]
    assert json.loads(run(daemon, "list", "--json").stdout)[0] == found


def test_a_stored_pattern_that_is_not_served_stops_its_mirror_alone_and_is_the_reason(daemon: Daemon) -> None:
    found = described(daemon, "stale")
    for _ in range(1000):  # it may just begin
        found = found if found["error"] else described(daemon, "stale")
    assert found["definition"]["topics"] == STALE["topics"]
    reason = "topics: '(?!x).*' is not a regular expression that is served: invalid perl operator: (?!"
    assert found["error"].startswith(reason)
    explained = CliRunner().invoke(main, ["explain", "mirror", "stale", "--bootstrap", daemon.bootstrap])
    assert f"it makes no progress: {reason}" in explained.stdout
    assert run(daemon, "pause", "stale").exit_code == 0
    refused = run(daemon, "alter", "stale", "--topics", r"(a)\1")
    assert (refused.exit_code, "is not a regular expression that is served" in refused.stderr) == (1, True)
    assert run(daemon, "alter", "stale", "--topics", "[^x].*").exit_code == 0
    assert run(daemon, "resume", "stale").exit_code == 0
    assert described(daemon, "stale")["error"] is None or NOWHERE in described(daemon, "stale")["error"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("create", "old", "--source", NOWHERE, "--topics", "x"), "mirror 'old' already exists (DUPLICATE_RESOURCE)"),
        (("create", "a", "--source", "nowhere", "--topics", "x"), "mirror 'a': bootstrap: 'nowhere' is not host:port"),
        (("create", "a", "--source", NOWHERE, "--topics", "("), "mirror 'a': topics: '(' is not a regular expression"),
        (("describe", "none"), "mirror 'none' does not exist (RESOURCE_NOT_FOUND)"),
        (("alter", "none", "--keep-cut"), "mirror 'none' does not exist (RESOURCE_NOT_FOUND)"),
        (("alter", "old", "--topics", "("), "mirror 'old': topics: '(' is not a regular expression"),
        (("pause", "none"), "mirror 'none' does not exist (RESOURCE_NOT_FOUND)"),
        (("delete", "none"), "mirror 'none' does not exist (RESOURCE_NOT_FOUND)"),
        (("delete", "old"), "mirror 'old' has 1 read-only topic: delete the topics first"),
    ],
)
def test_an_error_is_one_sentence(daemon: Daemon, arguments: tuple[str, ...], sentence: str) -> None:
    failed = run(daemon, *arguments)
    assert failed.exit_code == 1
    assert failed.stderr.startswith(f"barnabas: {sentence}")
    assert failed.stderr.count("\n") == 1


@pytest.mark.parametrize("options", [(), ("--groups", "g", "--no-groups")])
def test_alter_refuses_no_change_and_options_that_exclude_each_other(daemon: Daemon, options: tuple[str, ...]) -> None:
    assert run(daemon, "alter", "old", *options).exit_code == 2


def test_without_rights_on_the_cluster_mirrors_are_neither_described_nor_changed(tmp_path: Path) -> None:
    authorizer = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    with start_daemon(tmp_path) as daemon:
        assert daemon.stop() == 0
    data = tmp_path / "data"
    allow = ("acl", "add", "--principal", "User:ANONYMOUS", "--cluster", "--operation", "describe", "--log-dir", data)
    with start_daemon(tmp_path, authorizer) as daemon:
        denied = run(daemon, "list")
        assert (denied.exit_code, "CLUSTER_AUTHORIZATION_FAILED" in denied.stderr) == (1, True)
        assert daemon.stop() == 0
    assert CliRunner().invoke(main, [*map(str, allow)]).exit_code == 0
    with start_daemon(tmp_path, authorizer) as daemon:
        assert run(daemon, "list").exit_code == 0
        denied = run(daemon, "create", "a", "--source", NOWHERE, "--topics", "x")
        assert (denied.exit_code, "CLUSTER_AUTHORIZATION_FAILED" in denied.stderr) == (1, True)


def test_doctor_and_handover_name_the_mirrors_of_a_directory(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        assert daemon.stop() == 0
    data = tmp_path / "data"
    add_mirror(broker_config(data), "east", {"orders": 2})
    doctor = CliRunner().invoke(main, ["doctor", "dir", str(data)])
    assert "mirror east of 127.0.0.1:1: paused, 1 read-only topic\n" in doctor.stdout
    (found,) = json.loads(CliRunner().invoke(main, ["doctor", "dir", str(data), "--json"]).stdout)["mirrors"]
    assert (found["name"], found["topics"]) == (
        "east",
        [{"topic": "orders", "state": "mirrored", "read_only": True}],
    )
    handover = CliRunner().invoke(main, ["handover", str(data), "--kafka-version", "4.3.0"])
    assert "note: mirror east: Kafka copies nothing and lets clients write to its 1 read-only topic" in handover.stdout


def test_a_broker_that_only_reads_describes_mirrors_and_refuses_changes(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        assert daemon.stop() == 0
    add_mirror(broker_config(tmp_path / "data"), "east", {"orders": 1})
    with start_daemon(tmp_path, "read.only=true") as daemon:
        assert described(daemon, "east")["topics"]
        refused = run(daemon, "delete", "east", "--release-topics")
        assert (refused.exit_code, "read.only=true" in refused.stderr) == (1, True)


def test_a_mirror_is_promoted_and_the_result_is_shown_again(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as prepared:
        assert prepared.stop() == 0
    add_mirror(broker_config(tmp_path / "data"), "east", {"bills": 1, "orders": 2})
    with start_daemon(tmp_path) as promoting:
        first = run(promoting, "promote", "east", "--topics", "bil.*")
        assert (first.exit_code, first.stdout) == (
            0,
            "promoted 1 topic of mirror east: open transactions committed 0, aborted 0; offsets cut 0\n",
        )
        assert described(promoting, "east")["state"] == "paused"
        rest = run(promoting, "promote", "east", "--json")
        assert rest.exit_code == 0, rest.stderr
        found = json.loads(rest.stdout)
        row = found["partitions"].pop(0)
        assert (found["name"], found["state"], found["topics"]) == ("east", "promoted", ["bills", "orders"])
        assert (found["committed"], found["aborted"], found["cut"], len(found["partitions"])) == (0, 0, 0, 2)
        assert (row["topic"], row["copied_end"], row["end"]) == ("bills", 0, 0)
        assert described(promoting, "east")["promoted"] == [row, *found["partitions"]]
        refused = run(promoting, "promote", "west")
        assert (refused.exit_code, "mirror 'west' does not exist" in refused.stderr) == (1, True)

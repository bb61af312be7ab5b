"""`barnabas handover`: a dry run, then values that Kafka refuses are raised and its server.properties is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from barnabas.broker.metadata.log.log_replay import METADATA_DIRECTORY, replay_metadata_directory
from barnabas.broker.storage.files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from barnabas.commands.main import main
from barnabas.config.properties_file import parse_properties
from barnabas.protocol.metadata.records import TOPIC_RESOURCE, ConfigRecord, FeatureLevelRecord
from tests.support.daemon import start_daemon
from tests.support.storage.directories import append_metadata, copy_of, make_directories, put_transaction_state
from tests.support.storage.files import snapshot_of


@pytest.fixture(scope="module")
def created(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_directories(tmp_path_factory.mktemp("made"))


@pytest.fixture
def dirs(created: Path, tmp_path: Path) -> tuple[Path, Path]:
    return copy_of(created, tmp_path)


def handover(dirs: tuple[Path, Path], *options: str, version: str = "4.3.0") -> Result:
    return CliRunner().invoke(main, ["handover", *map(str, dirs), "--kafka-version", version, *options])


def properties_of(path: Path) -> dict[str, str]:
    return {entry.key: entry.value for entry in parse_properties(path.read_text())}


def test_without_execute_nothing_is_written(dirs: tuple[Path, Path], tmp_path: Path) -> None:
    before = snapshot_of(tmp_path)
    result = handover(dirs)
    assert result.exit_code == 0
    assert "topic small: segment.bytes 16384 -> 1048576 (required by Apache Kafka 4.3.0)\n" in result.stdout
    assert "dry run: nothing was written" in result.stdout
    assert snapshot_of(tmp_path) == before


def test_execute_raises_what_kafka_refuses_and_keeps_the_clean_stop(dirs: tuple[Path, Path]) -> None:
    logs_before = {path: path.read_bytes() for each in dirs for path in each.glob("*-[0-9]/*.log")}
    assert handover(dirs, "--execute").exit_code == 0
    image = replay_metadata_directory(dirs[0] / METADATA_DIRECTORY).image
    assert image.topic_configs("small") == {"segment.bytes": "1048576"}
    assert all((each / CLEAN_SHUTDOWN_FILE).exists() for each in dirs)
    for path, content in logs_before.items():
        if METADATA_DIRECTORY not in path.parts:
            assert path.read_bytes() == content
    checked = CliRunner().invoke(main, ["doctor", "dir", *map(str, dirs), "--kafka-version", "4.3.0"])
    assert checked.exit_code == 0


def test_the_property_that_kafka_does_not_know_is_removed(dirs: tuple[Path, Path]) -> None:
    append_metadata(dirs[0], ConfigRecord(TOPIC_RESOURCE, "small", "flush.acks.all", "true"))
    assert "topic small: flush.acks.all=true is removed" in handover(dirs, version="3.9.1").stdout
    assert handover(dirs, "--execute", version="3.9.1").exit_code == 0
    image = replay_metadata_directory(dirs[0] / METADATA_DIRECTORY).image
    assert image.topic_configs("small") == {"segment.bytes": "16384"}


def test_kafka_3_9_gets_its_small_segments_as_they_are(dirs: tuple[Path, Path]) -> None:
    assert handover(dirs, "--execute", version="3.9.1").exit_code == 0
    image = replay_metadata_directory(dirs[0] / METADATA_DIRECTORY).image
    assert image.topic_configs("small") == {"segment.bytes": "16384"}


def test_kafka_3_9_gets_transaction_version_0_and_replays_no_other(dirs: tuple[Path, Path], tmp_path: Path) -> None:
    append_metadata(dirs[0], FeatureLevelRecord("transaction.version", 2))
    before = CliRunner().invoke(main, ["doctor", "dir", *map(str, dirs), "--kafka-version", "3.9.1"])
    assert before.exit_code == 1
    assert "problem transaction-version: transaction.version is 2, which Apache Kafka 3.7 to 3.9" in before.stdout
    dry = handover(dirs, version="3.9.1")
    assert "\ntransaction.version 2 -> 0 (required by Apache Kafka 3.9.1)\n" in dry.stdout
    assert handover(dirs, "--execute", version="3.9.1").exit_code == 0
    replayed = replay_metadata_directory(dirs[0] / METADATA_DIRECTORY)
    assert "transaction.version" not in replayed.highest_levels
    after = CliRunner().invoke(main, ["doctor", "dir", *map(str, dirs), "--kafka-version", "3.9.1"])
    assert after.exit_code == 0, after.output
    assert CliRunner().invoke(main, ["doctor", "dir", *map(str, dirs)]).exit_code == 0


@pytest.mark.parametrize("version", ["3.9.1", "4.0.0"])
def test_kafka_before_4_1_gets_share_version_0(dirs: tuple[Path, Path], version: str) -> None:
    append_metadata(dirs[0], FeatureLevelRecord("share.version", 1))
    before = CliRunner().invoke(main, ["doctor", "dir", *map(str, dirs), "--kafka-version", version])
    assert before.exit_code == 1
    assert "problem share-version: share.version is 1, which Apache Kafka 3.7 to 4.0" in before.stdout
    assert f"\nshare.version 1 -> 0 (required by Apache Kafka {version})\n" in handover(dirs, version=version).stdout
    assert handover(dirs, "--execute", version=version).exit_code == 0
    assert "share.version" not in replay_metadata_directory(dirs[0] / METADATA_DIRECTORY).highest_levels
    after = CliRunner().invoke(main, ["doctor", "dir", *map(str, dirs), "--kafka-version", version])
    assert after.exit_code == 0, after.output


def test_kafka_4_0_gets_streams_version_0_and_replays_no_other(dirs: tuple[Path, Path]) -> None:
    append_metadata(dirs[0], FeatureLevelRecord("streams.version", 1))
    before = CliRunner().invoke(main, ["doctor", "dir", *map(str, dirs), "--kafka-version", "4.0.1"])
    assert "problem streams-version: streams.version is 1, which Apache Kafka 3.7 to 4.1 does not" in before.stdout
    assert "streams.version" not in handover(dirs, version="4.2.0").stdout
    assert "\nstreams.version 1 -> 0 (required by Apache Kafka 4.0.1" in handover(dirs, version="4.0.1").stdout
    assert handover(dirs, "--execute", version="4.0.1").exit_code == 0
    assert "streams.version" not in replay_metadata_directory(dirs[0] / METADATA_DIRECTORY).highest_levels
    after = CliRunner().invoke(main, ["doctor", "dir", *map(str, dirs), "--kafka-version", "4.0.1"])
    assert after.exit_code == 0, after.output


def test_a_level_that_was_lowered_already_takes_a_snapshot_only(dirs: tuple[Path, Path]) -> None:
    levels = (FeatureLevelRecord("transaction.version", 1), FeatureLevelRecord("transaction.version", 0))
    append_metadata(dirs[0], *levels)
    before = CliRunner().invoke(main, ["doctor", "dir", *map(str, dirs), "--kafka-version", "3.9.1"])
    assert "problem earlier-level: transaction.version was 1 before it was lowered" in before.stdout
    assert handover(dirs, version="4.0.0").stdout.count("snapshot") == 0
    assert "a snapshot of the metadata" in handover(dirs, "--execute", version="3.9.1").stdout
    assert CliRunner().invoke(main, ["doctor", "dir", *map(str, dirs), "--kafka-version", "3.9.1"]).exit_code == 0


@pytest.mark.parametrize(("status", "name"), [(1, "Ongoing"), (2, "PrepareCommit"), (4, None)])
def test_transaction_version_is_not_lowered_while_a_transaction_is_unfinished(
    dirs: tuple[Path, Path], tmp_path: Path, status: int, name: str | None
) -> None:
    append_metadata(dirs[0], FeatureLevelRecord("transaction.version", 2))
    put_transaction_state(dirs[0], "billing", 77, status)
    before = snapshot_of(tmp_path)
    result = handover(dirs, version="3.9.1")
    assert snapshot_of(tmp_path) == before
    assert result.exit_code == (0 if name is None else 1)
    assert (f"while transactions are unfinished: billing ({name})\n" in result.stdout) == (name is not None)
    assert handover(dirs).exit_code == 0


def test_the_file_has_the_node_its_directories_and_one_replica(dirs: tuple[Path, Path], tmp_path: Path) -> None:
    result = handover(dirs, "--execute", "--listener", "10.1.2.3:19092", "--controller-listener", "10.1.2.3:19093")
    path = tmp_path / "data" / "kafka-server.properties"
    found = properties_of(path)
    assert found["node.id"] == "1"
    assert found["log.dirs"] == ",".join(map(str, dirs))
    assert found["listeners"] == "PLAINTEXT://10.1.2.3:19092,CONTROLLER://10.1.2.3:19093"
    assert found["controller.quorum.voters"] == "1@10.1.2.3:19093"
    assert found["offsets.topic.replication.factor"] == found["transaction.state.log.min.isr"] == "1"
    assert f"bin/kafka-server-start.sh {path}\n" in result.stdout
    assert "--bootstrap-server 10.1.2.3:19092 --describe" in result.stdout


def test_kafkas_properties_of_the_configuration_file_are_carried_over(dirs: tuple[Path, Path], tmp_path: Path) -> None:
    ours = tmp_path / "ours.properties"
    ours.write_text("num.partitions=7\nmetrics.listener=127.0.0.1:9404\nnode.id=5\nlog.retention.hours=3\n")
    output = tmp_path / "kafka.properties"
    assert handover(dirs, "--execute", "--config", str(ours), "--output", str(output)).exit_code == 0
    found = properties_of(output)
    assert (found["num.partitions"], found["log.retention.hours"], found["node.id"]) == ("7", "3", "1")
    assert "metrics.listener" not in found


@pytest.mark.parametrize(("version", "segment_bytes"), [("4.3.0", "1048576"), ("3.9.1", "65536")], ids=["4.x", "3.x"])
def test_properties_that_kafka_refuses_are_changed_and_reported(
    dirs: tuple[Path, Path], tmp_path: Path, version: str, segment_bytes: str
) -> None:
    ours = tmp_path / "ours.properties"
    listeners = "listeners=OUTSIDE://:9092\nadvertised.listeners=OUTSIDE://example.org:9092\n"
    ours.write_text(f"{listeners}log.segment.bytes=65536\ncontroller.quorum.bootstrap.servers=elsewhere:9\n")
    output = tmp_path / "kafka.properties"
    words = ["--execute", "--config", str(ours), "--output", str(output)]
    result = handover(dirs, *words, version=version)
    assert result.exit_code == 0
    found = properties_of(output)
    assert found["log.segment.bytes"] == segment_bytes
    assert "advertised.listeners" not in found
    assert "controller.quorum.bootstrap.servers" not in found
    assert ("\nlog.segment.bytes 65536 -> 1048576" in result.stdout) == version.startswith("4.")
    assert "advertised.listeners=OUTSIDE://example.org:9092 is left out" in result.stdout


def test_an_advertised_address_of_kafkas_listener_is_carried_over(dirs: tuple[Path, Path], tmp_path: Path) -> None:
    ours, output = tmp_path / "ours.properties", tmp_path / "kafka.properties"
    ours.write_text("advertised.listeners=PLAINTEXT://example.org:9092\n")
    assert handover(dirs, "--execute", "--config", str(ours), "--output", str(output)).exit_code == 0
    assert properties_of(output)["advertised.listeners"] == "PLAINTEXT://example.org:9092"


SECURE = """
listeners=SECURE://127.0.0.1:9094
listener.security.protocol.map=SECURE:SASL_PLAINTEXT
advertised.listeners=SECURE://kafka.example:9094
sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  user_bob="b";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin
"""


def test_the_security_of_the_configuration_is_carried_over(dirs: tuple[Path, Path], tmp_path: Path) -> None:
    ours, output = tmp_path / "server.properties", tmp_path / "kafka.properties"
    ours.write_text(SECURE)
    done = handover(dirs, "--execute", "--config", str(ours), "--output", str(output))
    assert done.exit_code == 0, done.output
    assert "User:ANONYMOUS is a super user" in done.output
    properties = properties_of(output)
    own = "INTERNAL://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert properties["listeners"] == f"SECURE://127.0.0.1:9094,{own}"
    assert properties["advertised.listeners"] == "SECURE://kafka.example:9094,INTERNAL://127.0.0.1:9092"
    expected = "SECURE:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
    assert properties["listener.security.protocol.map"] == expected
    assert properties["inter.broker.listener.name"] == "INTERNAL"
    assert properties["super.users"] == "User:admin;User:ANONYMOUS"
    assert properties["authorizer.class.name"].endswith("StandardAuthorizer")
    assert "ScramLoginModule" in properties["listener.name.secure.scram-sha-512.sasl.jaas.config"]
    assert 'user_bob="b"' in properties["listener.name.secure.plain.sasl.jaas.config"]


@pytest.mark.parametrize(
    ("line", "options", "sentence"),
    [
        ("listeners=SECURE://127.0.0.1:9092", (), "has the port of Kafka's own listeners"),
        ("", ("--listener", "0.0.0.0:9095"), "0.0.0.0:9095 is not on loopback"),
        (
            "listeners=SECURE://127.0.0.1:9094,PLAINTEXT://127.0.0.1:9095\n"
            "listener.security.protocol.map=SECURE:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
            (),
            "PLAINTEXT://127.0.0.1:9095 (PLAINTEXT) has clients without authentication",
        ),
    ],
)
def test_security_that_kafkas_own_listeners_would_open_is_refused(
    dirs: tuple[Path, Path], tmp_path: Path, line: str, options: tuple[str, ...], sentence: str
) -> None:
    ours = tmp_path / "server.properties"
    ours.write_text(f"{SECURE}{line}\n")
    refused = handover(dirs, "--config", str(ours), *options)
    assert refused.exit_code == 2
    assert sentence in refused.output


def test_an_existing_file_is_kept_unless_overwrite_is_given(dirs: tuple[Path, Path], tmp_path: Path) -> None:
    there = tmp_path / "data" / "kafka-server.properties"
    there.write_text("mine")
    refused = handover(dirs, "--execute")
    assert (refused.exit_code, there.read_text()) == (1, "mine")
    assert "already exists" in refused.stderr
    assert handover(dirs, "--execute", "--overwrite").exit_code == 0
    assert there.read_text() != "mine"


def test_a_level_unknown_to_this_kafka_exits_with_1(dirs: tuple[Path, Path], tmp_path: Path) -> None:
    append_metadata(dirs[0], FeatureLevelRecord("metadata.version", 25))
    before = snapshot_of(tmp_path)
    result = handover(dirs, "--execute", version="3.9.1")
    assert result.exit_code == 1
    assert "Apache Kafka 3.9.1 would not start: metadata.version is 25" in result.stdout
    assert snapshot_of(tmp_path) == before


def test_directories_of_a_running_broker_are_refused(dirs: tuple[Path, Path], tmp_path: Path) -> None:
    with start_daemon(tmp_path / "daemon", f"log.dirs={dirs[0]},{dirs[1]}") as daemon:
        refused = handover(dirs, "--execute")
        assert refused.exit_code == 1
        assert refused.stderr.endswith(f"is open in process {daemon.pid}: stop that broker first\n")
        assert not (tmp_path / "data" / "kafka-server.properties").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--listener", "nowhere"], "nowhere has no port"),
        (["--kafka-version", "2.8"], "'2.8' is not known; known are 3.7"),
    ],
)
def test_wrong_usage_is_reported_with_its_reason(dirs: tuple[Path, Path], options: list[str], said: str) -> None:
    result = handover(dirs, *options)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())

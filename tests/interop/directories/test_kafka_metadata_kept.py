"""Kafka's metadata survives while Barnabas serves the directory and writes snapshots, until Kafka gets it back.

Kafka creates topics, configs, ACLs, SCRAM users and quotas. Our broker refuses the directory, serves it with
--ignore-security, changes topics, and writes a snapshot after every change, trimming the log. Kafka then starts on the
directory and describes the same objects. With voters in the configuration and in the log (`--standalone`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas import Admin, AdminConfig
from barnabas.broker.metadata.directories.examine import examine
from barnabas.broker.metadata.directories.report import BARNABAS, LastWriter
from barnabas.commands.main import main
from tests.support.daemon import DaemonError, start_daemon
from tests.support.kafka.apache_kafka import Kafka, need_kafka
from tests.support.kafka.combinations import NEWEST, OLDEST, combinations

pytestmark = pytest.mark.timeout(300)  # many JVM starts in sequence, on machines of any speed
"""3.7.2, 3.8.1 and other versions in between are tested by hand."""
AUTHORIZER = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}
STANDALONE = {"controller_quorum_voters": "", "controller_quorum_bootstrap_servers": "127.0.0.1:9093"}
TRIM_ALWAYS = ("metadata.log.max.record.bytes.between.snapshots=1", "metadata.max.retention.bytes=0")


def data_directories(directory: Path, count: int) -> list[Path]:
    return [directory / "data", *(directory / f"data-{number}" for number in range(1, count))]


def first_offsets(metadata_log: Path) -> Sequence[int]:
    return sorted(int(path.stem) for path in metadata_log.glob("*.log"))


@pytest.mark.parametrize(
    ("quorum", "directories", "version"),
    combinations(
        [(*form, version) for form in (("static", 2), ("standalone", 1)) for version in (NEWEST, OLDEST)],
        [("static", 2, OLDEST), ("standalone", 1, NEWEST)],
    ),
)
async def test_kafka_finds_everything_again_behind_our_snapshots(
    tmp_path: Path, version: str, quorum: str, directories: int
) -> None:
    need_kafka(version)
    paths = data_directories(tmp_path / "barnabas", directories)
    settings = {**AUTHORIZER, **(STANDALONE if quorum == "standalone" else {})}
    kafka = Kafka(version, paths, tmp_path / "kafka", node_id=1, **settings)
    kafka.format(*(["--standalone"] if quorum == "standalone" else []))
    with kafka.running() as broker:
        kafka.java_program("ClusterState", broker.bootstrap, "make")
        before = kafka.java_program("ClusterState", broker.bootstrap, "describe").splitlines()
    assert {line.split()[0] for line in before} == {"topic", "config", "acl", "user", "quota", "feature"}

    log_dirs = f"log.dirs={','.join(map(str, paths))}"
    files = tree(paths)
    with pytest.raises(DaemonError, match="holds 1 ACL, and no authorizer enforces them"):
        start_daemon(tmp_path / "barnabas", log_dirs)
    assert tree(paths) == files
    report = examine(paths, ignore_security=True)
    assert (report.last_writer, report.stopping(BARNABAS), report.was_clean) == (LastWriter.KAFKA, (), True)
    with start_daemon(tmp_path / "barnabas", log_dirs, "ignore.security=true", *TRIM_ALWAYS) as daemon:
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            for number in range(5):
                await admin.create_topic(f"ours-{number}", partitions=2)
            for number in range(4):
                await admin.delete_topic(f"ours-{number}")
        assert daemon.stop() == 0
    metadata_log = paths[0] / "__cluster_metadata-0"
    assert first_offsets(metadata_log)[0] > 0
    verified = CliRunner().invoke(main, ["log", "verify", *map(str, paths)])
    assert verified.exit_code == 0, verified.stdout

    with kafka.running() as broker:
        after = kafka.java_program("ClusterState", broker.bootstrap, "describe").splitlines()
        dump = kafka.dump_log_segments("--cluster-metadata-decoder", "--files", str(newest_snapshot(metadata_log)))
        assert "RECOVERING" not in broker.log  # how Kafka describes leaders after an unclean stop
    assert "SnapshotFooter" in dump
    assert [line.split()[1] for line in after if line.startswith("topic ours-")] == ["ours-4"]
    assert [line for line in after if "ours-4" not in line] == before


def newest_snapshot(metadata_log: Path) -> Path:
    return max(metadata_log.glob("*.checkpoint"))


def tree(directories: Sequence[Path]) -> dict[Path, bytes]:
    """Return the content of every file except the lock file, which Kafka leaves in the directory."""
    files = itertools.chain.from_iterable(directory.rglob("*") for directory in directories)
    return {path: path.read_bytes() for path in files if path.is_file() and path.name != ".lock"}


@pytest.mark.parametrize("quorum", ["static", "standalone"])
async def test_a_directory_that_kafka_only_formatted_is_ours_first_and_kafkas_then(tmp_path: Path, quorum: str) -> None:
    version = NEWEST
    need_kafka(version)
    data = tmp_path / "barnabas" / "data"
    # so that Kafka answers requests for ACLs
    settings = {**AUTHORIZER, **(STANDALONE if quorum == "standalone" else {})}
    kafka = Kafka(version, data, tmp_path / "kafka", node_id=1, **settings)
    cluster_id = kafka.format(*(["--standalone"] if quorum == "standalone" else []))
    formatted = examine([data])
    assert (formatted.cluster_id, formatted.last_writer) == (cluster_id, LastWriter.NOBODY)
    assert formatted.stopping(BARNABAS) == ()
    with start_daemon(tmp_path / "barnabas", *TRIM_ALWAYS) as daemon:
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            await admin.create_topic("ours", partitions=2)
        assert daemon.stop() == 0
    with kafka.running() as broker:
        described = kafka.java_program("ClusterState", broker.bootstrap, "describe").splitlines()
    assert [line.split()[1::2] for line in described if line.startswith("topic ")] == [["ours", "2"]]
    assert examine([data]).last_writer is LastWriter.KAFKA

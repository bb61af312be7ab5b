"""`barnabas log compact` on a daemon's directory: removed records, the dry run's output, the daemon's next start."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas.broker.storage.directories.lock import DirectoryLock
from barnabas.broker.storage.files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from barnabas.commands.main import main
from barnabas.protocol.metadata.records import ConfigRecord
from barnabas.protocol.records.record import Record
from tests.support.compacted_topic import active_base, clean_offset, compacted, feed, read_all
from tests.support.daemon import Daemon, start_daemon
from tests.support.storage.metadata_store import opened
from tests.support.wire import WireClient

# The daemon's own cleaner must find nothing to do before the command.
NEVER_DIRTY = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "1.0", "segment_bytes": "16384"}
ROWS: list[tuple[bytes, bytes | None]] = [
    (b"key-%d" % (number * 7 % 40), None if number % 50 == 3 else b"value of %d" % number * 8) for number in range(1500)
]


class Written:
    """The directory of a daemon that was stopped, and its records."""

    def __init__(self, directory: Path, records: list[list[Record]]) -> None:
        self._directory = directory
        self.data = directory / "data"
        self.records = records
        self.log = ""
        """The log of the daemon that `read` started."""

    def copy_to(self, directory: Path) -> Written:
        """Copy the data, to be changed."""
        shutil.copytree(self.data, directory / "data")
        return Written(directory, self.records)

    def start(self) -> Daemon:
        """Start a daemon there that never looks for work, and leaves all of it to the command."""
        return start_daemon(self._directory, "log.cleaner.enable=false")

    def read(self) -> list[list[Record]]:
        """The records of `table` that a daemon serves, by partition."""
        with self.start() as daemon:
            with WireClient(daemon.host, daemon.port) as wire:
                records = [read_all(wire, "table", partition) for partition in range(2)]
            assert daemon.stop() == 0
        self.log = daemon.log
        return records


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Written:
    written = Written(tmp_path_factory.mktemp("written"), [])
    with written.start() as daemon:
        with WireClient(daemon.host, daemon.port) as wire:
            wire.create_topic("table", 2, **NEVER_DIRTY)
            wire.create_topic("plain", 1, segment_bytes="16384")
            for partition in range(2):
                feed(wire, "table", ROWS[partition:], partition)
            feed(wire, "plain", ROWS)
            written.records += [read_all(wire, "table", partition) for partition in range(2)]
        assert daemon.stop() == 0
    return written


@pytest.fixture
def written(template: Written, tmp_path: Path) -> Written:
    return template.copy_to(tmp_path / "written")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["log", "compact", *map(str, arguments)])


def objects(result: Result) -> list[dict[str, Any]]:
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def test_a_data_directory_is_compacted_and_a_daemon_continues_from_there(written: Written) -> None:
    marker = (written.data / CLEAN_SHUTDOWN_FILE).read_bytes()
    partitions = objects(run(written.data, "--json"))
    summary = partitions.pop()
    assert [(each["topic"], each["partition"]) for each in partitions] == [("table", 0), ("table", 1)]
    assert (summary["logs"], summary["failed"]) == (2, 0)
    assert (written.data / CLEAN_SHUTDOWN_FILE).read_bytes() == marker
    assert not [path for path in written.data.rglob("*") if path.suffix in (".deleted", ".cleaned", ".swap")]
    for partition, told in enumerate(partitions):
        clean_to = active_base(written.data, "table", partition)
        assert clean_offset(written.data, "table", partition) == told["clean_to"] == clean_to
        survivors = compacted(written.records[partition], clean_to)
        assert told["records_gone"] == len(written.records[partition]) - len(survivors)
        files = sum(path.stat().st_size for path in (written.data / f"table-{partition}").glob("*.log"))
        assert told["bytes_left"] == files
    assert written.read() == [
        compacted(records, clean_offset(written.data, "table", partition))
        for partition, records in enumerate(written.records)
    ]
    assert "recovering" not in written.log


def test_a_dry_run_prints_what_would_be_removed_and_changes_no_file(
    written: Written, caplog: pytest.LogCaptureFixture
) -> None:
    before = contents(written.data)
    told = objects(run(written.data, "--json", "--dry-run"))
    assert contents(written.data) == before
    assert caplog.messages == []  # a terminal would have them among the command's own lines
    done = objects(run(written.data, "--json"))
    same = ("records_gone", "bytes_gone", "bytes_left", "clean_to")
    for said, was in zip(told[:-1], done[:-1], strict=True):
        assert [said[name] for name in same] == [was[name] for name in same]
        partition = said["partition"]
        dirty = [record for record in written.records[partition] if record.offset < said["clean_to"]]
        kept = [record for record in compacted(written.records[partition], said["clean_to"]) if record in dirty]
        gone = sum(each.value is None for each in dirty) - sum(each.value is None for each in kept)
        assert said["tombstones_gone"] == gone > 0


def test_a_dry_run_beside_a_running_daemon_says_the_same(written: Written) -> None:
    stopped = objects(run(written.data, "--json", "--dry-run"))
    with written.start() as daemon:
        before = {path: content for path, content in contents(written.data).items() if path.suffix == ".log"}
        beside = objects(run(written.data, "--json", "--dry-run"))
        assert "its .lock is held" in run(written.data).stderr
        assert daemon.stop() == 0
    assert {path: content for path, content in contents(written.data).items() if path in before} == before
    assert [(each.get("clean_to"), each["records_gone"]) for each in beside] == [
        (each.get("clean_to"), each["records_gone"]) for each in stopped
    ]


def test_one_partition_alone_and_a_second_run_has_nothing_to_do(written: Written) -> None:
    result = run(written.data / "table-1")
    assert result.exit_code == 0, result.output
    assert "table-1: " in result.stdout
    assert " bytes went; " in result.stdout
    assert clean_offset(written.data, "table", 0) == -1
    again = run(written.data / "table-1")
    assert "table-1: nothing to compact" in again.stdout
    assert run(written.data / "table-1", "--dry-run").stdout.endswith("dry run: nothing was changed\n")


def test_a_topic_that_is_not_compacted_is_refused_alone_and_counted_in_a_directory(written: Written) -> None:
    refused = run(written.data / "plain-0")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "its topic is not compacted (cleanup.policy)" in refused.stderr
    assert "; 2 logs of topics that are not compacted" in run(written.data).stdout  # the metadata log is the other


LAG = "log.cleaner.min.compaction.lag.ms"


@pytest.mark.parametrize(
    ("resource", "stored", "kept"),
    [
        ("", {LAG: "soon"}, True),
        ("1", {LAG: "9", "log.cleaner.max.compaction.lag.ms": "5"}, True),
        ("", {LAG: str(1 << 60)}, False),
        ("1", {LAG: str(1 << 60)}, False),
    ],
)
def test_dynamic_values_of_the_broker_are_those_of_topics_without_their_own(
    written: Written, resource: str, stored: dict[str, str], kept: bool
) -> None:
    with opened(written.data) as node:
        for name, value in stored.items():
            node.store.commit([ConfigRecord(4, resource, name, value)])

    result = run(written.data)

    assert result.exit_code == 0
    assert "0 records and 0 bytes went" in result.stdout
    assert (
        "table is not compacted, a stored config is not understood: min.compaction.lag.ms=" in result.stderr
    ) is kept
    assert ("2 logs: 0 records" in result.stdout) is not kept


def test_a_policy_of_the_broker_holds_for_topics_without_their_own_and_for_no_other_log(
    written: Written, tmp_path: Path
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("log.cleanup.policy=compact\n")
    with_file = run(written.data, "--dry-run", "--config", file)
    with opened(written.data) as node:
        node.store.commit([ConfigRecord(4, "", "log.cleanup.policy", "compact")])
    assert run(written.data, "--dry-run").stdout == with_file.stdout
    shutil.copytree(written.data / "plain-0", written.data / "stray-0")
    summary = run(written.data, "--dry-run").stdout.splitlines()[-2]
    assert summary.startswith("3 logs: ")
    assert summary.endswith("; 2 logs of topics that are not compacted")  # the metadata log and the stray


def test_a_directory_without_the_metadata_log_needs_metadata_log_dir(written: Written, tmp_path: Path) -> None:
    name = "__cluster_metadata-0"
    other = tmp_path / "another of log.dirs"
    other.mkdir()
    (written.data / name).rename(other / name)
    refused = run(written.data)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert f"{written.data} has no metadata log" in refused.stderr
    found = objects(run(written.data, "--metadata-log-dir", other, "--json"))
    assert len(found) == 3
    assert clean_offset(written.data, "table", 0) > 0


def test_a_directory_in_use_is_refused(written: Written) -> None:
    lock = DirectoryLock(written.data)
    lock.acquire()
    try:
        refused = run(written.data)
    finally:
        lock.release()
    assert refused.exit_code == 1
    assert str(written.data) in refused.stderr


def test_a_damaged_log_is_left_as_it_is_while_the_others_are_compacted(written: Written) -> None:
    segment = sorted((written.data / "table-0").glob("*.log"))[1]
    content = bytearray(segment.read_bytes())
    content[200] ^= 0xFF
    segment.write_bytes(content)
    before = contents(written.data / "table-0")
    result = run(written.data)
    assert result.exit_code == 1
    assert "table-0 cannot be compacted, no data is lost: cannot be cleaned: " in result.stderr
    assert str(segment) in result.stderr
    assert "1 log could not be compacted" in result.stdout
    logs = {path: data for path, data in contents(written.data / "table-0").items() if path.suffix == ".log"}
    assert logs == {path: data for path, data in before.items() if path.suffix == ".log"}
    assert clean_offset(written.data, "table", 1) > 0
    assert clean_offset(written.data, "table", 0) == -1
    assert (written.data / CLEAN_SHUTDOWN_FILE).exists()


def test_a_small_map_needs_more_rounds_for_the_same_result(written: Written) -> None:
    with written.start() as daemon:
        with WireClient(daemon.host, daemon.port) as wire:
            wire.create_topic("wide", 1, **{**NEVER_DIRTY, "segment_bytes": "1048576"})
            feed(wire, "wide", [(b"%d" % number, b"") for number in range(100_000)], batch_records=5000)
            records = read_all(wire, "wide")
        assert daemon.stop() == 0
    told = objects(run(written.data / "wide-0", "--json", "--dedupe-buffer-size", 1 << 20))
    assert told[0]["rounds"] > 1
    assert told[0]["records_gone"] == 0
    with written.start() as daemon, WireClient(daemon.host, daemon.port) as wire:
        assert read_all(wire, "wide") == records


def test_after_a_crash_the_log_is_recovered_first_and_no_clean_marker_appears(written: Written) -> None:
    (written.data / CLEAN_SHUTDOWN_FILE).unlink()
    last = sorted((written.data / "table-0").glob("*.log"))[-1]
    with last.open("ab") as file:
        file.write(b"\0" * 40)
    assert run(written.data).exit_code == 0
    assert not (written.data / CLEAN_SHUTDOWN_FILE).exists()
    assert written.read()[0] == compacted(written.records[0], clean_offset(written.data, "table", 0))

"""`barnabas log ...` on files that a real daemon wrote: output, exit codes, and beside a running broker."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from barnabas.commands.main import main
from tests.support.daemon import REPOSITORY, Daemon, start_daemon

RECORDS = 300
CONFIGS = {"segment.bytes": "8192", "index.interval.bytes": "200"}
HEADERS = [("kind", b"test"), ("none", None)]


async def write(daemon: Daemon) -> None:
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        await admin.create_topic("orders", partitions=2, configs=CONFIGS)
        await admin.create_topic("empty", partitions=1)
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap, batch_size=300)) as producer:
        for number in range(RECORDS):
            key = None if number % 10 == 0 else b"k%d" % number
            value = b"\xff\x00" if number == 5 else b"line\nof %d " % number * 3
            await producer.send("orders", value, key, partition=number % 2, headers=HEADERS if number == 7 else [])


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Daemon:
    """A daemon that has written data and was stopped cleanly."""
    with start_daemon(tmp_path_factory.mktemp("daemon")) as daemon:
        asyncio.run(write(daemon))
        assert daemon.stop() == 0
    return daemon


@pytest.fixture
def data(stopped: Daemon, tmp_path: Path) -> Path:
    """A copy of its data directory, to be damaged."""
    return Path(shutil.copytree(stopped.data_directory, tmp_path / "data"))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["log", *map(str, arguments)])


def ok(*arguments: object) -> str:
    result = run(*arguments)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def log_files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


# -- dump


def test_dump_shows_every_batch_and_record_of_a_partition_as_json(data: Path) -> None:
    found = objects(ok("dump", "--data", "--json", data / "orders-1"))
    batches = [entry for entry in found if entry["type"] == "batch"]
    records = [entry for entry in found if entry["type"] == "record"]

    assert [record["offset"] for record in records] == list(range(RECORDS // 2))
    assert sum(batch["count"] for batch in batches) == len(records)
    assert all(batch["isvalid"] for batch in batches)
    assert len(log_files(data / "orders-1")) > 1
    for path in log_files(data / "orders-1"):
        of_file = [batch for batch in batches if batch["file"] == str(path)]
        assert sum(batch["size"] for batch in of_file) == path.stat().st_size
    binary, with_headers = records[2], records[3]
    assert (binary["key"], binary["payload"], binary["base64"]) == ("k5", "/wA=", ["payload"])
    assert with_headers["headerKeys"] == ["kind", "none"]
    assert with_headers["headers"] == [["kind", "test"], ["none", None]]
    assert records[4]["payload"] == "line\nof 9 " * 3
    kinds = {entry["type"] for entry in found}
    assert {"offsetIndexEntry", "timeIndexEntry", "leader-epoch-checkpoint", "partition.metadata"} <= kinds


def test_dump_writes_lines_that_stay_lines(data: Path) -> None:
    lines = ok("dump", "--data", log_files(data / "orders-1")[0]).splitlines()
    assert lines[1] == "Log starting offset: 0"
    assert lines[2].startswith("baseOffset: 0 lastOffset: ")
    assert "deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: " in lines[2]
    assert lines[3].startswith("| offset: 0 CreateTime: ")
    assert lines[3].endswith("headerKeys: [] key: k1 payload: " + r"line\nof 1 " * 3)
    assert all(line.startswith(("Dumping", "Log", "base", "| offset")) for line in lines)


def test_dump_without_records_shows_batches_only(data: Path) -> None:
    text = ok("dump", log_files(data / "orders-0")[0])
    assert "| offset" not in text
    assert "baseOffset" in text
    assert "payload" not in ok("dump", "--records", log_files(data / "orders-0")[0])


def test_dump_starts_at_an_offset_and_stops_at_its_limits(data: Path) -> None:
    arguments = ("dump", "--data", "--json", "--from-offset", 100, data / "orders-1")
    offsets = [entry["offset"] for entry in objects(ok(*arguments)) if entry["type"] == "record"]
    assert offsets == list(range(100, RECORDS // 2))
    few = objects(ok(*arguments, "--max-records", 5))
    assert [entry["offset"] for entry in few if entry["type"] == "record"] == offsets[:5]
    batches = [entry for entry in objects(ok(*arguments, "--max-batches", 2)) if entry["type"] == "batch"]
    assert len(batches) == 2
    assert batches[0]["baseOffset"] <= 100 <= batches[0]["lastOffset"]


def test_dump_shows_every_kind_of_small_file(data: Path) -> None:
    found = objects(ok("dump", "--json", data))
    checkpoint = [entry for entry in found if entry["file"].endswith("recovery-point-offset-checkpoint")]
    rows = [(entry["topic"], entry["partition"], entry["offset"]) for entry in checkpoint if "topic" in entry]
    assert ("orders", 1, RECORDS // 2) in rows
    assert any(entry["type"] == "meta.properties" and entry["node.id"] == 1 for entry in found)
    epochs = objects(ok("dump", "--json", data / "orders-0" / "leader-epoch-checkpoint"))
    assert [(entry["epoch"], entry["startOffset"]) for entry in epochs] == [(0, 0)]


def test_dump_decodes_the_metadata_log(data: Path) -> None:
    found = objects(ok("dump", "--cluster-metadata", "--json", data / "__cluster_metadata-0"))
    payloads = [entry["payload"] for entry in found if entry["type"] == "record" and "payload" in entry]
    topics = {entry["data"]["name"] for entry in payloads if entry["type"] == "TOPIC_RECORD"}
    assert topics == {"orders", "empty"}
    configs = {entry["data"]["name"]: entry["data"]["value"] for entry in payloads if entry["type"] == "CONFIG_RECORD"}
    assert configs == CONFIGS
    assert any("LeaderChange" in entry for entry in found)


def test_dump_shows_damage_and_goes_on(data: Path) -> None:
    path = log_files(data / "orders-0")[0]
    flip(path, 80)
    path.write_bytes(path.read_bytes() + bytes(30))
    text = ok("dump", path)
    assert text.count("isvalid: false") == 1
    assert text.count("isvalid: true") > 1
    assert text.endswith(f"Found 30 invalid bytes at the end of {path.name}\n")


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata"])
def test_dump_fails_with_a_sentence_where_a_file_cannot_be_decoded(data: Path, name: str) -> None:
    path = data / "orders-0" / name
    path.write_text("nonsense")
    result = run("dump", path, log_files(data / "orders-0")[0])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"barnabas: {path}: ")
    assert "baseOffset: 0 " in result.stdout


@pytest.mark.parametrize("name", ["missing.log", f"{9:020d}.log", "notes.txt", "."])
def test_dump_of_a_file_that_is_not_a_logs_is_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("")
    result = run("dump", tmp_path / name)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


def test_dump_ends_quietly_when_its_reader_goes_away(data: Path) -> None:
    command = [sys.executable, "-m", "barnabas", "log", "dump", "--data", *([str(data / "orders-0")] * 200)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"Dumping")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 128 + signal.SIGPIPE


# -- verify


def test_verify_has_no_finding_in_the_daemons_files(data: Path) -> None:
    assert ok("verify", data).endswith(" bytes: no finding\n")
    (summary,) = objects(ok("verify", "--json", data))
    assert summary == {
        "type": "summary",
        "logs": 4,
        "bytes": sum(path.stat().st_size for path in data.rglob("*.log")),
        "findings": 0,
    }


def test_verify_names_file_and_position_and_exits_with_1(data: Path) -> None:
    path = log_files(data / "orders-0")[0]
    flip(path, 80)
    result = run("verify", data)
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{path}: position 0: batch of offset 0: stored crc ")
    assert result.stdout.endswith(": 1 finding\n")
    finding, summary = objects(run("verify", "--json", data / "orders-0").stdout)
    assert (finding["file"], finding["position"], summary["findings"]) == (str(path), 0, 1)


def test_verify_checks_properties_and_the_replay_of_the_metadata(data: Path) -> None:
    (data / "meta.properties").write_text("version=9\n")
    assert f"{data / 'meta.properties'}: " in run("verify", data).stdout
    log_path = log_files(data / "__cluster_metadata-0")[0]
    flip(log_path, log_path.stat().st_size // 2)
    result = run("verify", data / "__cluster_metadata-0")
    assert result.exit_code == 1
    assert "the metadata cannot be replayed" in result.stdout


def test_verify_compares_the_partitions_on_disk_with_those_that_the_metadata_names(data: Path) -> None:
    stranger = data / "stranger-3"
    shutil.copytree(data / "orders-0", stranger)
    other_id = data / "orders-1" / "partition.metadata"
    other_id.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    for path in (data / "empty-0").iterdir():
        path.unlink()
    (data / "empty-0").rmdir()
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (data / name).unlink(missing_ok=True)
    lines = run("verify", data).stdout.splitlines()
    aside = "the metadata log does not have this partition: a start renames it to -stray"
    assert f"{stranger}: {aside}" in lines
    assert f"{data / 'orders-1'}: {aside}" in lines
    missing = "has empty-0, which is not on disk: a start creates it again, empty"
    assert f"{data / '__cluster_metadata-0'}: {missing}" in lines


@pytest.mark.parametrize("command", ["verify", "reindex"])
def test_a_missing_directory_is_wrong_usage(tmp_path: Path, command: str) -> None:
    assert run(command, tmp_path / "nowhere").exit_code == 2


@pytest.mark.parametrize("command", ["verify", "reindex"])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_progress_bar_on_the_terminal_hides_no_line(data: Path, command: str, is_terminal: bool) -> None:
    flip(log_files(data / "orders-1")[0], 80)
    expected = run(command, data).stdout.splitlines()
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "barnabas", "log", command, str(data)],
            cwd=REPOSITORY,
            stdout=theirs if is_terminal else subprocess.PIPE,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "40"},
        ) as process:
            os.close(theirs)
            shown = read_terminal(ours)
            output = shown if process.stdout is None else process.stdout.read().decode()
            assert process.wait(60) == 1
    finally:
        os.close(ours)
    assert "\x1b[" in shown  # the bar
    drawn = [line.rsplit("\r", 1)[-1] for line in output.replace("\r\n", "\n").split("\n")]
    assert set(expected) <= {re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in drawn}


def read_terminal(descriptor: int) -> str:
    """Read a pseudo terminal until its other side is closed."""
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # EIO: how Linux says that the other side is closed
            part = b""
        if not part:
            return b"".join(parts).decode()
        parts.append(part)


# -- reindex


def test_reindex_rebuilds_missing_indexes_with_the_topics_interval(data: Path) -> None:
    before = {path: path.read_bytes() for path in (data / "orders-1").glob("*index")}
    for path in before:
        path.unlink()
    assert run("verify", data).exit_code == 1
    text = ok("reindex", data / "orders-1")
    assert text.count("rebuilt") == len(log_files(data / "orders-1"))
    assert {path: path.read_bytes() for path in (data / "orders-1").glob("*index")} == before
    assert "no finding" in ok("verify", data)
    assert not (data / ".lock").exists()


def test_reindex_leaves_a_damaged_segment_alone_and_exits_with_1(data: Path) -> None:
    path = log_files(data / "orders-0")[0]
    flip(path, 80)
    result = run("reindex", data)
    assert result.exit_code == 1
    assert f"{path}: the batch at position 0 is damaged" in result.stderr
    assert str(data / "orders-1") in result.stdout  # the other logs are done all the same


def test_reindex_without_the_metadata_needs_the_interval(data: Path) -> None:
    log_path = log_files(data / "__cluster_metadata-0")[0]
    flip(log_path, log_path.stat().st_size // 2)
    result = run("reindex", data / "orders-0")
    assert result.exit_code == 1
    assert "--index-interval-bytes" in result.stderr
    assert "unchanged" in ok("reindex", data / "orders-0", "--index-interval-bytes", 200)


# -- truncate


async def test_a_truncated_log_is_served_by_the_daemon(stopped: Daemon, tmp_path: Path) -> None:
    shutil.copytree(stopped.data_directory, tmp_path / "data")
    said = ok("truncate", tmp_path / "data" / "orders-1", "--to-offset", 60, "--yes")
    end = int(said.rsplit(maxsplit=1)[1])
    assert 50 < end <= 60
    with start_daemon(tmp_path) as daemon:
        async with Consumer(ConsumerConfig(bootstrap=daemon.bootstrap)) as consumer:
            partitions = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
            assert await consumer.end_offsets(partitions) == dict(zip(partitions, (RECORDS // 2, end), strict=True))
        async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
            assert (await producer.send_and_wait("orders", b"next", partition=1)).offset == end
        assert daemon.stop() == 0
        assert "no finding" in ok("verify", daemon.data_directory)


def test_truncate_prints_what_it_removes_and_a_dry_run_changes_nothing(data: Path) -> None:
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    text = ok("truncate", data / "orders-0", "--to-offset", 10, "--dry-run")
    assert re.search(rf"^removes offsets (\d|10) to {RECORDS // 2 - 1}, ", text, re.MULTILINE)
    for path in log_files(data / "orders-0")[1:]:
        assert f"remove {path}\n" in text
    assert text.endswith("dry run: nothing was changed\n")
    assert {path: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before


def test_truncate_without_a_terminal_needs_yes(data: Path) -> None:
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    result = run("truncate", data / "orders-0", "--to-offset", 10)
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert {path: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_truncate_asks_on_a_terminal(data: Path, answer: str, code: int) -> None:
    before = {path: path.read_bytes() for path in log_files(data / "orders-0")}
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "barnabas", "log", "truncate", str(data / "orders-0"), "--to-offset", "10"]
    try:
        os.write(ours, f"{answer}\n".encode())
        done = subprocess.run(command, cwd=REPOSITORY, stdin=theirs, capture_output=True, text=True, timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == code, done
    assert "This cannot be undone. Truncate?" in done.stdout
    after = {path: path.read_bytes() for path in log_files(data / "orders-0")}
    assert (after == before) == (answer == "n")


def test_truncate_at_the_end_has_nothing_to_do(data: Path) -> None:
    assert "nothing to remove" in ok("truncate", data / "orders-0", "--to-offset", RECORDS)


def test_truncate_of_another_directory_is_one_sentence(data: Path) -> None:
    result = run("truncate", data, "--to-offset", 1, "--yes")
    assert result.exit_code == 1
    assert "is not a partition's directory" in result.stderr


# -- beside a running broker, and after a crash


async def test_a_running_brokers_directory_is_verified_and_dumped_but_never_changed(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        await write(daemon)
        partition = daemon.data_directory / "orders-0"
        result = run("verify", daemon.data_directory)
        assert result.exit_code == 0, result.output
        assert f"a broker (process {daemon.pid}) is using {daemon.data_directory}" in result.stderr
        assert "baseOffset" in ok("dump", partition)
        for command in (("reindex",), ("truncate", "--yes", "--to-offset", 1)):
            refused = run(*command, partition)
            assert refused.exit_code == 1
            assert "another broker is using this data directory" in refused.stderr

        daemon.kill()
        after_crash = run("verify", daemon.data_directory)
        assert (after_crash.exit_code, after_crash.stderr) == (0, ""), after_crash.output
        daemon.start()
        assert run("verify", daemon.data_directory).exit_code == 0
        assert daemon.stop() == 0
        assert ok("verify", daemon.data_directory)


@pytest.mark.parametrize("command", ["verify", "reindex"])
def test_a_directory_without_logs_that_is_not_a_brokers_is_refused(tmp_path: Path, command: str) -> None:
    result = run(command, tmp_path)
    assert result.exit_code != 0
    assert f"{tmp_path} has no log" in result.stderr


def test_a_brokers_directory_without_logs_has_no_finding(data: Path, tmp_path: Path) -> None:
    young = tmp_path / "young"
    young.mkdir()
    shutil.copy(data / "meta.properties", young)
    assert "0 logs" in ok("verify", young)

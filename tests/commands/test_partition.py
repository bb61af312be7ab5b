"""`barnabas partition ...` and `barnabas topic delete-records` against a real broker with two log directories."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon, start_daemon
from tests.support.forked_commands import run_forked
from tests.support.storage.bench import sized_batch
from tests.support.wire import WireClient


class Broker:
    """A daemon with directories a and b, and `barnabas` on it."""

    def __init__(self, root: Path) -> None:
        self.a, self.b = root / "a", root / "b"
        self.daemon: Daemon = start_daemon(root, f"log.dirs={self.a},{self.b}")

    def run(self, *arguments: str) -> tuple[int, str, str]:
        result = run_forked(*arguments, environ={**os.environ, "BARNABAS_BOOTSTRAP": self.daemon.bootstrap})
        return result.returncode, result.stdout.decode(), result.stderr.decode()

    def ok(self, *arguments: str) -> str:
        code, stdout, stderr = self.run(*arguments)
        assert (code, stderr) == (0, ""), stdout
        return stdout

    def refused(self, *arguments: str) -> str:
        code, stdout, stderr = self.run(*arguments)
        assert (code, stdout) == (1, ""), stderr
        return stderr

    def where(self, topic: str) -> Any:
        directories = json.loads(self.ok("partition", "dirs", topic, "--json"))
        return {each["log_dir"]: [entry["partition"] for entry in each["partitions"]] for each in directories}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    running = Broker(tmp_path_factory.mktemp("broker"))
    with running.daemon:
        yield running


def make_topic(broker: Broker, name: str, records: int = 5) -> Path:
    """A topic of one partition; the directory that it is not in."""
    with WireClient(broker.daemon.host, broker.daemon.port) as client:
        client.create_topic(name)
        for _ in range(records):
            client.produce(name, bytearray(sized_batch(200)))
    return broker.b if (broker.a / f"{name}-0").exists() else broker.a


def test_a_partition_is_moved_and_waited_for(broker: Broker) -> None:
    target = make_topic(broker, "moved")
    said = broker.ok("partition", "move", "moved", "0", str(target), "--wait")
    assert said.startswith("moved moved-0 from ")
    assert broker.where("moved")[str(target)] == [0]
    assert broker.ok("partition", "move", "moved", "0", str(target)) == f"moved-0 is in {target} already\n"


def test_the_table_of_directories_has_each_with_its_partitions(broker: Broker) -> None:
    make_topic(broker, "listed")
    lines = broker.ok("partition", "dirs", "listed").splitlines()
    assert lines[0].split() == ["log", "dir", "state", "partitions", "bytes", "usable", "bytes", "total", "bytes"]
    assert [line.split()[:2] for line in lines[1:3]] == [[str(broker.a), "online"], [str(broker.b), "online"]]
    assert lines[5].split()[:3] == ["listed", "0", "1000"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("move", "unknown", "0", "{a}"), "unknown-0"),
        (("move", "known", "7", "{a}"), "known-7"),
        (("move", "known", "0", "/nowhere"), "LOG_DIR_NOT_FOUND"),
        (("dirs", "unknown"), "unknown"),
    ],
)
def test_an_impossible_move_is_one_sentence(broker: Broker, arguments: tuple[str, ...], sentence: str) -> None:
    if "known" in arguments and not (broker.a / "known-0").exists() and not (broker.b / "known-0").exists():
        make_topic(broker, "known")
    said = broker.refused("partition", *(each.format(a=broker.a) for each in arguments))
    assert sentence in said
    assert len(said.splitlines()) == 1


def test_records_below_an_offset_are_deleted(broker: Broker) -> None:
    make_topic(broker, "shortened")
    assert broker.ok("topic", "delete-records", "shortened", "0", "3") == "shortened-0 now begins at offset 3\n"
    assert broker.ok("topic", "delete-records", "shortened", "0", "-1") == "shortened-0 now begins at offset 5\n"
    said = broker.refused("topic", "delete-records", "shortened", "0", "9")
    assert "OFFSET_OUT_OF_RANGE" in said
    assert len(said.splitlines()) == 1


def test_the_file_of_kafka_delete_records_is_read(broker: Broker, tmp_path: Path) -> None:
    make_topic(broker, "one")
    make_topic(broker, "two")
    file = tmp_path / "offsets.json"
    entries = [{"topic": "one", "partition": 0, "offset": 2}, {"topic": "two", "partition": 0, "offset": -1}]
    file.write_text(json.dumps({"partitions": entries, "version": 1}))
    found = json.loads(broker.ok("topic", "delete-records", "--offset-json-file", str(file), "--json"))
    assert [(each["topic"], each["low_watermark"], each["error"]) for each in found] == [
        ("one", 2, None),
        ("two", 5, None),
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "it is not JSON"),
        ("[]", 'it is not an object with an array "partitions"'),
        ('{"partitions": [], "version": 1}', "it names no partition"),
        ('{"partitions": [{}], "version": 2}', "its version is 2"),
        ('{"partitions": [1]}', "partitions[0] is not an object"),
        ('{"partitions": [{"partition": 0, "offset": 1}]}', 'partitions[0] has no "topic"'),
        ('{"partitions": [{"topic": "t", "partition": -1, "offset": 1}]}', 'partitions[0] has no "partition"'),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": true}]}', 'partitions[0] has no "offset"'),
        (
            json.dumps({"partitions": [{"topic": "t", "partition": 0, "offset": offset} for offset in (1, 2)]}),
            "partitions[1] names t-0 a second time",
        ),
    ],
)
def test_a_wrong_file_is_a_usage_error_with_the_reason(
    broker: Broker, tmp_path: Path, content: str, sentence: str
) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(content)
    code, _, stderr = broker.run("topic", "delete-records", "--offset-json-file", str(file))
    assert code == 2
    assert sentence in " ".join(stderr.split())


@pytest.mark.parametrize("arguments", [(), ("t",), ("t", "0"), ("t", "0", "-2"), ("t", "-1", "0"), ("t", "0", "x")])
def test_incomplete_arguments_for_delete_records_are_a_usage_error(broker: Broker, arguments: tuple[str, ...]) -> None:
    assert broker.run("topic", "delete-records", *arguments)[0] == 2

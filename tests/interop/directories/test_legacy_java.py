"""Message formats 0 and 1 against Kafka: its classes write them, its tools dump them, its brokers serve them.

Kafka's broker sends old messages as stored, and its client reads them (3.9.1 converts for consumers that are older than
the log, never for newer ones). Barnabas sends them as version 2. The client must return the same records.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas import Consumer, ConsumerConfig, ConsumerRecord
from barnabas.commands.main import main
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import start_daemon
from tests.support.kafka.apache_kafka import Kafka
from tests.support.storage.bench import LogBench, log_config
from tests.support.storage.legacy import GOLDEN, message_sets
from tests.support.storage.records import plain
from tests.support.wire import WireClient

VERSIONS = ("4.3.0", "3.9.1")
SETS = message_sets()
CONTENT = b"".join(each.data for each in SETS.values()) + plain(5, base_offset=30)
LOG_NAME = f"{0:020d}.log"


def test_java_still_writes_the_message_sets_that_our_tests_read(tmp_path: Path) -> None:
    kafka = Kafka(VERSIONS[0], tmp_path / "unused", tmp_path / "scratch")
    assert kafka.java_program("LegacyMessages", "write") == GOLDEN.read_text()


@pytest.mark.parametrize("version", VERSIONS)
def test_kafkas_tool_prints_old_messages_and_our_indexes_of_them_as_our_dump_does(version: str, tmp_path: Path) -> None:
    kafka = Kafka(version, tmp_path / "unused", tmp_path / "scratch")
    bench = LogBench(tmp_path)
    bench.log_path().write_bytes(CONTENT)
    bench.close(bench.open(log_config(index_interval_bytes=200)))
    assert len(bench.offset_entries()) > 3
    files = [path for path in sorted(bench.directory.iterdir()) if path.suffix in (".index", ".log", ".timeindex")]
    for options in ((), ("--deep-iteration",), ("--deep-iteration", "--print-data-log")):
        theirs = kafka.dump_log_segments(*options, "--files", ",".join(map(str, files)))
        if version.startswith("3."):
            theirs = re.sub(r"( crc: \d+)}", r"\1", theirs)  # Kafka 3.x prints an unmatched brace
        result = CliRunner().invoke(main, ["log", "dump", *options, *map(str, files)])
        assert result.stdout == theirs
    assert "isvalid: false" not in theirs


@pytest.mark.parametrize("version", VERSIONS)
async def test_kafka_and_we_serve_a_log_of_all_formats_alike(version: str, tmp_path: Path) -> None:
    kafka = Kafka(version, tmp_path / "kafka-data", tmp_path / "kafka")
    kafka.format()
    with kafka.running() as broker:
        kafka.tool(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", broker.bootstrap, "--create", "--topic", "old", "--partitions", "1"),
        )
    put_old_log(tmp_path / "kafka-data" / "old-0")
    with kafka.running() as broker:
        printed = kafka.java_program("ReadBack", broker.bootstrap, "old")
    expected = [line.split("\t") for line in printed.splitlines()]
    assert [int(fields[2]) for fields in expected] == list(range(35))

    daemon = start_daemon(tmp_path / "ours")
    with daemon:
        with WireClient(daemon.host, daemon.port) as wire:
            wire.create_topic("old")
        daemon.stop()
        put_old_log(daemon.data_directory / "old-0")
        daemon.restart()
        assert kafka.java_program("ReadBack", daemon.bootstrap, "old") == printed
        async with Consumer(ConsumerConfig(bootstrap=daemon.bootstrap, offset_reset="earliest")) as consumer:
            await consumer.assign([TopicPartition("old", 0)])
            got: list[ConsumerRecord] = []
            while len(got) < len(expected):
                got += await consumer.poll(timeout_ms=10_000)
        daemon.stop()
    for name in (LOG_NAME, f"{0:020d}.index", f"{0:020d}.timeindex", f"{35:020d}.snapshot"):
        theirs = (tmp_path / "kafka-data" / "old-0" / name).read_bytes()
        assert (daemon.data_directory / "old-0" / name).read_bytes() == theirs, name
    assert [(each.offset, each.timestamp, each.key, each.value) for each in got] == [
        (int(fields[2]), int(fields[3]), data(fields[5]), data(fields[6])) for fields in expected
    ]


def put_old_log(directory: Path) -> None:
    """Replace the partition's empty segment; the indexes are rebuilt at the next start."""
    for path in directory.glob("0*"):
        path.unlink()
    (directory / LOG_NAME).write_bytes(CONTENT)


def data(text: str) -> bytes | None:
    return None if text == "-" else base64.b64decode(text)

"""Transactions written by Kafka: committed, aborted, and open at a kill. Barnabas opens a copy of the directory.

Kafka recovers the same directory; its files must then equal ours.
"""

from __future__ import annotations

import asyncio
import base64
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from barnabas import Consumer, ConsumerConfig
from barnabas.commands.main import main
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import start_daemon
from tests.support.kafka.apache_kafka import Kafka

VERSION = "4.3.0"
TOPIC = "ledger"
ROUNDS = 12
COMPARED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
UNCOMMITTED, COMMITTED = "read_uncommitted", "read_committed"


class Crashed(NamedTuple):
    """A killed Kafka: its program, a copy of its directory, and the records that its consumers had read."""

    kafka: Kafka
    copy: Path
    read: dict[str, list[tuple[int, bytes]]]


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Crashed:
    root = tmp_path_factory.mktemp("transactions")
    kafka = Kafka(VERSION, root / "kafka-data", root / "kafka")
    kafka.format()
    broker = kafka.start()
    try:
        kafka.tool(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", broker.bootstrap, "--create", "--topic", TOPIC, "--partitions", "1"),
            *("--config", "internal.segment.bytes=4096", "--config", "index.interval.bytes=500"),
        )
        kafka.java_program("WriteTransactions", broker.bootstrap, TOPIC, str(ROUNDS))
        read = {
            UNCOMMITTED: read_back(kafka, broker.bootstrap),
            COMMITTED: read_back(kafka, broker.bootstrap, "--committed"),
        }
    finally:
        broker.kill()
    copy = root / "ours" / "data"
    shutil.copytree(kafka.log_dirs[0], copy)
    return Crashed(kafka, copy, read)


def read_back(kafka: Kafka, bootstrap: str, *options: str) -> list[tuple[int, bytes]]:
    lines = kafka.java_program("ReadBack", bootstrap, *options, TOPIC).splitlines()
    return [(int(fields[2]), base64.b64decode(fields[6])) for fields in (line.split("\t") for line in lines)]


async def consumed(bootstrap: str, isolation: str) -> list[tuple[int, bytes]]:
    """Return the records that our consumer reads up to the last stable offset."""
    partition = TopicPartition(TOPIC, 0)
    config = ConsumerConfig(bootstrap=bootstrap, isolation=isolation, offset_reset="earliest")
    got: list[tuple[int, bytes]] = []
    async with Consumer(config) as consumer:
        await consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        async with asyncio.timeout(60):
            while await consumer.position(partition) < end:
                got += [(record.offset, record.value or b"") for record in await consumer.poll(timeout_ms=500)]
    return got


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix in COMPARED}


async def test_what_kafka_wrote_in_transactions_is_recovered_and_served_as_kafka_does(crashed: Crashed) -> None:
    assert len(crashed.read[UNCOMMITTED]) > len(crashed.read[COMMITTED]) > 20
    with start_daemon(crashed.copy.parent) as daemon:
        for isolation, expected in crashed.read.items():
            assert await consumed(daemon.bootstrap, isolation) == expected
            options = ["--committed"] if isolation == COMMITTED else []
            assert read_back(crashed.kafka, daemon.bootstrap, *options) == expected
        assert daemon.stop() == 0
    with crashed.kafka.running() as broker:
        assert read_back(crashed.kafka, broker.bootstrap, "--committed") == crashed.read[COMMITTED]
    ours, theirs = (contents(root / f"{TOPIC}-0") for root in (crashed.copy, crashed.kafka.log_dirs[0]))
    assert sum(name.endswith(".txnindex") for name in ours) > 1
    assert sorted(ours) == sorted(theirs)
    for name, content in theirs.items():
        assert ours[name] == content, name

    files = sorted(str(path) for path in (crashed.copy / f"{TOPIC}-0").iterdir() if path.suffix in COMPARED)
    printed = crashed.kafka.dump_log_segments("--deep-iteration", "--print-data-log", "--files", ",".join(files))
    result = CliRunner().invoke(main, ["log", "dump", "--data", *files])
    assert result.stdout == printed
    assert "endTxnMarker: ABORT coordinatorEpoch: 0" in printed
    assert "lastStableOffset: " in printed
    verified = CliRunner().invoke(main, ["log", "verify", str(crashed.copy)])
    assert verified.exit_code == 0, verified.output


async def test_what_we_abort_is_aborted_for_kafka_and_no_longer_holds_its_consumers(
    crashed: Crashed, tmp_path: Path
) -> None:
    data = shutil.copytree(crashed.copy, tmp_path / "data")
    aborted = CliRunner().invoke(main, ["log", "abort-transaction", "--yes", str(data)])
    assert aborted.exit_code == 0, aborted.output
    assert [line.split()[3] for line in aborted.stdout.splitlines()] == ["first", "second"]
    assert "(Ongoing)" in aborted.stdout
    with start_daemon(tmp_path) as daemon:
        read = await consumed(daemon.bootstrap, COMMITTED)
        assert daemon.stop() == 0
    assert read[: len(crashed.read[COMMITTED])] == crashed.read[COMMITTED]
    assert [value[:5] for _, value in read[len(crashed.read[COMMITTED]) :]] == [b"plain"]
    kafka = Kafka(VERSION, data, tmp_path / "kafka")
    with kafka.running() as broker:
        assert read_back(kafka, broker.bootstrap, "--committed") == read

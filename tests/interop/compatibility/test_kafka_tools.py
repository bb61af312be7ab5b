"""Kafka's unchanged command-line tools for records, offsets and log directories, on Barnabas.

With BARNABAS_COMPATIBILITY_BROKER=kafka:4.3.0 they run against Apache Kafka, which checks the tests (see test_clients).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.protocol.records import Record, iter_batches, read_records
from tests.interop.clients.features import TIMESTAMP, plain
from tests.interop.clients.target import Target
from tests.interop.conftest import Tool


def test_what_the_console_producer_writes_the_console_consumer_reads(target: Target, tool: Tool) -> None:
    target.create_topic("console", 2)
    lines = [f"key-{number}:value {number}" for number in range(50)]
    server = ("--bootstrap-server", target.bootstrap, "--topic", "console")

    tool(
        "ConsoleProducer",
        *server,
        *("--compression-codec", "zstd"),
        *("--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
        stdin="".join(f"{line}\n" for line in lines),
    )
    stored = [
        f"{(record.key or b'').decode()}:{(record.value or b'').decode()}"
        for partition in range(2)
        for record in _records(target, "console", partition)
    ]

    assert sorted(stored) == sorted(lines)


def test_the_console_consumer_reads_one_partition_from_an_offset(target: Target, tool: Tool) -> None:
    target.create_topic("consumed", 1)
    target.fill("consumed", plain(20))

    printed = tool(
        "consumer.ConsoleConsumer",
        *("--bootstrap-server", target.bootstrap, "--topic", "consumed"),
        *("--partition", "0", "--offset", "5", "--max-messages", "15", "--timeout-ms", "30000"),
        *("--formatter-property", "print.key=true", "--formatter-property", "print.timestamp=true"),
    )

    expected = [
        f"CreateTime:{record.timestamp}\t{(record.key or b'').decode()}\t{(record.value or b'').decode()}"
        for record in plain(20)[5:]
    ]
    assert printed.splitlines() == expected


@pytest.mark.parametrize(
    ("time", "offset"), [("earliest", 0), ("latest", 10), (str(TIMESTAMP + 2_500), 3), ("max-timestamp", 9)]
)
def test_get_offsets_finds_ends_and_times(target: Target, tool: Tool, time: str, offset: int) -> None:
    topic = f"offsets-{time}"
    target.create_topic(topic, 1)
    target.fill(topic, plain(10))

    printed = tool("GetOffsetShell", "--bootstrap-server", target.bootstrap, "--topic", topic, "--time", time)

    assert printed.split() == [f"{topic}:0:{offset}"]


def test_delete_records_moves_the_start_of_the_log(target: Target, tool: Tool, tmp_path: Path) -> None:
    target.create_topic("deleted", 1)
    target.fill("deleted", plain(10))
    wanted = {"version": 1, "partitions": [{"topic": "deleted", "partition": 0, "offset": 6}]}
    (tmp_path / "offsets.json").write_text(json.dumps(wanted))

    printed = tool(
        "DeleteRecordsCommand",
        *("--bootstrap-server", target.bootstrap, "--offset-json-file", str(tmp_path / "offsets.json")),
    )

    assert "low_watermark: 6" in printed
    assert target.earliest("deleted") == 6


def test_log_dirs_describes_every_partition(target: Target, tool: Tool) -> None:
    target.create_topic("described", 2)
    target.fill("described", plain(10))

    printed = tool("LogDirsCommand", "--bootstrap-server", target.bootstrap, "--describe", "--topic-list", "described")

    (broker,) = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))["brokers"]
    (directory,) = broker["logDirs"]
    sizes = {each["partition"]: each["size"] for each in directory["partitions"]}
    on_disk = (target.log_directory / "described-0" / f"{0:020d}.log").stat().st_size
    assert (directory["error"], sizes) == (None, {"described-0": on_disk, "described-1": 0})


def test_the_producer_performance_test_runs_to_its_end(target: Target, tool: Tool) -> None:
    target.create_topic("performance", 1)

    printed = tool(
        "ProducerPerformance",
        *("--topic", "performance", "--num-records", "50000", "--record-size", "1000", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={target.bootstrap}"),
    )

    assert "50000 records sent" in printed
    assert len(_records(target, "performance", 0)) == 50_000


def test_broker_api_versions_lists_no_api_that_it_does_not_know(target: Target, tool: Tool) -> None:
    printed = tool("BrokerApiVersionsCommand", "--bootstrap-server", target.bootstrap)

    assert f"{target.bootstrap} (id: 1 rack: null" in printed
    assert "UNKNOWN" not in printed


def _records(target: Target, topic: str, partition: int) -> list[Record]:
    data = (target.log_directory / f"{topic}-{partition}" / f"{0:020d}.log").read_bytes()
    return [record for batch in iter_batches(data) for record in read_records(batch)]

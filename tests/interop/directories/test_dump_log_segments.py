"""Kafka's DumpLogSegments reads our segments, reports no error, and prints the same lines as our dump.

The output is compared as a whole: offsets, positions, sizes, CRCs, timestamps, keys and payloads of every codec, index
entries, producers. Only the order of fields in JSON payloads may differ.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from barnabas import Admin, AdminConfig, Producer, ProducerConfig
from barnabas.commands.main import main
from barnabas.protocol.compression import CODECS
from barnabas.protocol.records import RecordBatchBuilder
from tests.support.daemon import start_daemon
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.combinations import NEWEST, OLDEST, combinations
from tests.support.kafka.definitions import definition, load, versions
from tests.support.storage.bench import START_MS, LogBench, append, batch, log_config

VERSIONS = (NEWEST, OLDEST)
_NOT_CONSECUTIVE = re.compile(r"Non-consecutive offsets in (\S+)\n  -1 is followed by (\d+)\n")
"""Kafka 4.3's tool reports this for every segment with a base offset above 0: it expects 0 as the first offset."""


_LOGGING = ("SLF4J", "WARNING", "log4j:")


@pytest.fixture(scope="module", params=VERSIONS)
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kafka:
    scratch = tmp_path_factory.mktemp("kafka")
    return Kafka(request.param, scratch / "unused", scratch)


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a partition of several small segments: all codecs, epochs, nulls, headers, with and without producers."""
    bench = LogBench(tmp_path_factory.mktemp("ours"))
    log = bench.open(log_config(segment_bytes=8192, index_interval_bytes=300))
    for number in range(200):
        records = [
            (
                START_MS + number * 7 + i % 2,
                None if i == 1 else b"key-%d" % i,
                None if i == 2 else b"value %d " % number * i,
            )
            for i in range(4)
        ]
        producer = {} if number % 4 == 3 else {"producer_id": 1000 * (number % 4), "producer_epoch": 3}
        if producer:
            producer["base_sequence"] = number // 4 * 4
        append(log, batch(*records, codec=CODECS[number % 5], **producer), leader_epoch=number // 60)
    assert log.segment_count > 3
    bench.close(log)
    return bench.directory


def ours(*arguments: object) -> str:
    result = CliRunner().invoke(main, ["log", "dump", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout


def theirs(kafka: Kafka, files: Sequence[Path], *arguments: str) -> str:
    return kafka.dump_log_segments(*arguments, "--files", ",".join(map(str, files)))


def files_of(directory: Path, *suffixes: str) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.suffix in suffixes)


def test_it_prints_our_segments_as_our_dump_does(kafka: Kafka, partition: Path) -> None:
    logs = files_of(partition, ".log")
    printed = theirs(kafka, logs, "--deep-iteration", "--print-data-log")
    assert printed == ours("--data", *logs)
    assert "isvalid: false" not in printed
    assert "invalid bytes" not in printed
    assert printed.count("| offset: ") == 800
    for codec in CODECS:
        assert f"compresscodec: {codec.config_name} " in printed


def test_it_prints_our_records_without_their_data_as_our_dump_does(kafka: Kafka, partition: Path) -> None:
    logs = files_of(partition, ".log")
    assert theirs(kafka, logs, "--deep-iteration") == ours("--deep-iteration", *logs)
    assert theirs(kafka, logs) == ours(*logs)


def test_it_prints_our_indexes_and_snapshots_as_our_dump_does(kafka: Kafka, partition: Path) -> None:
    files = files_of(partition, ".index", ".timeindex", ".snapshot")
    printed = theirs(kafka, files)
    assert printed == ours(*files)
    assert printed.count("producerId: 2000 ") == len(files_of(partition, ".snapshot"))


@pytest.mark.parametrize("check", ["--index-sanity-check", "--verify-index-only"])
def test_it_finds_no_fault_in_our_indexes(kafka: Kafka, partition: Path, check: str) -> None:
    files = files_of(partition, ".index", ".timeindex")
    printed = theirs(kafka, files, check)
    expected = [f"Dumping {path}" for path in files]
    if check == "--index-sanity-check":
        expected = [line for path in files for line in (f"Dumping {path}", f"{path} passed sanity check.")]
    assert printed.splitlines() == expected


def test_it_complains_of_nothing(kafka: Kafka, partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DumpLogSegments reports errors on standard error, with exit code 0."""
    said = complaints(kafka, partition, monkeypatch)
    assert _NOT_CONSECUTIVE.sub("", said) == ""


def test_a_fault_would_be_seen(kafka: Kafka, partition: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in partition.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    index = files_of(tmp_path, ".index")[0]
    content = bytearray(index.read_bytes())
    content[3] += 1  # the first entry's offset
    index.write_bytes(content)
    assert "Mismatches in" in complaints(kafka, tmp_path, monkeypatch)


def complaints(kafka: Kafka, directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Dump everything in the directory; return standard error, which the `kafka` fixture's own methods drop."""
    errors: list[str] = []
    run = subprocess.run

    def keep(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        done: subprocess.CompletedProcess[str] = run(*arguments, **options)  # type: ignore[call-overload]
        errors.append(done.stderr)
        return done

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", keep)
        theirs(kafka, files_of(directory, ".log", ".index", ".timeindex", ".snapshot"), "--deep-iteration")
    lines = "".join(errors).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(_LOGGING))


async def test_it_prints_the_daemons_files_and_metadata_log_as_our_dump_does(kafka: Kafka, tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            await admin.create_topic("orders", partitions=2, configs={"retention.ms": "-1", "segment.bytes": "1048576"})
            await admin.create_topic("gone", partitions=1)
            await admin.delete_topic("gone")
        for codec, idempotent in itertools.product(CODECS, (True, False)):
            config = ProducerConfig(
                bootstrap=daemon.bootstrap, compression=codec.config_name, enable_idempotence=idempotent
            )
            async with Producer(config) as producer:
                for number in range(50):
                    headers = [("h", b"1"), ("ü", None)] if number % 5 == 0 else []
                    await producer.send("orders", b"v%d" % number, b"k", partition=number % 2, headers=headers)
        daemon.restart()
        assert daemon.stop() == 0
        suffixes = (".log", ".index", ".timeindex", ".snapshot")
        files = [
            path for number in range(2) for path in files_of(daemon.data_directory / f"orders-{number}", *suffixes)
        ]
        assert theirs(kafka, files, "--deep-iteration", "--print-data-log") == ours("--data", *files)

        metadata = files_of(daemon.data_directory / "__cluster_metadata-0", ".log")
        metadata.append(daemon.data_directory / "bootstrap.checkpoint")
        decoded = theirs(kafka, metadata, "--cluster-metadata-decoder").splitlines()
        here = ours("--cluster-metadata", *metadata).splitlines()
        if kafka.version.startswith("3."):  # Kafka 3.x does not print the content of a leader change
            here = [re.sub(r"LeaderChange: .*", "controlType: LEADER_CHANGE(2)", line) for line in here]
        assert list(map(comparable, here)) == list(map(comparable, decoded))
        types = {entry["type"] for _, entry in map(comparable, decoded) if isinstance(entry, dict) and "type" in entry}
        expected = {"TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "REMOVE_TOPIC_RECORD", "PRODUCER_IDS_RECORD"}
        assert expected <= types


OPTIONS = {"transaction": "--transaction-log-decoder", "share": "--share-group-state-decoder"}


@pytest.mark.parametrize("option", ["--offsets-decoder", *OPTIONS.values()])
def test_it_prints_the_records_of_coordinators_as_our_dump_does(option: str, tmp_path: Path) -> None:
    kafka = Kafka(NEWEST, tmp_path / "unused", tmp_path)
    rng = random.Random(option)
    builder = RecordBatchBuilder(max_bytes=1 << 24)
    count = 0
    for name, message in load(NEWEST).items():
        if message["type"] != "coordinator-key" or option != option_of(name):
            continue
        number, values = message["apiKey"].to_bytes(2, "big"), name.removesuffix("Key") + "Value"
        for version in versions(load(NEWEST)[values]["validVersions"]):
            for _ in range(5):
                key, value = (definition(NEWEST, each, used) for each, used in ((name, 0), (values, version)))
                drawn = value.draw(rng)
                if values == "GroupMetadataValue":
                    with_subscriptions(drawn, rng)
                data = version.to_bytes(2, "big") + value.encode(drawn)
                assert builder.append(0, number + key.encode(key.draw(rng)), data if count % 7 else None)
                count += 1
    assert builder.append(0, b"\0\x63unknown", b"value")
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(builder.build())
    printed, here = theirs(kafka, [path], option).splitlines(), ours(option, path).splitlines()
    assert list(map(key_and_payload, here)) == list(map(key_and_payload, printed))
    assert sum(" payload: " in line for line in printed) == count


def with_subscriptions(group: dict[str, Any], rng: random.Random) -> None:
    """Let the members be consumers, of whom some send what can be decoded."""
    group["protocolType"] = "consumer"
    for member in group["members"]:
        for field, name in (("subscription", "Subscription"), ("assignment", "Assignment")):
            protocol = definition(NEWEST, f"ConsumerProtocol{name}", version := rng.randrange(4))
            if rng.random() < 0.7:
                member[field] = version.to_bytes(2, "big") + protocol.encode(protocol.draw(rng))


def option_of(name: str) -> str:
    """The decoder of a coordinator's key."""
    return next((option for topic, option in OPTIONS.items() if is_of(name, topic)), "--offsets-decoder")


def is_of(name: str, topic: str) -> bool:
    return name.startswith("TransactionLog" if topic == "transaction" else ("ShareSnapshot", "ShareUpdate"))


def key_and_payload(line: str) -> list[object]:
    """Split a line into its text, and the JSON of key and payload."""
    text, _, rest = line.partition(" key: {")
    parts, payload, value = rest.partition("} payload: ")
    if not payload:
        return [line]
    return [text, json.loads("{" + parts + "}"), json.loads(value) if value.startswith("{") else value]


def comparable(line: str) -> tuple[str, object]:
    """Split a line into its text and its JSON, in which the order of fields does not matter."""
    text, brace, rest = line.partition("{")
    return text, json.loads(brace + rest) if brace else None


@pytest.mark.parametrize("version", combinations(VERSIONS, [NEWEST]))
def test_our_verify_finds_nothing_in_what_kafka_wrote_running_stopped_or_killed(version: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    kafka = Kafka(version, data, tmp_path / "kafka")
    kafka.format()
    small = "segment.bytes" if version.startswith("3.") else "internal.segment.bytes"
    with kafka.running() as broker:
        kafka.tool(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", broker.bootstrap, "--create", "--topic", "orders", "--partitions", "2"),
            *("--config", f"{small}=4096", "--config", "index.interval.bytes=200"),
        )
        for number, codec in enumerate(CODECS):
            arguments = (broker.bootstrap, "orders", "2", "300", codec.config_name, codec.config_name)
            kafka.java_program("WriteRecords", *arguments, "true" if number % 2 else "false")
        assert verified(data) == []
    assert len(files_of(data / "orders-0", ".log")) > 1
    assert verified(data) == []
    files = files_of(data / "orders-0", ".log", ".index", ".timeindex", ".snapshot")
    assert theirs(kafka, files, "--deep-iteration", "--print-data-log") == ours("--data", *files)

    broker = kafka.start()
    kafka.java_program("WriteRecords", broker.bootstrap, "orders", "2", "300", "again", "zstd", "true")
    broker.kill()
    assert verified(data) == []


def verified(data: Path) -> list[str]:
    """Return the findings of `log verify` in a directory of Kafka's."""
    result = CliRunner().invoke(main, ["log", "verify", str(data)])
    *findings, summary = result.stdout.splitlines()
    assert "bytes: " in summary, result.output
    assert result.exit_code == (1 if findings else 0)
    return findings

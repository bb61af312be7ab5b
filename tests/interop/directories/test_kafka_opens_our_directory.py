"""Apache Kafka starts on a directory of `barnabas serve`, serves every record, appends, and Barnabas takes it back.

Real programs and clients in both directions: our daemon and client on one side, Kafka's broker, Java client and tools
on the other. Compared are topics, partitions, offsets, timestamps, keys, values, headers, topic ids and configs.
"""

from __future__ import annotations

import base64
import itertools
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from barnabas.commands.main import main
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.apache_kafka import Broker, Kafka, initial_features, need_kafka
from tests.support.kafka.combinations import NEWEST, OLDEST, combinations
from tests.support.kafka.two_brokers import stored_batches

pytestmark = pytest.mark.timeout(300)  # many JVM starts in sequence, on machines of any speed
EVERY = [(stop, version) for stop in ("clean", "killed") for version in (NEWEST, OLDEST)]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS_PER_PRODUCER = 40
FIRST_TIMESTAMP = 1_700_000_000_000
PARTITIONS = {"orders": 3, "small": 1, "one.record": 1, "empty": 2}
ALL_PARTITIONS = [(topic, number) for topic, count in PARTITIONS.items() for number in range(count)]
KAFKA_RECORDS = 30
SMALL_SEGMENTS_RECORDS = 500


class Seen(NamedTuple):
    """A record as returned by any of the clients."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def configs_of(version: str) -> dict[str, dict[str, str]]:
    """Return topic configs. Kafka 3.9 accepts small segments; 4.x only by an internal config name."""
    small = "segment.bytes" if version.startswith("3.") else "internal.segment.bytes"
    return {
        "orders": {"retention.ms": "-1", "segment.bytes": "1048576"},
        "small": {"retention.ms": "-1", small: "16384", "max.message.bytes": "16000"},
    }


async def write_with_barnabas(daemon: Daemon, version: str) -> dict[str, str]:
    """Create the topics and their records; return the topics' ids."""
    configs = configs_of(version)
    ids = {}
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        for topic, partitions in PARTITIONS.items():
            await admin.create_topic(topic, partitions=partitions, configs=configs.get(topic, {}))
            ids[topic] = (await admin.describe_topic(topic)).topic_id
    for codec, idempotent in itertools.product(CODECS, (True, False)):
        config = ProducerConfig(
            bootstrap=daemon.bootstrap, compression=codec, batch_size=4096, enable_idempotence=idempotent
        )
        async with Producer(config) as producer:
            for number in range(RECORDS_PER_PRODUCER):
                key = None if number % 10 == 0 else f"{codec}-{number % 7}".encode()
                value = None if number % 15 == 1 else bytes([number]) * (number * 11 % 900)
                headers = [("codec", codec.encode()), ("none", None)] if number % 3 == 0 else []
                for topic in ("orders", "small"):
                    await producer.send(
                        topic,
                        value,
                        key,
                        headers=headers,
                        timestamp_ms=FIRST_TIMESTAMP + number,
                        partition=number % PARTITIONS[topic],
                    )
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
        await producer.send_and_wait("one.record", b"\x00\xff", b"")
    return ids


async def read_with_barnabas(daemon: Daemon) -> list[Seen]:
    """Read every record from our daemon."""
    partitions = [TopicPartition(topic, number) for topic, count in PARTITIONS.items() for number in range(count)]
    found: list[Seen] = []
    async with Consumer(ConsumerConfig(bootstrap=daemon.bootstrap)) as consumer:
        await consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        count = sum(ends.values())  # no record was deleted and no offset is skipped
        while len(found) < count:
            polled = await consumer.poll()
            assert polled, f"only {len(found)} of {count} records came"
            found += [Seen(*record[:4], *record[5:]) for record in polled]
    return sorted(found, key=lambda seen: seen[:3])


def read_with_kafka(kafka: Kafka, broker: Broker) -> list[Seen]:
    """Read every record from Kafka, by its own client."""
    found = []
    for line in kafka.java_program("ReadBack", broker.bootstrap).splitlines():
        topic, partition, offset, timestamp, _, key, value, headers = line.split("\t")
        pairs = (header.partition("=") for header in headers.split(",") if header)
        found.append(
            Seen(
                topic,
                int(partition),
                int(offset),
                int(timestamp),
                decoded(key),
                decoded(value),
                tuple((name, decoded(text)) for name, _, text in pairs),
            )
        )
    return sorted(found, key=lambda seen: seen[:3])


def decoded(text: str) -> bytes | None:
    return None if text == "-" else base64.b64decode(text)


def described_by_kafka(kafka: Kafka, broker: Broker) -> dict[str, tuple[str, dict[str, str]]]:
    """Return ids and configs by topic, as printed by Kafka's topic command."""
    text = kafka.tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", broker.bootstrap, "--describe")
    found = {}
    for topic, topic_id, configs in re.findall(r"^Topic: (\S+)\tTopicId: (\S+)\t.*Configs: *(\S*)$", text, re.M):
        found[topic] = (topic_id, dict(pair.split("=") for pair in configs.split(",") if pair))
    return found


def kafka_records(prefix: str, start_offsets: dict[int, int]) -> Iterable[Seen]:
    """Return the records that WriteRecords adds to `orders`."""
    offsets = dict(start_offsets)
    for number in range(KAFKA_RECORDS):
        partition = number % PARTITIONS["orders"]
        value = f"{prefix}-{number}".ljust(100, ".").encode()
        yield Seen("orders", partition, offsets[partition], FIRST_TIMESTAMP + number, f"k{number}".encode(), value, ())
        offsets[partition] += 1


def ends_of_orders(records: list[Seen]) -> dict[int, int]:
    return {
        number: sum(record.topic == "orders" and record.partition == number for record in records)
        for number in range(PARTITIONS["orders"])
    }


@pytest.mark.parametrize(("stop", "version"), combinations(EVERY, [("killed", NEWEST), ("clean", OLDEST)]))
async def test_kafka_serves_every_record_of_our_directory_and_hands_it_back(
    tmp_path: Path, version: str, stop: str
) -> None:
    need_kafka(version)
    with start_daemon(tmp_path / "barnabas", initial_features(version)) as daemon:
        ids = await write_with_barnabas(daemon, version)
        ours = await read_with_barnabas(daemon)
        daemon.kill() if stop == "killed" else daemon.stop()
        assert len(ours) == 2 * 2 * len(CODECS) * RECORDS_PER_PRODUCER + 1

        kafka = Kafka(version, daemon.data_directory, tmp_path / "kafka")
        metadata_log = daemon.data_directory / "__cluster_metadata-0" / f"{0:020d}.log"
        dump = kafka.dump_log_segments("--cluster-metadata-decoder", "--files", str(metadata_log))
        assert '"type":"PARTITION_RECORD"' in dump
        assert "isvalid: false" not in dump

        with kafka.running() as broker:
            assert read_with_kafka(kafka, broker) == ours
            described = described_by_kafka(kafka, broker)
            assert {topic: described[topic][0] for topic in PARTITIONS} == ids
            for topic, configs in configs_of(version).items():
                assert configs.items() <= described[topic][1].items()
            arguments = (broker.bootstrap, "orders", str(PARTITIONS["orders"]), str(KAFKA_RECORDS))
            kafka.java_program("WriteRecords", *arguments, "by-kafka", "zstd", "true")
        with_kafkas = sorted([*ours, *kafka_records("by-kafka", ends_of_orders(ours))], key=lambda seen: seen[:3])

        daemon.start()
        assert await read_with_barnabas(daemon) == with_kafkas
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            described_here = {topic: (await admin.describe_topic(topic)).topic_id for topic in PARTITIONS}
            await admin.create_topic("made.between", partitions=1)
        assert described_here == ids
        async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
            last = await producer.send_and_wait("small", b"last", b"last", timestamp_ms=FIRST_TIMESTAMP)
        assert daemon.stop() == 0

        with kafka.running() as broker:
            again = read_with_kafka(kafka, broker)
            added = Seen("small", 0, last.offset, FIRST_TIMESTAMP, b"last", b"last", ())
            assert again == sorted([*with_kafkas, added], key=lambda seen: seen[:3])
            assert "made.between" in described_by_kafka(kafka, broker)


@pytest.mark.parametrize(("stop", "version"), combinations(EVERY, [("clean", NEWEST), ("killed", OLDEST)]))
async def test_we_serve_every_record_of_a_directory_that_kafka_left(tmp_path: Path, version: str, stop: str) -> None:
    data = tmp_path / "kafka-data"
    kafka = Kafka(version, data, tmp_path / "kafka", node_id=3)
    kafka.format()
    broker = kafka.start()
    try:
        for topic, partitions in PARTITIONS.items():
            configs = {"retention.ms": "-1", **configs_of(version).get(topic, {})}
            kafka.tool(
                "org.apache.kafka.tools.TopicCommand",
                *("--bootstrap-server", broker.bootstrap, "--create", "--topic", topic),
                *("--partitions", str(partitions)),
                *(word for name, value in configs.items() for word in ("--config", f"{name}={value}")),
            )
        for codec, idempotent in itertools.product(CODECS, ("true", "false")):
            arguments = ("orders", str(PARTITIONS["orders"]), str(KAFKA_RECORDS), codec, codec, idempotent)
            kafka.java_program("WriteRecords", broker.bootstrap, *arguments)
        arguments = ("small", "1", str(SMALL_SEGMENTS_RECORDS), "small", "none", "true")
        kafka.java_program("WriteRecords", broker.bootstrap, *arguments)
        theirs = read_with_kafka(kafka, broker)
        served = {name: stored_batches("127.0.0.1", broker.port, *name) for name in ALL_PARTITIONS}
        described = described_by_kafka(kafka, broker)
        broker.stop() if stop == "clean" else broker.kill()
    except BaseException:
        broker.kill()
        raise
    assert len(theirs) == 2 * len(CODECS) * KAFKA_RECORDS + SMALL_SEGMENTS_RECORDS
    assert len(list((data / "small-0").glob("*.log"))) > 1

    shutil.copytree(data, tmp_path / "barnabas" / "data")
    with start_daemon(tmp_path / "barnabas") as daemon:
        assert await read_with_barnabas(daemon) == theirs
        assert {name: stored_batches(daemon.host, daemon.port, *name) for name in ALL_PARTITIONS} == served
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            ids = {topic: (await admin.describe_topic(topic)).topic_id for topic in PARTITIONS}
            assert ids == {topic: described[topic][0] for topic in PARTITIONS}
            for topic, configs in configs_of(version).items():
                found = await admin.describe_configs(topic=topic, names=list(configs))
                assert {entry.name: entry.value for entry in found} == configs
        assert daemon.stop() == 0
    assert "node.id=3" in (daemon.data_directory / "meta.properties").read_text()
    verified = CliRunner().invoke(main, ["log", "verify", str(daemon.data_directory)])
    assert (verified.exit_code, verified.stdout.splitlines()[1:]) == (0, []), verified.stdout

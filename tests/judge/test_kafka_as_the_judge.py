"""Short comparison of our files with Apache Kafka's; `make interop` covers every codec, version and crash.

Runs with `make test` if Java and Maven are installed; takes 15 s, mostly JVM starts. A Kafka broker writes one
directory and our broker another from the same requests. The two are compared, each broker opens the other's directory,
and Kafka's own tool reads ours.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from barnabas.broker.storage.files.checkpoint_file import RECOVERY_POINT_CHECKPOINT
from barnabas.commands.main import main
from barnabas.protocol.records import Codec
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka import jars as kafka_jars
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.two_brokers import (
    Batch,
    Topic,
    create_topics,
    differences,
    feed,
    files_of,
    stored_batches,
    without_topic_ids,
)
from tests.support.storage.records import plain

pytestmark = pytest.mark.timeout(kafka_jars.FETCH_TIMEOUT_S + 120)  # the first run may have to fetch Kafka's jars
VERSION = "4.3.0"
TOPICS = {
    "orders": Topic(2, {"internal.segment.bytes": "4096", "index.interval.bytes": "200"}),
    "payments": Topic(1, {}),
    "clicks": Topic(1, {}),
}
BATCHES = [
    Batch("orders", number % 2, bytes(plain(1 + number % 9, list(Codec)[number % len(Codec)], **producer)))
    for number in range(80)
    for producer in [{} if number % 3 else {"producer_id": number, "producer_epoch": 0, "base_sequence": 0}]
]


class Judged(NamedTuple):
    """Directories of both brokers after the same requests, and the records that Kafka served."""

    kafka: Kafka
    theirs: Path
    ours: Path
    served: list[bytes]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    directory = tmp_path_factory.mktemp("judge")
    kafka = Kafka(VERSION, directory / "kafka" / "data", directory / "kafka")
    kafka.format()
    with kafka.running() as broker:
        served = fed("127.0.0.1", broker.port)
    with start_daemon(directory / "barnabas") as daemon:
        assert fed(daemon.host, daemon.port) == served
        assert daemon.stop() == 0
    return Judged(kafka, directory / "kafka" / "data", daemon.data_directory, served)


def fed(host: str, port: int) -> list[bytes]:
    """Create the topic and produce its batches; return the records served from it."""
    with KafkaWire(host, port) as wire:
        create_topics(wire, TOPICS)
        feed(wire, BATCHES)
    return all_batches(host, port)


def all_batches(host: str, port: int) -> list[bytes]:
    return [stored_batches(host, port, "orders", partition) for partition in range(2)]


def test_both_left_the_same_bytes(judged: Judged) -> None:
    ours, theirs = (without_topic_ids(files_of(data, TOPICS)) for data in (judged.ours, judged.theirs))
    assert differences(ours, theirs) == []
    recovery_points = [(data / RECOVERY_POINT_CHECKPOINT).read_text() for data in (judged.ours, judged.theirs)]
    assert recovery_points[0] == recovery_points[1]
    assert sum(name.endswith(".log") for name in ours) > 2


def test_kafkas_tool_prints_our_files_as_our_dump_does(judged: Judged) -> None:
    suffixes = (".log", ".index", ".timeindex", ".snapshot")
    files = sorted(path for path in (judged.ours / "orders-0").iterdir() if path.suffix in suffixes)
    printed = judged.kafka.dump_log_segments(
        "--deep-iteration", "--print-data-log", "--files", ",".join(map(str, files))
    )
    assert CliRunner().invoke(main, ["log", "dump", "--data", *map(str, files)]).stdout == printed


def test_we_serve_what_kafka_left(judged: Judged, tmp_path: Path) -> None:
    shutil.copytree(judged.theirs, tmp_path / "data")
    with Daemon(tmp_path) as daemon:
        assert all_batches(daemon.host, daemon.port) == judged.served
        assert daemon.stop() == 0
    assert CliRunner().invoke(main, ["log", "verify", str(tmp_path / "data")]).exit_code == 0


def test_kafka_serves_what_we_left(judged: Judged, tmp_path: Path) -> None:
    shutil.copytree(judged.ours, tmp_path / "data")
    with Kafka(VERSION, tmp_path / "data", tmp_path / "kafka").running() as broker:
        assert all_batches("127.0.0.1", broker.port) == judged.served

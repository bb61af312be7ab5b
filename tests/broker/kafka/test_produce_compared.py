"""Random Produce traffic has the same answers, files and metrics with compiled kernels as without them.

Two brokers get the same bytes in the same order, on one reused connection each, in bursts of pipelined requests.
"""

from __future__ import annotations

import random
import struct
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.protocol.messages.security.resources import Operation, ResourceType
from tests.support.authorization.entities import request
from tests.support.authorization.table import STANDARD_AUTHORIZER
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.produce_traffic import ProduceTraffic, Sent
from tests.support.wire import WireClient

REQUESTS = 500
PARTITIONS = 3
TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "small": {"max_message_bytes": "300"},
    "compacted": {"cleanup_policy": "compact"},
    "gzipped": {"compression_type": "gzip"},
    "rolling": {"segment_bytes": "4000", "index_interval_bytes": "500"},
    "flushed": {"flush_messages": "1"},
    "insync": {"min_insync_replicas": "2"},
    "denied": {},
}
DENIED = "denied"
NOT_CREATED = ("nowhere", "tö.pic", "__consumer_offsets", "__transaction_state")
SENTINEL = struct.pack(">ihhih", 10, 18, 0, 2**31 - 1, -1)
"""An ApiVersions request, whose response ends a burst."""
FAMILIES = (
    "barnabas_requests_total",
    "barnabas_request_errors_total",
    "barnabas_request_duration_seconds_count",
    "barnabas_topic",
    "barnabas_connections_closed",
)


class Broker(NamedTuple):
    """A daemon with the topics, and their ids in it."""

    daemon: Daemon
    ids: Mapping[str, bytes]

    def exchange(self, kafka: KafkaWire, burst: list[Sent]) -> tuple[list[bytes], bool]:
        """Send requests in one piece. Returns the responses, with names for ids, and whether the connection is open."""
        answers: list[bytes] = []
        try:
            kafka.socket.sendall(b"".join([sent.frame(self.ids) for sent in burst]) + SENTINEL)
            while True:
                found = kafka.receive_frame()
                if found[:4] == SENTINEL[8:12]:
                    return answers, True
                for topic, topic_id in self.ids.items():
                    found = found.replace(topic_id, topic.encode())
                answers.append(found)
        except ConnectionError:
            return answers, False

    def connect(self) -> KafkaWire:
        return KafkaWire(self.daemon.host, self.daemon.port)

    def metrics(self) -> list[str]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.daemon.metrics_port}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        return [line for line in lines if line.startswith(FAMILIES) and "size_bytes" not in line]


def deny(kafka: KafkaWire) -> None:
    """Allow the topic `denied` to another user only."""
    acl = {
        "resource_type": int(ResourceType.TOPIC),
        "resource_name": DENIED,
        "resource_pattern_type": 3,
        "principal": "User:other",
        "host": "*",
        "operation": int(Operation.WRITE),
        "permission_type": 3,
    }
    kafka.send(request("create_acls", 2, {"creations": [acl]}))
    assert kafka.receive("create_acls", 2).results[0].error_code.value == 0


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[tuple[Broker, Broker]]:
    with ExitStack() as stack:

        def start(kernel: str) -> Broker:
            (directory := tmp_path / kernel).mkdir()
            daemon = stack.enter_context(
                start_daemon(
                    directory,
                    f"authorizer.class.name={STANDARD_AUTHORIZER}",
                    "allow.everyone.if.no.acl.found=true",
                    "auto.create.topics.enable=false",
                    environ={"BARNABAS_KERNEL": kernel},
                )
            )
            with WireClient(daemon.host, daemon.port) as wire, KafkaWire(daemon.host, daemon.port) as kafka:
                for topic, configs in TOPICS.items():
                    wire.create_topic(topic, PARTITIONS, **configs)
                ids = {topic: kafka.topic_id(topic).bytes for topic in TOPICS}
                deny(kafka)
            return Broker(daemon, ids)

        yield start("compiled"), start("python")


def files(broker: Broker) -> dict[str, bytes]:
    """Return the files of the partitions that are written by producers."""
    data = broker.daemon.data_directory
    return {
        str(path.relative_to(data)): path.read_bytes()
        for path in sorted(data.rglob("*"))
        if path.suffix in (".log", ".index", ".timeindex", ".snapshot")
        and path.parent.name.rpartition("-")[0] in TOPICS
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_random_traffic_has_the_same_results_with_and_without_kernels(
    brokers: tuple[Broker, Broker], seed: int
) -> None:
    compiled, python = brokers
    chance = random.Random(seed)
    traffic = ProduceTraffic(seed, [*TOPICS, *NOT_CREATED], PARTITIONS).requests(REQUESTS)
    connections = [compiled.connect(), python.connect()]
    closed = 0
    while burst := list(islice(traffic, chance.choice([1, 1, 2, 8]))):
        (found, is_open), (expected, stays_open) = (
            compiled.exchange(connections[0], burst),
            python.exchange(connections[1], burst),
        )
        assert is_open == stays_open, burst
        if not is_open:
            # The close may overtake responses on their way to the client.
            common = min(len(found), len(expected))
            found, expected = found[:common], expected[:common]
            closed += 1
            for connection in connections:
                connection.socket.close()
            connections = [compiled.connect(), python.connect()]
        assert found == expected, burst
    for connection in connections:
        connection.socket.close()
    assert closed > 10
    assert compiled.metrics() == python.metrics()
    for broker in brokers:
        broker.daemon.stop()
    written = files(compiled)
    assert written.keys() == files(python).keys()
    assert [name for name, content in files(python).items() if written[name] != content] == []
    assert sum(map(len, written.values())) > 50_000

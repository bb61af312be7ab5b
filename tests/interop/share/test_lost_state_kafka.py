"""Share groups whose state is lost, and the topic of the states, at Kafka 4.3 and at our daemon.

Both answer UNKNOWN_SERVER_ERROR and log why, also after a restart, until an administrator says where the group begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.builder import RecordBatchBuilder
from tests.support.daemon import start_daemon
from tests.support.eventually import eventually
from tests.support.groups.share_groups import NOT_READY, create, heartbeat, joined
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.own_topics import NAMES, by_metadata, described
from tests.support.share.share_wire import ShareMember, states

pytestmark = pytest.mark.timeout(300)
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
COUNTS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "4",
}
KAFKA, OURS = "kafka", "ours"


class Node:
    """One of the two brokers, and how it is started again."""

    def __init__(self, name: str, directory: Path, kafka: Kafka) -> None:
        self.name = name
        self._directory = directory
        self._kafka = kafka
        self._stack = ExitStack()

    def start(self) -> None:
        self._stack = ExitStack()
        if self.name == KAFKA:
            broker = self._stack.enter_context(self._kafka.running())
            self.port, self._log_path = broker.port, broker.log_path
        else:
            settings = [f"{name}={value}" for name, value in COUNTS.items()]
            daemon = self._stack.enter_context(start_daemon(self._directory, *settings))
            self.port, self._log_path = daemon.port, self._directory / "daemon.log"
        self.wire = self._stack.enter_context(KafkaWire("127.0.0.1", self.port))

    def stop(self) -> None:
        self._stack.close()

    @property
    def log(self) -> str:
        return self._log_path.read_text(errors="replace")

    def fetch_code(self, topic_id: bytes, member: str) -> int:
        """Return the error with which the partition is answered, in a session of its own."""
        session = ShareMember(self.wire, "g", member, topic_id)
        answer = session.fetch(0, max_wait_ms=100)
        session.epoch = -1
        session.acknowledge({})
        return int(answer.responses[0].partitions[0].error_code)

    def tool(self, *arguments: str) -> str:
        return self._kafka.tool(SHARE_GROUPS, "--bootstrap-server", f"127.0.0.1:{self.port}", *arguments)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Kafka:
    directory = tmp_path_factory.mktemp("kafka")
    kafka = Kafka("4.3.0", directory / "data", directory / "scratch")
    kafka.settings |= {**COUNTS, "group.share.assignment.interval.ms": "0"}
    kafka.format()
    return kafka


@pytest.fixture(scope="module")
def nodes(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Node]]:
    nodes = [Node(name, tmp_path_factory.mktemp(name), kafka) for name in (KAFKA, OURS)]
    with ExitStack() as running:
        for node in nodes:
            node.start()
            running.callback(node.stop)
        yield nodes


def test_the_same_metadata_requests_make_the_same_topics(nodes: list[Node]) -> None:
    made = [_made_by_metadata(node.wire) for node in nodes]
    assert made[0] == made[1]
    assert [made[0][name][0] for name in NAMES] == [2, 3, 4]


def _made_by_metadata(wire: KafkaWire) -> dict[str, Any]:
    for name in NAMES:
        by_metadata(wire, name)
    return {name: eventually(partial(described, wire, name), what=name) for name in NAMES}


def test_a_group_without_its_state_fails_until_its_offsets_are_reset_and_javas_consumer_goes_on(
    kafka: Kafka, nodes: list[Node]
) -> None:
    builder = RecordBatchBuilder(max_bytes=1 << 20)
    for value in (b"a", b"b", b"c"):
        builder.append(1_700_000_000_000, None, value)
    records = bytes(builder.build())
    for node in nodes:
        create(node.wire, "t")
        topic_id = node.wire.topic_id("t").bytes
        for name in NAMES:
            by_metadata(node.wire, name)

        def is_joined(node: Node = node) -> bool | None:
            answer = heartbeat(node.wire, "g", "m", 0, "t")
            if answer.error_code in NOT_READY:
                return None
            assert answer.error_code == ErrorCode.NONE, answer
            return True

        eventually(is_joined, what="the coordinator serves the group")
        joined(node.wire, "g", "m", "t")
        assert node.wire.produce(9, "t", records).error_code == ErrorCode.NONE
        (row,) = states(node.wire, "delete_share_group_state", 0, "g", topic_id, {"partition": 0})
        assert row.error_code == ErrorCode.NONE
        heartbeat(node.wire, "g", "m", -1)
        node.stop()
        node.start()

        eventually(is_joined, what="the group is loaded")

        def has_failed(node: Node = node, topic_id: bytes = topic_id) -> bool | None:
            code = node.fetch_code(topic_id, "m")
            return True if code == ErrorCode.UNKNOWN_SERVER_ERROR else None  # else the states are being loaded

        eventually(has_failed, what="a fetch fails")
        assert [node.fetch_code(topic_id, "m") for _ in range(3)] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 3
        said = {KAFKA: "Read on uninitialized share partition", OURS: "the share partition has no state"}
        assert said[node.name] in node.log

        heartbeat(node.wire, "g", "m", -1)
        node.tool("--reset-offsets", "--group", "g", "--topic", "t", "--to-earliest", "--execute")
        read = kafka.java_program("ShareConsumers", f"127.0.0.1:{node.port}", "t", "g", "implicit", "3")
        assert sorted(read.splitlines()) == ["a 1 accept", "b 1 accept", "c 1 accept"]

"""Hundreds of produce requests, some slightly wrong, get the same answers on a reused connection as on new ones.

Two brokers get the same bytes in the same order. One of them gets each request on a new connection, which has no cached
request shape; so any difference is a bug of the shorter path.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import pytest

from barnabas.protocol.primitives import Writer
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire, framed, produce_request, request_frame
from tests.support.wire import WireClient

REQUESTS = 400
FLEXIBLE_FROM = 9
NO_TAGS_THRICE = bytes(3)
TOPICS = {
    "plain": {},
    "small": {"max_message_bytes": "300"},
    "compacted": {"cleanup_policy": "compact"},
    "gzipped": {"compression_type": "gzip"},
    "flushed": {"flush_messages": "1"},
    "insync": {"min_insync_replicas": "2"},
}
UNUSUAL = ("tags", "long size", "behind", "cut", "header tags")


class Asked(NamedTuple):
    """A request before encoding: the two brokers have different ids for one topic."""

    version: int
    topic: str
    partition: int
    acks: int
    client_id: str | None
    correlation_id: int
    records: bytes
    unusual: str | None

    def frame(self, topic_id: UUID) -> bytes:
        request = produce_request(
            self.version, self.topic, self.records, topic_id, partition=self.partition, acks=self.acks
        )
        frame = request_frame(request, self.correlation_id, self.client_id)[4:]
        size = Writer().unsigned_varint(len(self.records) + 1).to_bytes()
        tail = size + self.records + NO_TAGS_THRICE
        is_flexible = self.version >= FLEXIBLE_FROM and frame.endswith(tail)
        if self.unusual == "behind":
            frame += b"???"
        elif self.unusual == "cut":
            frame = frame[:-2]
        elif self.unusual == "tags" and is_flexible:
            frame = frame[:-1] + b"\x01\x07\x01?"
        elif self.unusual == "long size" and is_flexible:
            frame = frame[: -len(tail)] + size[:-1] + bytes([size[-1] | 0x80, 0]) + tail[len(size) :]
        elif self.unusual == "header tags" and is_flexible:
            end = 10 + len(self.client_id or "")
            frame = frame[:end] + b"\x01\x05\x01?" + frame[end + 1 :]
        return framed(frame)


class Broker(NamedTuple):
    """A daemon with the topics, and their ids in it."""

    daemon: Daemon
    ids: dict[str, UUID]

    def connect(self) -> KafkaWire:
        return KafkaWire(self.daemon.host, self.daemon.port)

    def answer(self, kafka: KafkaWire, asked: Asked) -> bytes | None:
        """The response without the broker's topic ids; None if the connection is closed instead."""
        kafka.socket.sendall(asked.frame(self.ids.get(asked.topic, UUID(int=7))))
        try:
            found = kafka.receive_frame()
        except ConnectionError:
            return None
        for topic, topic_id in self.ids.items():
            found = found.replace(topic_id.bytes, topic.encode())
        return found


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker]]:
    with ExitStack() as stack:

        def start(directory: Path) -> Broker:
            daemon = stack.enter_context(start_daemon(directory))
            with WireClient(daemon.host, daemon.port) as wire, KafkaWire(daemon.host, daemon.port) as kafka:
                for topic, configs in TOPICS.items():
                    wire.create_topic(topic, 2, **configs)
                return Broker(daemon, {topic: kafka.topic_id(topic) for topic in TOPICS})

        yield start(tmp_path_factory.mktemp("used")), start(tmp_path_factory.mktemp("fresh"))


def requests(chance: random.Random, batch: Batch) -> Iterator[Asked]:
    """Requests that each resemble the previous one."""
    version, topic, partition, acks = 9, "plain", 0, 1
    client_id: str | None = "one"
    for _ in range(REQUESTS):
        if chance.random() < 0.2:
            version = chance.choice([3, 7, 9, 13])
        if chance.random() < 0.2:
            topic = chance.choice([*TOPICS, "nowhere", "__consumer_offsets"])
        if chance.random() < 0.1:
            partition, acks = chance.choice([0, 0, 1, 2, -1]), chance.choice([1, 1, -1, 5])
        if chance.random() < 0.1:
            client_id = chance.choice(["one", "__admin_client", None])
        records = batch(chance.randbytes(chance.choice([0, 5, 60, 200, 400])), key=chance.choice([b"k", b"k", None]))
        if chance.random() < 0.1:
            records[chance.randrange(17, len(records))] ^= 1 << chance.randrange(8)
        elif chance.random() < 0.1:
            del records[chance.randrange(len(records)) :]
        unusual = chance.choice(UNUSUAL) if chance.random() < 0.1 else None
        correlation_id = chance.randrange(-(2**31), 2**31)
        yield Asked(version, topic, partition, acks, client_id, correlation_id, bytes(records), unusual)


def stored(broker: Broker) -> list[bytes]:
    with WireClient(broker.daemon.host, broker.daemon.port) as wire:
        parts = [wire.fetch(topic, 0, number).records for topic in TOPICS for number in range(2)]
    return [b"" if records is None else bytes(records.data) for records in parts]  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_connection_that_is_used_on_is_answered_as_new_ones_are_and_stores_the_same(
    brokers: tuple[Broker, Broker], batch: Batch, seed: int
) -> None:
    used, fresh = brokers
    lengths = set()
    kafka = used.connect()
    for asked in requests(random.Random(seed), batch):
        with fresh.connect() as new:
            expected = fresh.answer(new, asked)
        found = used.answer(kafka, asked)
        assert found == expected, asked
        lengths.add(found and len(found))
        if found is None:
            kafka.socket.close()
            kafka = used.connect()
    kafka.socket.close()
    assert len(lengths) > 10
    assert None in lengths
    assert stored(used) == stored(fresh)

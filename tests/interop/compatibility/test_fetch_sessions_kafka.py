"""Fetch sessions beside Apache Kafka: the bytes of the responses to the same requests, and Kafka's consumer.

The requests of the comparison are random, from a seed. Session ids are random and topic ids differ, so both are masked
in the bytes; everything else, records included, is equal. Both brokers have an authorizer, which allows what no ACL
denies.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.records import Codec, RecordBatchBuilder
from tests.support.authorization.table import STANDARD_AUTHORIZER
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually
from tests.support.free_ports import free_port
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.fetch_sessions import Place, SessionAnswer, SessionFetcher
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.kafka.two_brokers import Batch, Topic, create_topics, delete_records, feed
from tests.support.metrics import metric

VERSIONS = [7, 11, 12, 13, 17, 18]
TOPICS = {"one": 1, "five": 5, "three": 3}
STEPS = 150
LONGER_THAN_THE_TEST_MS = 600_000
FLEXIBLE_FROM = 12
TOPIC_IDS_FROM = 13
OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_LEADER_OR_FOLLOWER = 6
TOPIC_AUTHORIZATION_FAILED = 29
UNKNOWN_LEADER_EPOCH = 75
UNKNOWN_TOPIC_ID = 100
INCONSISTENT_TOPIC_ID = 103


class RecordingWire(KafkaWire):
    """A connection that keeps the last response."""

    frame = b""

    def receive_frame(self) -> bytes:
        """Read and keep the next response."""
        self.frame = super().receive_frame()
        return self.frame


@dataclass
class Side:
    """One of the two brokers, with the session under test."""

    host: str
    port: int
    wire: RecordingWire = field(init=False)
    admin: KafkaWire = field(init=False)
    fetcher: SessionFetcher = field(init=False)

    def __post_init__(self) -> None:
        self.wire = RecordingWire(self.host, self.port)
        self.admin = KafkaWire(self.host, self.port)

    def begin(self, version: int, prefix: str) -> None:
        """Create the topics of a version, and a client without a session."""
        topics = {f"{prefix}.{name}": Topic(count, {}) for name, count in TOPICS.items()}
        create_topics(self.admin, topics)
        # Kafka answers UNKNOWN_TOPIC_OR_PARTITION until its leaders are ready.
        feed(self.admin, [Batch(name, n, batch(0)) for name, topic in topics.items() for n in range(topic.partitions)])
        self.wire.correlation_id = 0
        self.fetcher = SessionFetcher(self.wire, version)

    def masked(self) -> bytes:
        """Return the last response without session id and topic ids."""
        # Correlation id, tagged fields of a flexible header, throttle time, error.
        start = 4 + (self.fetcher.version >= FLEXIBLE_FROM) + 4 + 2
        frame = bytearray(self.wire.frame)
        frame[start : start + 4] = b"some" if any(frame[start : start + 4]) else b"none"
        data = bytes(frame)
        for name, topic_id in self.fetcher.ids.items():
            data = data.replace(topic_id.bytes, name.encode().ljust(16)[:16])
        return data

    def close(self) -> None:
        self.wire.socket.close()
        self.admin.socket.close()


def batch(number: int) -> bytes:
    builder = RecordBatchBuilder(Codec.NONE, max_bytes=1 << 20)
    assert builder.append(1_700_000_000_000 + number, b"key", b"v" * (50 + number % 300), ())
    return bytes(builder.build())


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    directory = tmp_path_factory.mktemp("sessions")
    authorizer = {"authorizer.class.name": STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
    kafka = Kafka("4.3.0", directory / "kafka", directory / "scratch")
    kafka.settings |= authorizer
    kafka.format()
    settings = map("=".join, authorizer.items())
    with start_daemon(directory / "ours", *settings) as daemon, kafka.running() as broker:
        both = (Side(daemon.host, daemon.port), Side("127.0.0.1", broker.port))
        yield both
        for side in both:
            side.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_random_sessions_are_answered_with_the_same_bytes(sides: tuple[Side, Side], version: int) -> None:
    prefix = f"random.{version}"
    for side in sides:
        side.begin(version, prefix)
    places = [(f"{prefix}.{name}", n) for name, count in TOPICS.items() for n in range(count)]
    places += [(f"{prefix}.one", 3), (f"{prefix}.five", 9)]
    rng = random.Random(version)
    ends = dict.fromkeys(places, 1)
    kinds = set()
    for step in range(STEPS):
        action = rng.choice(["produce", "produce", "delete", *["incremental"] * 6, "full", "epoch", "close"])
        wanted: dict[Place, int] = {}
        for place in rng.sample(places, rng.choice([0, 0, 1, 2, 8])):
            wanted[place] = max(0, ends[place] - rng.choice([0, 0, 0, 1, 2, -1]))
        forgotten = rng.sample(places, rng.choice([0, 0, 0, 1, 2]))
        settings = {
            "max_bytes": rng.choice([50 << 20, 50 << 20, 500, 10]),
            "partition_bytes": rng.choice([1 << 20, 300]),
            "last_epoch": rng.choice([-1, -1, -1, 0, 0, 1]),
        }
        if settings["max_bytes"] > settings["partition_bytes"] > 300:
            # Otherwise Kafka's list of aborted transactions is null for a first batch above the limit, ours empty.
            settings["isolation"] = rng.choice([0, 1])
        answers = []
        for side in sides:
            known = places[:-2]
            if action == "produce":
                place = known[step % len(known)]
                feed(side.admin, [Batch(*place, batch(step))])
            elif action == "delete":
                place = known[step % len(known)]
                delete_records(side.admin, *place, ends[place] // 2)
            elif action == "incremental":
                answers.append(side.fetcher.fetch(wanted, forgotten, **settings))
            elif action == "full":
                answers.append(side.fetcher.open(wanted, **settings))
            elif action == "epoch":
                answers.append(side.fetcher.fetch(wanted, epoch=side.fetcher.epoch + 5))
            else:
                answers.append(side.fetcher.fetch(wanted, epoch=-1))
        if action == "produce":
            ends[place] += 1
        elif action != "delete":
            assert answers[0].results == answers[1].results, (step, action, wanted, forgotten, settings)
            ours, kafkas = (side.masked() for side in sides)
            assert ours == kafkas, (step, action, wanted, forgotten, settings)
            kinds.add((action, len(ours) > 100))
    assert len(kinds) >= 6


@pytest.mark.parametrize("version", [12, 17])
def test_a_topic_that_is_deleted_and_created_again_is_answered_with_the_same_bytes(
    sides: tuple[Side, Side], version: int
) -> None:
    prefix = f"again.{version}"
    topic = f"{prefix}.three"
    state = schema("delete_topics", 6, "request").DeleteTopicState(name=topic, topic_id=None)
    answers: list[list[bytes]] = []

    def refetched(side: Side, error: int) -> bytes:
        """Fetch until a result has the error, and return the next response."""
        eventually(
            lambda: True if error in [each[2] for each in side.fetcher.fetch({}).results] else None,
            what=f"error {error}",
        )
        side.fetcher.fetch({})
        return side.masked()[4:]

    for side in sides:
        side.begin(version, prefix)
        side.fetcher.open({(topic, 0): 1, (f"{prefix}.one", 0): 1, (topic, 2): 0})
        found = [side.masked()]
        side.admin.call("delete_topics", 6, topics=(state,), timeout=timedelta(seconds=30))
        found.append(refetched(side, UNKNOWN_TOPIC_OR_PARTITION))
        create_topics(side.admin, {topic: Topic(3, {})})
        feed(side.admin, [Batch(topic, n, batch(n)) for n in range(3)])
        found.append(refetched(side, INCONSISTENT_TOPIC_ID if version >= TOPIC_IDS_FROM else 0))
        answers.append(found)
    assert answers[0] == answers[1]


def refuse_reads(side: Side, topic: str) -> None:
    """Deny everyone READ on the topic."""
    creation = schema("create_acls", 3, "request").AclCreation(
        resource_type=2,
        resource_name=topic,
        resource_pattern_type=3,
        principal="User:*",
        host="*",
        operation=3,
        permission_type=2,
    )
    (created,) = side.admin.call("create_acls", 3, creations=(creation,)).results
    assert created.error_code == 0


def outcomes(answer: SessionAnswer) -> dict[Place, int | bool]:
    """Return the error of each partition in the response, or whether it has records."""
    return {(topic, number): error or size > 0 for topic, number, error, _, _, size in answer.results}


def fetch_until(side: Side, expected: dict[Place, int | bool]) -> None:
    """Continue the session until a response has the outcomes."""
    eventually(lambda: outcomes(side.fetcher.fetch({})) == expected or None, what=str(expected))


class Reader:
    """The client of one side. It fetches the partition `readable` from its end, beside others."""

    def __init__(self, side: Side, prefix: str) -> None:
        self.side = side
        self.readable = (f"{prefix}.one", 0)
        self.unrelated = (f"{prefix}.five", 4)
        self.end = 1

    def begin(self) -> SessionFetcher:
        """Return a client without a session."""
        fetcher = self.side.fetcher
        fetcher.session_id = fetcher.epoch = 0
        return fetcher

    def waits(self, beside: dict[Place, int], **settings: Any) -> dict[Place, int | bool]:
        """Fetch, append to `readable` afterwards, and return the outcomes, which have the record after a wait."""
        self.side.fetcher.send({**beside, self.readable: self.end}, max_wait_ms=LONGER_THAN_THE_TEST_MS, **settings)
        return self.receive_record()

    def receive_record(self) -> dict[Place, int | bool]:
        for place in (self.unrelated, self.readable):
            feed(self.side.admin, [Batch(*place, batch(self.end))])
        self.end += 1
        return outcomes(self.side.fetcher.receive())


def is_answered_at_once(reader: Reader, positions: dict[Place, int], **settings: Any) -> list[dict[Place, int | bool]]:
    """Fetch without a session, open one, and continue it twice; return the outcomes. A wait ends with TimeoutError."""
    fetcher = reader.begin()
    limits = {**settings, "max_wait_ms": LONGER_THAN_THE_TEST_MS}
    answers = [fetcher.fetch(positions, epoch=-1, **limits), fetcher.fetch(positions, epoch=0, **limits)]
    answers += [fetcher.fetch({}, **limits) for _ in range(2)]
    return [outcomes(answer) for answer in answers]


@pytest.mark.parametrize("version", [12, 17])
def test_partitions_that_are_not_read_and_reads_that_fail_end_the_same_waits(
    sides: tuple[Side, Side], version: int
) -> None:
    prefix = f"waits.{version}"
    secret, failing = (f"{prefix}.three", 0), (f"{prefix}.five", 0)
    unread: dict[Place, int] = {
        (f"{prefix}.one", 9): UNKNOWN_TOPIC_OR_PARTITION,
        ("missing", 0): UNKNOWN_TOPIC_OR_PARTITION if version < TOPIC_IDS_FROM else UNKNOWN_TOPIC_ID,
        secret: TOPIC_AUTHORIZATION_FAILED,
    }
    for side in sides:
        side.begin(version, prefix)
        reader = Reader(side, prefix)
        side.fetcher.open(dict.fromkeys([secret, failing, reader.readable], 1))  # learns the ids
        side.fetcher.ids["missing"] = UUID(int=77)
        refuse_reads(side, secret[0])
        fetch_until(side, {secret: TOPIC_AUTHORIZATION_FAILED})
        for place, error in unread.items():
            both = {place: error, reader.readable: True}
            for epoch in (-1, 0):
                reader.begin()
                assert reader.waits({place: 0}, epoch=epoch) == both, (side, place, epoch)
            assert reader.waits({}) == both
            assert outcomes(side.fetcher.fetch({reader.readable: reader.end})) == {place: error}
            side.fetcher.send({}, max_wait_ms=LONGER_THAN_THE_TEST_MS)
            assert reader.receive_record() == both
            assert is_answered_at_once(reader, {place: 0}) == [{place: error}] * 4
        readable = {reader.readable: reader.end}
        for offset, settings, error in (
            (99, {}, OFFSET_OUT_OF_RANGE),
            (1, {"leader_epoch": 9}, UNKNOWN_LEADER_EPOCH),
            (99, {"last_epoch": 0}, 0),  # diverges
            (1, {"replica_id": 9}, NOT_LEADER_OR_FOLLOWER),
        ):
            found = is_answered_at_once(reader, {failing: offset, **readable}, **settings)
            assert [each[failing] for each in found] == [error] * 4, (side, settings)


@pytest.mark.parametrize("version", [12, 17])
def test_a_deletion_ends_a_wait_for_the_topic_and_not_the_next_one(sides: tuple[Side, Side], version: int) -> None:
    prefix = f"deleted.{version}"
    gone = (f"{prefix}.three", 0)
    state = schema("delete_topics", 6, "request").DeleteTopicState(name=gone[0], topic_id=None)
    for side in sides:
        side.begin(version, prefix)
        reader = Reader(side, prefix)
        fetcher = reader.begin()
        fetcher.open({gone: 1, reader.readable: 1})
        fetcher.send({}, max_wait_ms=LONGER_THAN_THE_TEST_MS)
        side.admin.call("delete_topics", 6, topics=(state,), timeout=timedelta(seconds=30))
        assert list(outcomes(fetcher.receive())) == [gone]
        missing: dict[Place, int | bool] = {gone: UNKNOWN_TOPIC_OR_PARTITION}
        fetch_until(side, missing)
        assert reader.waits({}) == {**missing, reader.readable: True}


def produce_everywhere(daemon: Daemon, topics: dict[str, int], turn: int) -> None:
    """Produce one record to each partition, whose value is unique."""
    with KafkaWire(daemon.host, daemon.port) as wire:
        for topic, count in topics.items():
            for number in range(count):
                builder = RecordBatchBuilder(Codec.NONE, max_bytes=1 << 20)
                assert builder.append(1_700_000_000_000, None, f"{topic} {number} {turn}".encode(), ())
                feed(wire, [Batch(topic, number, bytes(builder.build()))])


def values(topics: dict[str, int], turns: int) -> set[str]:
    """Return the values of the first turns."""
    return {f"{topic} {n} {turn}" for topic, count in topics.items() for n in range(count) for turn in range(turns)}


def wait_for_values(consumers: Mapping[Path, Future[str]], expected: set[str]) -> None:
    """Wait until each consumer has written all of the values to its file."""

    def received(file: Path, consumer: Future[str]) -> bool | None:
        assert not consumer.done(), consumer.result()
        return (file.exists() and set(file.read_text().split("\n")) >= expected) or None

    for file, consumer in consumers.items():
        eventually(partial(received, file, consumer), what=f"{len(expected)} values in {file.name}")


def test_kafkas_consumers_survive_evictions_a_restart_and_a_topic_that_is_created_again(tmp_path: Path) -> None:
    kafka = Kafka("4.3.0", tmp_path / "kafka", tmp_path / "scratch")
    kafka.java_program("SessionConsumer", "127.0.0.1:1", "compile", "none", "/dev/null", "0", "/dev/null")
    port = free_port()
    settings = (f"listeners=PLAINTEXT://127.0.0.1:{port}", "max.incremental.fetch.session.cache.slots=1")
    topics = {"wide": 200, "again": 3}
    stop = tmp_path / "stop"
    with start_daemon(tmp_path / "ours", *settings) as daemon, ThreadPoolExecutor() as threads:
        with KafkaWire(daemon.host, daemon.port) as wire:
            create_topics(wire, {name: Topic(count, {}) for name, count in topics.items()})
        arguments = ("wide|again", str(stop), "110")
        consumers = {
            tmp_path / group: threads.submit(
                kafka.java_program, "SessionConsumer", daemon.bootstrap, group, *arguments, str(tmp_path / group)
            )
            for group in ("with", "without")
        }
        produce_everywhere(daemon, topics, 0)
        produce_everywhere(daemon, topics, 1)
        wait_for_values(consumers, values(topics, 2))
        assert metric(daemon, "barnabas_fetch_sessions") == 1
        with KafkaWire(daemon.host, daemon.port) as wire:
            state = schema("delete_topics", 6, "request").DeleteTopicState(name="again", topic_id=None)
            wire.call("delete_topics", 6, topics=(state,), timeout=timedelta(seconds=30))
            create_topics(wire, {"again": Topic(3, {})})
        # A consumer whose position in the old topic was 2 may go on at 0, 1 or 2: the position may be out of range, or
        # be cut to the end of the new log by its leader epoch, or be valid again. So it may miss offsets 0 and 1.
        produce_everywhere(daemon, topics, 2)
        wait_for_values(consumers, values({"wide": 200}, 3))
        daemon.stop()
        daemon.start()
        for turn in (3, 4):
            produce_everywhere(daemon, topics, turn)
        missable = {f"again {number} {turn}" for number in range(3) for turn in (2, 3)}
        wait_for_values(consumers, values(topics, 5) - missable)
        stop.touch()
        for consumer in consumers.values():
            consumer.result()
        assert all(set(file.read_text().split("\n")[:-1]) <= values(topics, 5) for file in consumers)

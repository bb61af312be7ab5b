"""Mutations of real clients' requests get answers of the same class from Barnabas and Apache Kafka.

The class of an answer is the set of its error codes; other classes are a closed connection and silence. Requests go to
both brokers one after the other, so that both have the same topics and groups. BARNABAS_TEST_BROKEN_FRAMES sets the
number of mutants of each API, BARNABAS_FUZZ_SEED another seed.
"""

from __future__ import annotations

import dataclasses
import os
import select
import socket
import struct
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kio.serial.errors import SerialError

from barnabas.protocol.errors import BrokerError, DecodeError
from barnabas.protocol.kafka.apis import Route
from barnabas.protocol.messages.topics.topics import CreatePartitionsRequest, CreateTopicsRequest
from tests.support.daemon import start_daemon
from tests.support.eventually import eventually
from tests.support.frames import Frame, Mutator, by_api
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.kafka_wire import KafkaWire, answer_of
from tests.support.kafka.routes import ROUTES

pytestmark = pytest.mark.timeout(1800)

SEED = int(os.environ.get("BARNABAS_FUZZ_SEED", "20261127"))
MUTANTS_OF_EACH_API = int(os.environ.get("BARNABAS_TEST_BROKEN_FRAMES", "20"))
SILENCE_S = 0.5
"""Without an answer from either broker for this long, both are silent: a join or a fetch waits."""
ANSWER_S = 30.0
"""For a broker that is slower than the other."""
COORDINATED = ((0, "g"), (1, "t"), (2, "g:AAAAAAAAAAAAAAAAAAAAAQ:0"))
"""A key of each type of coordinator."""

Outcome = str | frozenset[int]
"""CLOSED, SILENT, UNREADABLE, or the error codes of an answer."""
CLOSED, SILENT, UNREADABLE = "closed", "silent", "unreadable"
TIMED_OUT = 7
"""Kafka's answer to a request whose timeout is next to nothing. Barnabas has done by then what was asked."""
UNDECODED = ("not UTF-8", "does not come after", "does not fit 32 bits")
"""Why Barnabas closes the connection, while Kafka replaces what is not UTF-8, and takes tagged fields in any order and
varints that are too large. Such requests are not sent: they might leave something behind at Kafka."""
MOST_PARTITIONS = 20
ANY = "any"


def _codes(*codes: int) -> Outcome:
    return frozenset(codes)


KNOWN: tuple[tuple[str, Outcome, Outcome], ...] = (
    # A number that is no resource type, say. Without an authorizer, Barnabas does not look at it.
    ("describe_acls", _codes(54), CLOSED),
    ("create_acls", _codes(54), CLOSED),
    ("delete_acls", _codes(54), CLOSED),
    # Barnabas does not read the rack, which is null, and reads the level of isolation where there is nothing to fetch.
    ("fetch", ANY, CLOSED),
    ("fetch", _codes(-1), ANY),
    # Errors of several kinds in one request, in another order: an unknown topic in one with damaged records, or acks of
    # no meaning.
    ("produce", ANY, _codes(2)),
    ("produce", ANY, _codes(53)),
    ("produce", _codes(21), _codes(3)),
    # Kafka needs a moment for the first producer id, and for a topic that it creates by itself.
    ("init_producer_id", _codes(0), _codes(14)),
    ("metadata", _codes(0), _codes(3)),
    ("metadata", _codes(0), _codes(0, 3)),
    # What one of them has and the other has not: Kafka refuses requests of next to no time and carries them out later.
    ("delete_topics", _codes(3), _codes(0)),
    ("create_topics", _codes(36), ANY),
    ("delete_groups", _codes(69), _codes(0)),
    # Kafka does not expect these, and answers UNKNOWN_SERVER_ERROR, or nothing.
    ("metadata", _codes(0, 17), _codes(-1)),
    ("describe_share_group_offsets", ANY, SILENT),
    ("incremental_alter_configs", _codes(42), _codes(-1)),
    # The logs of a new topic are still being created.
    ("elect_leaders", _codes(80), ANY),
    # Java takes control characters around a name or a number for spaces.
    ("share_group_heartbeat", ANY, _codes(42)),
    ("consumer_group_heartbeat", ANY, _codes(42)),
    ("alter_configs", _codes(40), _codes(3)),
    ("incremental_alter_configs", _codes(40), _codes(3)),
    # A tagged field that is longer than the request.
    ("list_groups", CLOSED, _codes(0)),
)
"""API, our outcome, Kafka's outcome."""


class Difference(NamedTuple):
    """A frame that the brokers answered differently."""

    route: Route
    body: bytes
    ours: Outcome
    kafkas: Outcome

    def __str__(self) -> str:
        api = self.route.api.key.label
        return f"{api} {self.route.version}: {_shown(self.ours)}, Kafka {_shown(self.kafkas)}: {self.body.hex()}"

    @property
    def is_known(self) -> bool:
        """Whether the difference is deliberate, or only the order of two errors of one request."""
        return any(
            api == self.route.api.key.label and ours in (ANY, self.ours) and kafkas in (ANY, self.kafkas)
            for api, ours, kafkas in KNOWN
        ) or (isinstance(self.kafkas, frozenset) and TIMED_OUT in self.kafkas)


def _shown(outcome: Outcome) -> str:
    return outcome if isinstance(outcome, str) else str(sorted(outcome))


def test_broken_requests_get_the_same_class_of_answer(tmp_path: Path) -> None:
    kafka = Kafka("4.3.0", tmp_path / "kafka-data", tmp_path / "kafka")
    kafka.format()
    with start_daemon(tmp_path / "barnabas") as daemon, kafka.running() as theirs:
        brokers = ((daemon.host, daemon.port), ("127.0.0.1", theirs.port))
        for broker in brokers:
            await_coordinators(broker)
        found = [each for each in differences(brokers) if not each.is_known]
        assert daemon.running
        assert " ERROR " not in daemon.log
    assert not found, "\n".join([f"seed {SEED}, {len(found)} differences", *map(str, found[:40])])


def differences(brokers: tuple[tuple[str, int], tuple[str, int]]) -> Iterator[Difference]:
    by_key = by_api()
    others = [frame.data for frames in by_key.values() for frame in frames]
    for key, frames in by_key.items():
        served = [frame for frame in frames if (key, frame.version) in ROUTES]
        mutator = Mutator(SEED + key, others)
        for number in range(MUTANTS_OF_EACH_API if served else 0):
            frame = served[number % len(served)]
            route = ROUTES[key, frame.version]
            body = frame.body(is_flexible=route.is_flexible)
            header = frame.data[: len(frame.data) - len(body)]
            mutant = mutator.mutate(body)
            if is_left_out(route, mutant):
                continue
            ours, kafkas = (outcome(route, answer) for answer in asked(brokers, Frame("", header + mutant)))
            if ours != kafkas:
                yield Difference(route, mutant, ours, kafkas)


def asked(brokers: tuple[tuple[str, int], ...], frame: Frame) -> list[bytes | None]:
    """Send a frame to all brokers; return the answers: empty for a closed connection, None for none."""
    connections = [socket.create_connection(each, ANSWER_S) for each in brokers]
    answers: list[bytes | None] = [None] * len(connections)
    try:
        for connection in connections:
            connection.sendall(struct.pack(">i", len(frame.data)) + frame.data)
        deadline = time.monotonic() + SILENCE_S
        waiting = dict(zip(connections, range(len(connections)), strict=True))
        while waiting and (left := deadline - time.monotonic()) > 0:
            for connection in select.select(list(waiting), [], [], left)[0]:
                answers[waiting.pop(connection)] = received(connection)
                deadline = max(deadline, time.monotonic() + ANSWER_S)
    finally:
        for connection in connections:
            # By a reset: thousands of closed connections would keep their ports, which other tests' brokers look for.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
    return answers


def received(connection: socket.socket) -> bytes:
    """Return an answer without its size; empty if the connection is closed."""
    found = b""
    try:
        while len(found) < 4 or len(found) < 4 + int.from_bytes(found[:4], "big"):
            chunk = connection.recv(1 << 16)
            if not chunk:
                return b""
            found += chunk
    except ConnectionResetError:
        return b""
    return found[4:]


def is_left_out(route: Route, body: bytes) -> bool:
    """Return whether a request is not sent: one in UNDECODED, or for more partitions than a test should create."""
    try:
        request = route.decode(route.version, memoryview(bytearray(body)))
    except (DecodeError, BrokerError) as error:
        return any(each in str(error) for each in UNDECODED)
    match request:
        case CreateTopicsRequest():
            return any(topic.partitions > MOST_PARTITIONS for topic in request.topics)
        case CreatePartitionsRequest():
            return any(topic.count > MOST_PARTITIONS for topic in request.topics)
    return False


def outcome(route: Route, answer: bytes | None) -> Outcome:
    if not answer:
        return SILENT if answer is None else CLOSED
    try:
        entity = answer_of(route.api.key.label, route.version, answer)[1]
    except (SerialError, AssertionError):  # kio refuses some values of Kafka's, such as timestamps of -1
        return UNREADABLE
    return frozenset(codes_of(entity))


def codes_of(entity: Any) -> Iterator[int]:
    """Yield all error codes of an answer."""
    if isinstance(entity, tuple):
        for each in entity:
            yield from codes_of(each)
    elif dataclasses.is_dataclass(entity):
        for field in dataclasses.fields(entity):
            value = getattr(entity, field.name)
            if field.name == "error_code":
                yield int(value)
            else:
                yield from codes_of(value)


def await_coordinators(broker: tuple[str, int]) -> None:
    """Let the coordinators' topics be created and loaded: Kafka answers NOT_COORDINATOR before."""
    with KafkaWire(*broker) as wire:

        def are_found() -> bool | None:
            answers = [
                wire.call("find_coordinator", 6, key_type=kind, coordinator_keys=(key,)) for kind, key in COORDINATED
            ]
            return all(each.error_code == 0 for answer in answers for each in answer.coordinators) or None

        def serves() -> bool | None:
            answer = wire.call(
                "init_producer_id",
                4,
                transactional_id="t",
                transaction_timeout=timedelta(seconds=60),
                producer_id=-1,
                producer_epoch=-1,
            )
            return answer.error_code == 0 or None

        eventually(are_found, what="there are coordinators")
        eventually(serves, what="transactions begin")

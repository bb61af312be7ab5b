"""Quotas beside Apache Kafka: the same clients at both brokers have the same rates, throttle times and refusals.

Both brokers run at the same time, on the same machine. Throttle times that follow from one request differ by the time
between two requests at most. Rates are compared over several seconds, with both clients running together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.protocol.compression import Codec
from barnabas.protocol.records import Record
from tests.support.daemon import start_daemon
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.kafka_wire import (
    KafkaWire,
    fetch_request,
    metadata_request,
    produce_request,
    request_frame,
    schema,
)
from tests.support.kafka.quotas import alter_quotas
from tests.support.kafka.two_brokers import Batch, Topic, create_topics, feed
from tests.support.storage.records import build

pytestmark = pytest.mark.timeout(300)

RATE = 10_000
"""Bytes per second of the quotas that one request exceeds."""
STEADY_RATE = 200_000
"""Bytes per second of the quotas of clients that run for a while."""
RECORD_BYTES = 10_000
WARM_S = 4
MEASURED_S = 10
RATE_TOLERANCE = 0.2
"""By how much a rate may exceed its quota."""
BUSY = 0.5
"""Share of the quota that a client reaches on a busy machine."""
THROTTLE_FACTOR = 2
"""The largest ratio of the two sums of throttle times during a run: the process of one client may be slower."""
LATE = timedelta(seconds=0.7)
"""The largest difference of throttle times after the same requests: what a busy machine adds between two of them."""
WINDOWS = 2
CONNECTIONS_PER_SECOND = 1
TOPICS = ("wire", "steady")
LARGE_REQUESTS = (3 * RATE, 20 * RATE)


class Client(KafkaWire):
    """A connection with a client id of its own."""

    def __init__(self, port: int, client_id: str) -> None:
        super().__init__("127.0.0.1", port)
        self.client_id = client_id

    def send(self, request: Any) -> None:
        self.correlation_id += 1
        self.socket.sendall(request_frame(request, self.correlation_id, self.client_id))

    def produced(self, size_bytes: int) -> timedelta:
        """Produce one record; return the throttle time."""
        self.send(produce_request(9, "wire", batch(size_bytes)))
        answer = self.receive("produce", 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        throttle: timedelta = answer.throttle_time
        return throttle

    def fetched(self) -> tuple[bool, timedelta]:
        """Fetch; return whether there were records, and the throttle time."""
        self.send(fetch_request(11, "wire", 0))
        answer = self.receive("fetch", 11)
        return bool(answer.responses and answer.responses[0].partitions[0].records), answer.throttle_time


@dataclass(frozen=True)
class Side:
    """One of the two brokers, with a connection without quotas."""

    port: int
    admin: KafkaWire

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"


Sides = tuple[Side, Side]


def batch(size_bytes: int) -> bytes:
    """Return a batch with one record."""
    return bytes(build([Record(0, 0, None, bytes(size_bytes))], Codec.NONE))


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """Apache Kafka and Barnabas with the same quotas."""
    settings = {"quota.window.num": str(WINDOWS), "controller.quota.window.num": str(WINDOWS)}
    kafka = Kafka("4.3.0", tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("kafka"))
    kafka.settings |= settings
    kafka.format()
    with ExitStack() as stack:
        ports = [stack.enter_context(kafka.running()).port]
        ours = [f"{name}={value}" for name, value in settings.items()]
        ports.append(stack.enter_context(start_daemon(tmp_path_factory.mktemp("barnabas"), *ours)).port)
        both = []
        for port in ports:
            side = Side(port, stack.enter_context(KafkaWire("127.0.0.1", port)))
            for size_bytes in LARGE_REQUESTS:
                alter_quotas(side.admin, "client-id", f"produces-{size_bytes}", producer_byte_rate=RATE)
            alter_quotas(side.admin, "client-id", "fetches", consumer_byte_rate=RATE)
            steady = {"producer_byte_rate": STEADY_RATE, "consumer_byte_rate": STEADY_RATE}
            alter_quotas(side.admin, "client-id", "steady", **steady)
            alter_quotas(side.admin, "client-id", "busy", request_percentage=0.01)
            alter_quotas(side.admin, "client-id", "creator", controller_mutation_rate=1)
            # Kafka's broker has read the quotas when it leads partitions that were created after them.
            start_topics(side, *TOPICS)
            both.append(side)
        yield both[0], both[1]


def start_topics(side: Side, *names: str) -> None:
    """Create topics and wait until the broker leads them."""
    create_topics(side.admin, {name: Topic(1, {}) for name in names})
    feed(side.admin, [Batch(name, 0, batch(1)) for name in names])


def of_both(sides: Sides, measure: Callable[[Side], Any]) -> tuple[Any, Any]:
    """Measure both brokers at the same time; return Kafka's result and ours."""
    with ThreadPoolExecutor(2) as executor:
        theirs, ours = executor.map(measure, sides)
    return theirs, ours


def assert_close(theirs: timedelta, ours: timedelta) -> None:
    assert theirs > timedelta(), "Kafka throttles"
    assert abs(theirs - ours) <= LATE, (theirs, ours)


@pytest.mark.parametrize("size_bytes", LARGE_REQUESTS)
def test_one_large_produce_request_has_the_throttle_time_of_kafka(sides: Sides, size_bytes: int) -> None:
    def measure(side: Side) -> timedelta:
        with Client(side.port, f"produces-{size_bytes}") as client:
            return client.produced(size_bytes)

    assert_close(*of_both(sides, measure))


def test_a_fetch_above_the_quota_is_empty_and_has_the_throttle_time_of_kafka(sides: Sides) -> None:
    """The quota allows one response; the next one is too early."""

    def measure(side: Side) -> list[tuple[bool, timedelta]]:
        with Client(side.port, "fetches") as client:
            return [client.fetched() for _ in range(3)]

    for side in sides:
        feed(side.admin, [Batch("wire", 0, batch(2 * WINDOWS * RATE))])
    theirs, ours = of_both(sides, measure)
    assert [has_records for has_records, _ in ours] == [has_records for has_records, _ in theirs]
    for (_, their_time), (_, our_time) in zip(theirs, ours, strict=True):
        assert abs(their_time - our_time) <= LATE, (theirs, ours)
    assert max(time for _, time in theirs) > timedelta()


def test_request_time_above_the_quota_is_throttled_for_a_window_at_most(sides: Sides) -> None:
    def measure(side: Side) -> list[timedelta]:
        with Client(side.port, "busy") as client:
            found: list[timedelta] = []
            deadline = time.monotonic() + MEASURED_S
            while len(found) < 3 and time.monotonic() < deadline:
                client.send(metadata_request(4))
                if throttle := client.receive("metadata", 4).throttle_time:
                    found.append(throttle)
            return found

    for found in of_both(sides, measure):
        assert len(found) == 3
        assert max(found) <= timedelta(seconds=1)


def test_partitions_above_the_mutation_rate_get_kafkas_answers(sides: Sides) -> None:
    def measure(side: Side) -> list[tuple[list[int], timedelta]]:
        return [create(side, version, f"mutated-{version}") for version in (7, 5)]

    theirs, ours = of_both(sides, measure)
    assert [codes for codes, _ in ours] == [codes for codes, _ in theirs]
    for (_, their_time), (_, our_time) in zip(theirs, ours, strict=True):
        assert_close(their_time, our_time)


def create(side: Side, version: int, prefix: str) -> tuple[list[int], timedelta]:
    """Create three topics of four partitions; return the error codes and the throttle time."""
    kio = schema("create_topics", version, "request")
    rows = tuple(
        kio.CreatableTopic(
            name=f"{prefix}-{number}", num_partitions=4, replication_factor=1, assignments=(), configs=()
        )
        for number in range(3)
    )
    with Client(side.port, "creator") as client:
        answer = client.call("create_topics", version, topics=rows, timeout=timedelta(seconds=30))
    return sorted(int(topic.error_code) for topic in answer.topics), answer.throttle_time


@dataclass
class Steady:
    """What a client noticed during a run."""

    arrivals: list[float]
    throttled_s: float = 0.0

    def rate(self) -> float:
        """Return the bytes per second after the warm-up."""
        start = self.arrivals[0] + WARM_S
        return sum(start <= at < start + MEASURED_S for at in self.arrivals) * RECORD_BYTES / MEASURED_S


def test_librdkafka_produces_and_consumes_at_the_rates_and_with_the_throttle_times_of_kafka(sides: Sides) -> None:
    for run in (steady_producer, steady_consumer):
        theirs, ours = of_both(sides, run)
        rates = (theirs.rate(), ours.rate())
        assert min(rates) > BUSY * STEADY_RATE, rates
        assert max(rates) <= (1 + RATE_TOLERANCE) * STEADY_RATE, rates
        throttled = sorted((theirs.throttled_s, ours.throttled_s))
        assert throttled[0] > 1, throttled
        assert throttled[1] <= THROTTLE_FACTOR * throttled[0], throttled


def steady_producer(side: Side) -> Steady:
    """Produce as fast as the broker allows until the end of the measured time."""
    seen = Steady([])
    producer = Producer(
        {
            "bootstrap.servers": side.bootstrap,
            "client.id": "steady",
            "batch.num.messages": 1,
            "max.in.flight": 1,
            "throttle_cb": partial(add_throttle, seen),
        }
    )
    until = time.monotonic() + WARM_S + MEASURED_S + 1
    while time.monotonic() < until:
        if len(producer) < 10:
            producer.produce(
                "steady", bytes(RECORD_BYTES), on_delivery=lambda *_: seen.arrivals.append(time.monotonic())
            )
        producer.poll(0.01)
    producer.flush(30)
    return seen


def steady_consumer(side: Side) -> Steady:
    """Consume as fast as the broker allows until the end of the measured time."""
    seen = Steady([])
    consumer = Consumer(
        {
            "bootstrap.servers": side.bootstrap,
            "client.id": "steady",
            "group.id": "steady",
            "fetch.message.max.bytes": RECORD_BYTES,
            "throttle_cb": partial(add_throttle, seen),
        }
    )
    consumer.assign([TopicPartition("steady", 0, 0)])
    until = time.monotonic() + WARM_S + MEASURED_S + 1
    while time.monotonic() < until:
        if (message := consumer.poll(0.1)) is not None and message.error() is None:
            seen.arrivals.append(time.monotonic())
    consumer.close()
    return seen


def add_throttle(seen: Steady, event: Any) -> None:
    """Count a throttle time that librdkafka reports."""
    seen.throttled_s += event.throttle_time


def test_connections_above_the_rate_of_their_address_are_closed_by_both(sides: Sides) -> None:
    """As many are served as with Kafka, give or take two: a second may pass while they connect."""
    served = []
    for side in sides:
        alter_quotas(side.admin, "ip", "127.0.0.1", connection_creation_rate=CONNECTIONS_PER_SECOND)
        start_topics(side, "after-the-quota")
        served.append(sum(is_served(side) for _ in range(8)))
        alter_quotas(side.admin, "ip", "127.0.0.1", connection_creation_rate=None)
        start_topics(side, "after-its-removal")
    theirs, ours = served
    assert 0 < theirs < 8
    assert abs(ours - theirs) <= 2


def is_served(side: Side) -> bool:
    """Return whether a new connection is served, or closed without an answer."""
    try:
        with Client(side.port, "connecting") as client:
            client.send(metadata_request(4))
            client.receive("metadata", 4)
    except ConnectionError:
        return False
    return True

"""Brokers that take turns on one set of log directories, and the state that clients can see, for comparison.

Apache Kafka and Barnabas are read by the same client (librdkafka, and raw frames for the stored batches), so any
difference between two turns is caused by the brokers.

    with KafkaTurns("4.3.0", directories, scratch) as kafka, BarnabasTurns(directories, scratch) as barnabas:
        kafka.format()
        address = kafka.start()
        before = observe(address, ["workers"])
        kafka.end(killed=True)
        assert observe(barnabas.start(), ["workers"]) == before
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, ResourceType

from barnabas.clients.testing import BrokerProcess
from barnabas.protocol.records.batch import iter_batches
from tests.support.free_ports import free_port
from tests.support.kafka.apache_kafka import Broker, Kafka
from tests.support.kafka.kafka_wire import KafkaWire

CLIENT_TIMEOUT_S = 30
FAST = {
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.backoff.ms": "100",
    "log.flush.start.offset.checkpoint.interval.ms": "100",
    "log.retention.ms": "-1",
    "offsets.topic.num.partitions": "1",
}
"""Settings that avoid long waits; both brokers accept them."""


class Address(NamedTuple):
    """Address of a broker."""

    host: str
    port: int

    @property
    def bootstrap(self) -> str:
        """`host:port`, for a client's configuration."""
        return f"{self.host}:{self.port}"


class Program(Protocol):
    """A broker that can be started and ended repeatedly on the same directories and port."""

    def start(self) -> Address:
        """Start serving."""
        ...

    def end(self, *, killed: bool) -> None:
        """Stop cleanly, or by SIGKILL."""
        ...


class KafkaTurns:
    """One version of Apache Kafka."""

    def __init__(self, version: str, log_dirs: Sequence[Path], scratch: Path, *, port: int | None = None) -> None:
        self._port, controller_port = port or free_port(), free_port()
        self.kafka = Kafka(
            version,
            log_dirs,
            scratch,
            log_initial_task_delay_ms="100",
            listeners=f"PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:{controller_port}",
            advertised_listeners=f"PLAINTEXT://127.0.0.1:{self._port}",
            controller_quorum_voters=f"1@127.0.0.1:{controller_port}",
        )
        self.kafka.settings |= FAST
        self._broker: Broker | None = None

    def format(self) -> str:
        """Format empty directories; return the cluster id."""
        return self.kafka.format()

    def start(self) -> Address:
        """Start serving on the same port as before."""
        self._broker = self.kafka.start()
        return Address("127.0.0.1", self._port)

    def end(self, *, killed: bool) -> None:
        """Stop it, if it runs."""
        broker, self._broker = self._broker, None
        if broker is not None:
            broker.kill() if killed else broker.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and self._broker is not None:
            error.add_note(self._broker.log[-4000:])
        self.end(killed=error is not None)


class BarnabasTurns:
    """Our daemon."""

    def __init__(self, log_dirs: Sequence[Path], scratch: Path, *, port: int = 0) -> None:
        settings = {
            **FAST,
            "log.initial.task.delay.ms": "100",
            "log.dirs": ",".join(map(str, log_dirs)),
            "listeners": f"127.0.0.1:{port}",
        }
        self.process = BrokerProcess(scratch, settings)

    def start(self) -> Address:
        """Start serving."""
        self.process.start()
        return Address(self.process.host, self.process.port)

    def end(self, *, killed: bool) -> None:
        """Stop it, if it runs."""
        if not self.process.running:
            return
        if killed:
            self.process.kill()
        else:
            assert self.process.stop() == 0, self.process.log_tail()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(self.process.log_tail())
        self.end(killed=error is not None)


@dataclass(frozen=True, slots=True)
class Observed:
    """State visible to a client.

    Partitions are (topic, number); of compacted topics only each key's last value is kept.
    """

    topic_ids: Mapping[str, str]
    configs: Mapping[str, Mapping[str, str]]
    starts: Mapping[tuple[str, int], int]
    ends: Mapping[tuple[str, int], int]
    batches: Mapping[tuple[str, int], bytes]
    latest: Mapping[str, Mapping[bytes | None, bytes | None]]
    committed: Mapping[str, Mapping[tuple[str, int], int]]


def observe(address: Address, groups: Sequence[str], *, compacted: Sequence[str] = ()) -> Observed:
    """Return the state of a broker's topics and of `groups`, with batches as the bytes that the broker sends."""
    admin = AdminClient({"bootstrap.servers": address.bootstrap})
    topics = {
        name: topic for name, topic in admin.list_topics(timeout=CLIENT_TIMEOUT_S).topics.items() if name[:2] != "__"
    }
    described = admin.describe_topics(TopicCollection(list(topics)))
    partitions = [(name, number) for name, topic in topics.items() for number in topic.partitions]
    watermarks = _watermarks(address, partitions)
    return Observed(
        topic_ids={name: str(future.result(CLIENT_TIMEOUT_S).topic_id) for name, future in described.items()},
        configs={name: configs_of(admin, name) for name in topics},
        starts={each: low for each, (low, _) in watermarks.items() if each[0] not in compacted},
        ends={each: high for each, (_, high) in watermarks.items()},
        batches={
            each: batches_from(address, *each, low) for each, (low, _) in watermarks.items() if each[0] not in compacted
        },
        latest={name: latest_of(address, name, watermarks) for name in compacted},
        committed={group: committed_of(admin, group) for group in groups},
    )


def configs_of(admin: AdminClient, topic: str) -> dict[str, str]:
    """Return the configs set on the topic itself."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    (future,) = admin.describe_configs([resource]).values()
    entries = future.result(CLIENT_TIMEOUT_S).values()
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG  # librdkafka returns the number
    return {each.name: each.value for each in entries if ConfigSource(each.source) is own}


def committed_of(admin: AdminClient, group: str) -> dict[tuple[str, int], int]:
    """Return a group's committed offsets; empty for an unknown group."""
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    try:
        found = future.result(CLIENT_TIMEOUT_S).topic_partitions
    except KafkaException as error:
        raise AssertionError(f"offsets of group {group}: {error}") from error
    return {(each.topic, each.partition): each.offset for each in found}


def batches_from(address: Address, topic: str, partition: int, start: int) -> bytes:
    """Return all stored batches from the one that contains `start`."""
    found, offset = bytearray(), start
    with KafkaWire(*address) as wire:
        while True:
            answer = wire.fetch(11, topic, offset, partition=partition)
            assert answer.error_code == 0, (topic, partition, offset, answer.error_code)
            if not answer.records:
                return bytes(found)
            for batch in iter_batches(answer.records):
                found += answer.records[batch.position : batch.position + batch.size_bytes]
                offset = batch.next_offset


def latest_of(
    address: Address, topic: str, watermarks: Mapping[tuple[str, int], tuple[int, int]]
) -> dict[bytes | None, bytes | None]:
    """Return key -> last value of a topic, including tombstones that have not been removed."""
    consumer = _reader(address)
    spans = {number: span for (name, number), span in watermarks.items() if name == topic and span[0] < span[1]}
    found: dict[bytes | None, bytes | None] = {}
    try:
        for number, (low, high) in spans.items():
            consumer.assign([TopicPartition(topic, number, low)])
            while consumer.position([TopicPartition(topic, number)])[0].offset < high:
                for message in consumer.consume(500, 0.2):
                    assert message.error() is None, message.error()
                    found[message.key()] = message.value()
    finally:
        consumer.close()
    return {key: value for key, value in found.items() if value is not None}


def _watermarks(address: Address, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], tuple[int, int]]:
    consumer = _reader(address)
    try:
        return {each: consumer.get_watermark_offsets(TopicPartition(*each), CLIENT_TIMEOUT_S) for each in partitions}
    finally:
        consumer.close()


def _reader(address: Address) -> Consumer:
    return Consumer(
        {"bootstrap.servers": address.bootstrap, "group.id": "nobody", "enable.auto.commit": False, "check.crcs": True}
    )

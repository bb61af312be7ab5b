"""The broker under test: Barnabas, or Apache Kafka to check the tests themselves."""

from __future__ import annotations

import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from barnabas.protocol.compression import CODECS, Codec
from barnabas.protocol.messages.data.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.records import Record
from tests.interop.clients.recording import RecordingProxy
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.apache_kafka import Broker, Kafka
from tests.support.storage.records import build
from tests.support.wire import WireClient

_WAIT_TIMEOUT_S = 30.0
_POLL_INTERVAL_S = 0.02
_EARLIEST = -2


class Target(ABC):
    """A running broker whose segment files can be read."""

    name: str
    version: str
    bootstrap: str
    log_directory: Path

    @abstractmethod
    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic without the client under test."""

    @abstractmethod
    def append(self, topic: str, records: list[Record], codec: Codec) -> None:
        """Append one batch to partition 0."""

    @abstractmethod
    def earliest(self, topic: str) -> int:
        """Return the log start offset of partition 0."""

    @abstractmethod
    def restart(self) -> None:
        """Kill the broker and start it again on the same address."""

    @property
    def cluster_id(self) -> str:
        """Return the cluster id in meta.properties."""
        lines = (self.log_directory / "meta.properties").read_text().splitlines()
        return next(line.partition("=")[2] for line in lines if line.startswith("cluster.id="))

    def fill(self, topic: str, records: list[Record]) -> None:
        """Append batches of every codec to partition 0."""
        share = -(-len(records) // len(CODECS))
        for number, codec in enumerate(CODECS):
            if part := records[number * share : (number + 1) * share]:
                self.append(topic, part, codec)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Poll a condition on another process's files."""
        deadline = time.monotonic() + _WAIT_TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, f"not within {_WAIT_TIMEOUT_S:.0f} s"
            time.sleep(_POLL_INTERVAL_S)


class BarnabasTarget(Target):
    """Barnabas, set up by the test client that shares its messages."""

    name = "Barnabas"

    def __init__(self, daemon: Daemon) -> None:
        from barnabas import __version__

        self.version = __version__
        self.bootstrap = daemon.bootstrap
        self.log_directory = daemon.data_directory
        self._daemon = daemon

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> None:
        self._daemon.create_topic(name, partitions=partitions, configs=configs)

    def append(self, topic: str, records: list[Record], codec: Codec) -> None:
        with WireClient(self._daemon.host, self._daemon.port) as client:
            numbered = [record._replace(offset=number) for number, record in enumerate(records)]
            result = client.produce(topic, build(numbered, codec))
            assert result.error == 0, result.message

    def earliest(self, topic: str) -> int:
        request = ListOffsetsRequest(
            isolation=0,
            topics=[ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition=0, timestamp=_EARLIEST)])],
        )
        with WireClient(self._daemon.host, self._daemon.port) as client:
            offset: int = client.call(request).topics[0].partitions[0].offset
            return offset

    def restart(self) -> None:
        self._daemon.restart(clean=False)


class KafkaTarget(Target):
    """Apache Kafka on ports that stay the same after a restart."""

    name = "Apache Kafka"

    def __init__(self, kafka: Kafka, broker: Broker, bootstrap: str) -> None:
        self.version = kafka.version
        self.bootstrap = bootstrap
        self.log_directory = kafka.log_dirs[0]
        self._kafka = kafka
        self.broker = broker

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(name, partitions, 1, config=dict(configs or {}))])[name].result(30)
        # The controller has answered; the broker learns of the topic a little later.
        self.wait_until(lambda: (self.log_directory / f"{name}-{partitions - 1}").exists())

    def append(self, topic: str, records: list[Record], codec: Codec) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.bootstrap, "compression.type": codec.name.lower()})
        for record in records:
            producer.produce(topic, record.value, record.key, 0, timestamp=record.timestamp)
        assert producer.flush(30) == 0

    def earliest(self, topic: str) -> int:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "unused"})
        earliest: int = consumer.get_watermark_offsets(TopicPartition(topic, 0), 30)[0]
        consumer.close()
        return earliest

    def restart(self) -> None:
        self.broker.kill()
        self.broker = self._kafka.start()


@contextmanager
def running_barnabas(directory: Path, proxy: RecordingProxy | None = None) -> Iterator[Target]:
    """Run a daemon with default settings."""
    with start_daemon(directory, *([f"advertised.listeners=127.0.0.1:{proxy.port}"] if proxy else [])) as daemon:
        target = BarnabasTarget(daemon)
        if proxy is not None:
            proxy.upstream_port = daemon.port
            target.bootstrap = f"127.0.0.1:{proxy.port}"
        yield target


@contextmanager
def running_kafka(version: str, directory: Path, proxy: RecordingProxy | None = None) -> Iterator[Target]:
    """Run one Kafka node."""
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        port, controller_port = first.getsockname()[1], second.getsockname()[1]
    advertised_port = port
    if proxy is not None:
        proxy.upstream_port, advertised_port = port, proxy.port
    kafka = Kafka(
        version,
        directory / "data",
        directory,
        listeners=f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        advertised_listeners=f"PLAINTEXT://127.0.0.1:{advertised_port}",
        controller_quorum_voters=f"1@127.0.0.1:{controller_port}",
        log_segment_delete_delay_ms="1000",
    )
    kafka.format()
    target = KafkaTarget(kafka, kafka.start(), f"127.0.0.1:{advertised_port}")
    try:
        yield target
    finally:
        target.broker.kill()

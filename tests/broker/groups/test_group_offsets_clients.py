"""Third-party clients with manual assignment commit and resume, across restarts and kills of the broker."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Protocol

import pytest

from barnabas import Producer, ProducerConfig
from tests.support.daemon import Daemon, start_daemon

TOPIC = "orders"
GROUP = "billing"
RECORDS = 60
END = 20
CLOSE_LIMIT_S = 30.0
"""Timeout of one wait. librdkafka's close takes 46 s if it finds no coordinator."""


class Client(Protocol):
    """One client library."""

    def read_and_commit(self, bootstrap: str, count: int) -> list[bytes]:
        """Read `count` values from the committed offset, and commit each."""
        ...

    def committed(self, bootstrap: str) -> int:
        """Return the committed offset."""
        ...


class ConfluentKafka:
    def _consumer(self, bootstrap: str):  # type: ignore[no-untyped-def]
        from confluent_kafka import Consumer

        return Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )

    def read_and_commit(self, bootstrap: str, count: int) -> list[bytes]:
        from confluent_kafka import TopicPartition

        consumer = self._consumer(bootstrap)
        consumer.assign([TopicPartition(TOPIC, 0)])
        values: list[bytes] = []
        while len(values) < count:
            message = consumer.poll(30.0)
            assert message is not None
            assert message.error() is None
            values.append(message.value())
            (committed,) = consumer.commit(message, asynchronous=False)
            assert committed.error is None
        close_within_bound(consumer)
        return values

    def committed(self, bootstrap: str) -> int:
        from confluent_kafka import TopicPartition

        consumer = self._consumer(bootstrap)
        (found,) = consumer.committed([TopicPartition(TOPIC, 0)], 30.0)
        close_within_bound(consumer)
        offset: int = found.offset
        return offset


class KafkaPython:
    def _consumer(self, bootstrap: str):  # type: ignore[no-untyped-def]
        from kafka import KafkaConsumer

        return KafkaConsumer(
            bootstrap_servers=bootstrap, group_id=GROUP, enable_auto_commit=False, auto_offset_reset="earliest"
        )

    def read_and_commit(self, bootstrap: str, count: int) -> list[bytes]:
        from kafka import TopicPartition

        consumer = self._consumer(bootstrap)
        consumer.assign([TopicPartition(TOPIC, 0)])
        values = []
        for _ in range(count):
            values.append(next(consumer).value)
            consumer.commit()
        consumer.close()
        return values

    def committed(self, bootstrap: str) -> int:
        from kafka import TopicPartition

        consumer = self._consumer(bootstrap)
        offset: int = consumer.committed(TopicPartition(TOPIC, 0))
        consumer.close()
        return offset


class Aiokafka:
    def read_and_commit(self, bootstrap: str, count: int) -> list[bytes]:
        async def run() -> list[bytes]:
            from aiokafka import AIOKafkaConsumer, TopicPartition

            consumer = AIOKafkaConsumer(
                bootstrap_servers=bootstrap, group_id=GROUP, enable_auto_commit=False, auto_offset_reset="earliest"
            )
            consumer.assign([TopicPartition(TOPIC, 0)])
            await consumer.start()
            values = []
            for _ in range(count):
                values.append((await consumer.getone()).value)
                await consumer.commit()
            await consumer.stop()
            return values

        return asyncio.run(run())

    def committed(self, bootstrap: str) -> int:
        async def run() -> int:
            from aiokafka import AIOKafkaConsumer, TopicPartition

            consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=GROUP, enable_auto_commit=False)
            consumer.assign([TopicPartition(TOPIC, 0)])
            await consumer.start()
            offset: int = await consumer.committed(TopicPartition(TOPIC, 0))
            await consumer.stop()
            return offset

        return asyncio.run(run())


CLIENTS = [ConfluentKafka(), KafkaPython(), Aiokafka()]


def close_within_bound(consumer) -> None:  # type: ignore[no-untyped-def]
    closing = threading.Thread(target=consumer.close, daemon=True)
    closing.start()
    closing.join(CLOSE_LIMIT_S)
    assert not closing.is_alive(), "close() still looks for the group's coordinator"


def produce(daemon: Daemon) -> None:
    async def run() -> None:
        async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
            for number in range(RECORDS):
                await producer.send(TOPIC, b"%d" % number, partition=0)
            await producer.flush()

    asyncio.run(run())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: type(client).__name__)
def test_a_consumer_resumes_where_it_committed_after_a_restart_and_after_a_kill(tmp_path: Path, client: Client) -> None:
    values: list[bytes] = []
    for end in ("stop", "kill", "stop"):
        with start_daemon(tmp_path) as daemon:
            if not values:
                produce(daemon)
            values += client.read_and_commit(daemon.bootstrap, END)
            assert client.committed(daemon.bootstrap) == len(values)
            getattr(daemon, end)()
    assert values == [b"%d" % number for number in range(RECORDS)]

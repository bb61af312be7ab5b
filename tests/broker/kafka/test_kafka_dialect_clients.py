"""One smoke test each with unpatched third-party clients: produce, and consume by assign."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.daemon import Daemon
from tests.support.wire import WireClient

RECORDS = 500
KEYS = [f"k{number}".encode() for number in range(RECORDS)]
VALUES = [f"v{number}".encode() for number in range(RECORDS)]


@pytest.fixture
def produced(daemon: Daemon) -> Iterator[list[str]]:
    """Topics written by the tests; each must hold the records once, whichever client wrote them."""
    topics: list[str] = []
    yield topics
    with WireClient(daemon.host, daemon.port) as wire:
        assert [wire.end_offset(topic) for topic in topics] == [RECORDS] * len(topics)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_confluent_kafka_produces_idempotently_and_consumes(daemon: Daemon, produced: list[str], codec: str) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    topic = f"confluent.{codec}"
    produced.append(topic)
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": daemon.bootstrap, "enable.idempotence": True, "compression.type": codec})
    for key, value in zip(KEYS, VALUES, strict=True):
        producer.produce(topic, value, key, on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(30) == 0
    assert failures == []
    consumer = Consumer({"bootstrap.servers": daemon.bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[bytes | str | None, bytes | str | None]] = []
    while len(found) < RECORDS:
        messages = consumer.consume(RECORDS - len(found), 30.0)
        assert messages, f"{len(found)} of {RECORDS} records came"
        assert [message.error() for message in messages if message.error()] == []
        found += [(message.key(), message.value()) for message in messages]
    assert found == list(zip(KEYS, VALUES, strict=True))
    consumer.close()


# kafka-python calls the deprecated importlib.resources.read_text
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_kafka_python_produces_and_consumes(daemon: Daemon, produced: list[str]) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    produced.append("kafka.python")
    producer = KafkaProducer(bootstrap_servers=daemon.bootstrap, compression_type="gzip")
    sent = [producer.send("kafka.python", value, key) for key, value in zip(KEYS, VALUES, strict=True)]
    assert [each.get(30).offset for each in sent] == list(range(RECORDS))
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=daemon.bootstrap, consumer_timeout_ms=30_000)
    consumer.assign([TopicPartition("kafka.python", 0)])
    consumer.seek(TopicPartition("kafka.python", 0), 100)
    found = [(message.key, message.value) for _, message in zip(range(RECORDS - 100), consumer, strict=False)]
    assert found == list(zip(KEYS, VALUES, strict=True))[100:]
    consumer.close()


def test_aiokafka_produces_and_consumes(daemon: Daemon, produced: list[str]) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    produced.append("aiokafka")

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=daemon.bootstrap, enable_idempotence=True)
        await producer.start()
        sent = [await producer.send("aiokafka", value, key) for key, value in zip(KEYS, VALUES, strict=True)]
        assert [(await each).offset for each in sent] == list(range(RECORDS))
        await producer.stop()
        consumer = AIOKafkaConsumer(bootstrap_servers=daemon.bootstrap)
        consumer.assign([TopicPartition("aiokafka", 0)])
        await consumer.start()
        await consumer.seek_to_beginning()
        found: list[tuple[bytes | None, bytes | None]] = []
        while len(found) < RECORDS:
            message = await asyncio.wait_for(consumer.getone(), 30)
            found.append((message.key, message.value))
        assert found == list(zip(KEYS, VALUES, strict=True))
        await consumer.stop()

    asyncio.run(run())

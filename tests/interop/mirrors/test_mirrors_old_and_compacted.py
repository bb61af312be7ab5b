"""A mirror of what Apache Kafka has compacted, or has in old formats: consumers of either side read the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.protocol.messages.cluster.mirrors import MirrorDescription
from barnabas.protocol.records.record import Record
from tests.broker.partitions.test_fetch_old_formats import LOG_NAME, OLD
from tests.support.daemon import start_daemon
from tests.support.eventually import eventually
from tests.support.kafka.apache_kafka import Broker, Kafka, need_kafka
from tests.support.kafka.combinations import NEWEST, OLDEST
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.wire_producer import WireProducer
from tests.support.mirrors.copies import MIRROR, admin_of, segments, until
from tests.support.storage.records import TIMESTAMP, build

pytestmark = pytest.mark.timeout(300)  # several JVM starts, on machines of any speed
VERSIONS = (NEWEST, OLDEST)
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001", "segment.ms": "1"}


def keyed(number: int) -> bytes:
    """Return a batch of the same keys as all others, late enough for a new segment."""
    time_ms = TIMESTAMP + 1000 * number
    return bytes(build([Record(each, time_ms + each, b"%d" % each, b"%d" % number) for each in range(5)]))


def create_topics(broker: Broker) -> None:
    kept = {"retention.ms": "-1"}
    topics = [NewTopic(name, 1, 1, config=kept) for name in ("old", "transactions")]
    topics.append(NewTopic("compacted", 1, 1, config=COMPACTED))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for created in admin.create_topics(topics).values():
        created.result(60)


def write_transactions(broker: Broker) -> None:
    with KafkaWire("127.0.0.1", broker.port) as wire:
        producer = WireProducer(wire, "x", level=0)
        assert producer.init() == 0
        for is_commit in (True, False, True):
            assert producer.write("transactions", 0, b"a", b"b") == 0
            assert producer.end(is_commit=is_commit) == 0
        assert producer.write("transactions", 0, b"open") == 0


def write_until_compacted(broker: Broker, data: Path) -> None:
    """Write the same keys until Kafka's cleaner has compacted some of them."""
    numbers = iter(range(100_000))
    with KafkaWire("127.0.0.1", broker.port) as wire:

        def is_compacted() -> bool | None:
            for _ in range(3):
                number = next(numbers)
                assert wire.produce(9, "compacted", keyed(number), acks=-1).error_code == 0
            checkpoint = data / "cleaner-offset-checkpoint"
            text = checkpoint.read_text() if checkpoint.exists() else ""
            return any(line.startswith("compacted 0 ") for line in text.splitlines()) or None

        eventually(is_compacted, what="compacted records", timeout_s=60)


def put_old_formats(data: Path) -> None:
    """Replace the empty log of a stopped broker by one that an old broker has written."""
    for path in (data / "old-0").glob("0*"):
        path.unlink()
    (data / "old-0" / LOG_NAME).write_bytes(OLD)


def consume(bootstrap: str, topic: str, isolation: str) -> list[tuple[int | None, object, object]]:
    """Return offset, key and value of all records."""
    found: list[Message] = []
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": "unused",
        "isolation.level": isolation,
        "enable.partition.eof": True,
        "enable.auto.commit": False,
    }
    consumer = Consumer(config)
    try:
        consumer.assign([ConfluentPartition(topic, 0, OFFSET_BEGINNING)])
        while True:
            message = consumer.poll(60)
            assert message is not None, f"no end of {topic}"
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                return [(each.offset(), each.key(), each.value()) for each in found]
            else:
                raise AssertionError(error)
    finally:
        consumer.close()


@pytest.mark.parametrize("version", VERSIONS)
async def test_consumers_of_kafka_and_of_its_mirror_read_the_same(tmp_path: Path, version: str) -> None:
    need_kafka(version)
    data, topics = tmp_path / "kafka-data", ("old", "transactions", "compacted")
    kafka = Kafka(version, data, tmp_path / "kafka", log_cleaner_backoff_ms="50", log_cleaner_enable="true")
    kafka.format()

    def prepare() -> Broker:
        with kafka.running() as broker:
            create_topics(broker)
            write_transactions(broker)
            write_until_compacted(broker, data)
        put_old_formats(data)
        kafka.settings["log.cleaner.enable"] = "false"
        return kafka.start()

    def has_all(found: MirrorDescription) -> bool:
        return len(found.partitions) == 3 and all(each.state == "caught_up" for each in found.partitions)

    broker = await asyncio.to_thread(prepare)
    try:
        with start_daemon(tmp_path / "barnabas", "log.cleaner.enable=false") as copy:
            async with admin_of(copy) as admin:
                await admin.mirrors.create(MIRROR, bootstrap=[broker.bootstrap], topics=topics)
            await until(copy, has_all)
            for topic in topics:
                theirs, ours = segments(data, topic), segments(copy.data_directory, topic)
                assert b"".join(ours.values()) == b"".join(theirs.values()), topic
                for isolation in ("read_uncommitted", "read_committed"):
                    expected = await asyncio.to_thread(consume, broker.bootstrap, topic, isolation)
                    assert expected
                    assert await asyncio.to_thread(consume, copy.bootstrap, topic, isolation) == expected, topic
    finally:
        broker.kill()

"""Reading whole topics of a broker in tests."""

from __future__ import annotations

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, TopicPartition
from barnabas.clients.records import ConsumerRecord


async def create_topics(bootstrap: str, *topics: str, partitions: int) -> None:
    async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
        for topic in topics:
            await admin.create_topic(topic, partitions=partitions)


async def count_records(bootstrap: str, topic: str, partitions: int) -> int:
    """Return the number of records, from the partitions' log end offsets; nothing may have been deleted."""
    numbers = [TopicPartition(topic, number) for number in range(partitions)]
    async with Consumer(ConsumerConfig(bootstrap=bootstrap)) as consumer:
        return sum((await consumer.end_offsets(numbers)).values())


async def read_topic(bootstrap: str, topic: str, partitions: int) -> list[ConsumerRecord]:
    """Return every record, by partition and offset."""
    records: list[ConsumerRecord] = []
    numbers = [TopicPartition(topic, number) for number in range(partitions)]
    async with Consumer(ConsumerConfig(bootstrap=bootstrap, offset_reset="earliest")) as consumer:
        await consumer.assign(numbers)
        end = sum((await consumer.end_offsets(numbers)).values())
        while len(records) < end:
            records += await consumer.poll()
    return sorted(records, key=lambda record: (record.partition, record.offset))

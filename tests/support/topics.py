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


async def read_committed_topic(bootstrap: str, topic: str, partitions: int) -> list[ConsumerRecord]:
    """Return every record up to the last stable offset but those of aborted transactions, by partition and offset."""
    records: list[ConsumerRecord] = []
    numbers = [TopicPartition(topic, number) for number in range(partitions)]
    config = ConsumerConfig(bootstrap=bootstrap, offset_reset="earliest", isolation="read_committed", max_wait_ms=50)
    async with Consumer(config) as consumer:
        await consumer.assign(numbers)
        ends = await consumer.end_offsets(numbers)
        while any([await consumer.position(each) < ends[each] for each in numbers]):
            records += await consumer.poll(timeout_ms=100)
    return sorted(records, key=lambda record: (record.partition, record.offset))


async def has_open_transactions(bootstrap: str, topic: str, partitions: int) -> bool:
    """Whether read_committed readers are held back in a partition."""
    numbers = [TopicPartition(topic, number) for number in range(partitions)]
    ends = []
    for isolation in ("read_committed", "read_uncommitted"):
        async with Consumer(ConsumerConfig(bootstrap=bootstrap, isolation=isolation)) as consumer:
            ends.append(await consumer.end_offsets(numbers))
    return ends[0] != ends[1]

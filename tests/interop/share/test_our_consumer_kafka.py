"""ShareConsumer, the client of this project, at Apache Kafka."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path

from confluent_kafka import Producer

from barnabas import ShareConsumer, ShareConsumerConfig
from tests.interop.clients.target import running_kafka

BOUND_S = 90.0
RECORDS = 5


async def test_a_released_record_comes_again_and_the_others_once(tmp_path: Path) -> None:
    with running_kafka("4.3.0", tmp_path) as kafka:
        kafka.create_topic("orders", 1, {})
        config = ShareConsumerConfig(bootstrap=kafka.bootstrap, group="packers", acknowledgement="explicit")
        read: list[tuple[int, int]] = []
        async with asyncio.timeout(BOUND_S), ShareConsumer(config) as queue:
            await queue.subscribe(["orders"])
            producing = asyncio.create_task(produce_on_and_on(kafka.bootstrap))
            try:
                async for record in queue:
                    read.append((int(record.value or b""), record.delivery_count))
                    if len(read) == 1:
                        await queue.release(record)
                    else:
                        await queue.ack(record)
                    if len(read) > RECORDS and read[0][0] in [number for number, _ in read[1:]]:
                        break
            finally:
                producing.cancel()
    first = read[0][0]
    assert read.count((first, 1)) == read.count((first, 2)) == 1
    once = [number for number, deliveries in read if deliveries == 1]
    assert once == list(range(first, first + len(once)))


async def produce_on_and_on(bootstrap: str) -> None:
    """Produce 0, 1, 2, ...: the group begins at the end of the log, wherever that is when it begins."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in count():
        producer.produce("orders", b"%d" % number)
        await asyncio.to_thread(producer.flush, BOUND_S)
        await asyncio.sleep(0.1)

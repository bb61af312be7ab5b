"""Produces and consumes flights with the client library; every wait has a timeout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from barnabas import Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from barnabas.clients.records import ConsumerRecord, RecordMetadata
from demo.flights import Flight

STALL_DEADLINE_S = 20.0
"""Time without a record, while some are expected, after which the demo fails."""

_POLL_RECORDS = 2_000
_REPORT_EVERY = 1_000

Report = Callable[[int], None]
"""Called with the number of records done since the last call."""


class TrafficError(Exception):
    """Records were not acknowledged or not received; the message has the number."""


async def produce_flights(
    bootstrap: str, topic: str, flights: Sequence[Flight], compression: str, report: Report
) -> None:
    """Send every flight in order and wait until each is acknowledged. Raises TrafficError when one is not."""
    failures: list[BaseException] = []

    def look(future: asyncio.Future[RecordMetadata]) -> None:
        error = future.exception()
        if error is not None:
            failures.append(error)

    config = ProducerConfig(bootstrap=bootstrap, compression=compression, client_id="demo-producer")
    async with Producer(config) as producer:
        unreported = 0
        for flight in flights:
            future = await producer.send(topic, flight.value, flight.key, timestamp_ms=flight.timestamp_ms)
            future.add_done_callback(look)
            unreported += 1
            if unreported == _REPORT_EVERY:
                report(unreported)
                unreported = 0
            if failures:
                break
        await producer.flush()
        report(unreported)
    if failures:
        raise TrafficError(f"{len(failures)} records were not acknowledged; the first: {failures[0]}")


async def consume_flights(
    bootstrap: str, topic: str, due: int, take: Callable[[ConsumerRecord], None], report: Report
) -> None:
    """Read all partitions from the beginning until `due` records are received. Raises TrafficError on a stall."""
    loop = asyncio.get_running_loop()
    read = 0
    async with Consumer(ConsumerConfig(bootstrap=bootstrap, client_id="demo-consumer")) as consumer:
        await consumer.assign(await consumer.partitions_for(topic))
        await consumer.seek_to_beginning()
        last_arrival = loop.time()
        while read < due:
            records = await consumer.poll(_POLL_RECORDS)
            if records:
                last_arrival = loop.time()
            elif loop.time() - last_arrival > STALL_DEADLINE_S:
                raise TrafficError(f"received {read} of {due} records, then none for {STALL_DEADLINE_S:.0f} s")
            for record in records:
                take(record)
            read += len(records)
            report(len(records))


async def end_offsets(bootstrap: str, topic: str) -> dict[int, int]:
    """Return partition -> log end offset."""
    async with Consumer(ConsumerConfig(bootstrap=bootstrap)) as consumer:
        ends = await consumer.end_offsets(await consumer.partitions_for(topic))
    return {partition.partition: end for partition, end in ends.items()}


async def first_records_at(bootstrap: str, topic: str, timestamp_ms: int) -> dict[int, ConsumerRecord | None]:
    """Return partition -> the first record at or after a time (None without one), looked up and then read."""
    found: dict[int, ConsumerRecord | None] = {}
    async with Consumer(ConsumerConfig(bootstrap=bootstrap)) as consumer:
        partitions = await consumer.partitions_for(topic)
        listed = await consumer.offsets_for_times(dict.fromkeys(partitions, timestamp_ms))
        for partition in partitions:
            place = listed[partition]
            found[partition.partition] = None
            if place is not None:
                found[partition.partition] = await _read_one(consumer, partition, place.offset)
    return found


async def _read_one(consumer: Consumer, partition: TopicPartition, offset: int) -> ConsumerRecord:
    await consumer.assign([partition])
    consumer.seek(partition, offset)
    records = await consumer.poll(1, STALL_DEADLINE_S * 1000)
    if not records:
        raise TrafficError(f"{partition}: no record received from offset {offset} on within {STALL_DEADLINE_S:.0f} s")
    return records[0]

"""One client in this process: `python -m benchmarks.runs.clients CLIENT WORK BOOTSTRAP TOPIC RECORDS BYTES`.

WORK is `produce` or `consume`, of partition 0, with acks=all and without compression; each library's own defaults
otherwise. Printed as JSON are the seconds and this process's CPU seconds: of a producer from the acknowledgement of one
record more to that of the last one, of a consumer from its start to the last record. So the start of the interpreter
and what a producer does once are not counted.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from typing import Any

import uvloop

from barnabas import Consumer, ConsumerConfig, Producer, ProducerConfig


class Clock:
    """Wall and CPU time of this process since the latest `start`."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        return {"seconds": time.perf_counter() - self._began, "cpu_seconds": time.process_time() - self._cpu}


async def produce_by_barnabas(clock: Clock, bootstrap: str, topic: str, records: int, value: bytes) -> None:
    async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
        await producer.send_and_wait(topic, value, partition=0)
        clock.start()
        futures = [await producer.send(topic, value, partition=0) for _ in range(records)]
        await producer.flush()
        assert futures[-1].result().offset >= 0


async def produce_values_by_barnabas(clock: Clock, bootstrap: str, topic: str, records: int, value: bytes) -> None:
    values = [value] * 1_000
    async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
        await producer.send_and_wait(topic, value, partition=0)
        clock.start()
        left, future = records, None
        while left:
            taken, future = await producer.send_values(topic, values[:left], partition=0)
            left -= taken
        if future is not None:
            await future


async def consume_by_barnabas(bootstrap: str, topic: str, records: int) -> int:
    async with Consumer(ConsumerConfig(bootstrap=bootstrap, offset_reset="earliest")) as consumer:
        await consumer.assign([(topic, 0)])
        found = 0
        while found < records:
            found += len(await consumer.poll())
    return found


async def produce_by_connection(clock: Clock, bootstrap: str, topic: str, records: int, value: bytes) -> None:
    from benchmarks.runs import connection_client  # not for the other lines: an earlier commit may lack its parts

    async with connection_client.connected(bootstrap) as connection:
        await connection_client.produce(connection, topic, 1, value)
        clock.start()
        await connection_client.produce(connection, topic, records, value)


async def consume_by_connection(bootstrap: str, topic: str, records: int) -> int:
    from benchmarks.runs import connection_client

    async with connection_client.connected(bootstrap) as connection:
        return await connection_client.consume(connection, topic, records)


async def produce_by_aiokafka(clock: Clock, bootstrap: str, topic: str, records: int, value: bytes) -> None:
    from aiokafka import AIOKafkaProducer

    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True) as producer:
        await producer.send_and_wait(topic, value, partition=0)
        clock.start()
        futures = [await producer.send(topic, value, partition=0) for _ in range(records)]
        await producer.flush()
        assert futures[-1].result().offset >= 0


async def consume_by_aiokafka(bootstrap: str, topic: str, records: int) -> int:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    async with consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found = 0
        while found < records:
            found += sum(map(len, (await consumer.getmany(timeout_ms=1_000)).values()))
    return found


async def produce_by_confluent_kafka(clock: Clock, bootstrap: str, topic: str, records: int, value: bytes) -> None:
    import confluent_kafka

    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})
    failed: list[object] = []

    def delivered(error: object, _: object) -> None:
        if error is not None:
            failed.append(error)

    producer.produce(topic, value, partition=0, on_delivery=delivered)
    producer.flush()
    clock.start()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value, partition=0, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        if not number % 1_000:
            producer.poll(0)
    if producer.flush() or failed:
        raise RuntimeError(f"not delivered: {failed[:1]}")


async def consume_by_confluent_kafka(bootstrap: str, topic: str, records: int) -> int:
    import confluent_kafka

    settings = {"bootstrap.servers": bootstrap, "group.id": "benchmark", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found = 0
    while found < records:
        for message in consumer.consume(500, 1.0):
            if message.error() is not None:
                raise RuntimeError(str(message.error()))
            message.value()
            found += 1
    consumer.close()
    return found


BARNABAS = "Barnabas"
BARNABAS_VALUES = "Barnabas' send_values"
CONNECTION = "Barnabas' Connection"
AIOKAFKA, CONFLUENT_KAFKA = "aiokafka", "confluent-kafka"
PRODUCERS: dict[str, Callable[[Clock, str, str, int, bytes], Coroutine[Any, Any, None]]] = {
    BARNABAS: produce_by_barnabas,
    BARNABAS_VALUES: produce_values_by_barnabas,
    CONNECTION: produce_by_connection,
    AIOKAFKA: produce_by_aiokafka,
    CONFLUENT_KAFKA: produce_by_confluent_kafka,
}
CONSUMERS: dict[str, Callable[[str, str, int], Coroutine[Any, Any, int]]] = {
    BARNABAS: consume_by_barnabas,
    CONNECTION: consume_by_connection,
    AIOKAFKA: consume_by_aiokafka,
    CONFLUENT_KAFKA: consume_by_confluent_kafka,
}
LIBRARIES = {AIOKAFKA: "aiokafka", CONFLUENT_KAFKA: "confluent_kafka"}


def main(arguments: list[str]) -> None:
    client, work, bootstrap, topic, records, value_bytes = arguments
    if client in LIBRARIES:
        __import__(LIBRARIES[client])  # before the clock starts
    count, value = int(records), bytes(int(value_bytes))
    clock = Clock()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as in Barnabas' commands; aiokafka gains, too
        if work == "produce":
            runner.run(PRODUCERS[client](clock, bootstrap, topic, count, value))
        else:
            runner.run(CONSUMERS[client](bootstrap, topic, count))
        print(json.dumps(clock.read()))


def is_installed(client: str) -> bool:
    """Return whether this Python has the client."""
    return client not in LIBRARIES or find_spec(LIBRARIES[client]) is not None


if __name__ == "__main__":
    main(sys.argv[1:])

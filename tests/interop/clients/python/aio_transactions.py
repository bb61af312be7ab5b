"""Transactions of aiokafka. Its producers live across requests, so all operations run in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError

from tests.interop.clients.python.loop import TRANSFORM_SESSION_MS, Answer, Reading, Request, Transform

TIMEOUT_S = 30.0
_runner = asyncio.Runner()
_producers: dict[str, Any] = {}
_in_transaction: set[str] = set()


async def _open(request: Request) -> Any:
    producer = AIOKafkaProducer(bootstrap_servers=request["bootstrap"], transactional_id=request["transactional_id"])
    await producer.start()
    return producer


async def txn_open(request: Request) -> Answer:
    _producers[request["name"]] = await _open(request)
    return {}


async def _begin(name: str) -> Any:
    producer = _producers[name]
    if name not in _in_transaction:
        await producer.begin_transaction()
        _in_transaction.add(name)
    return producer


async def _send(producer: Any, topic: str, values: list[tuple[int, bytes]]) -> None:
    futures = [await producer.send(topic, value=value, partition=partition) for partition, value in values]
    async with asyncio.timeout(TIMEOUT_S):
        await asyncio.gather(*futures)


async def txn_send(request: Request) -> Answer:
    values = [(request["partition"], value.encode()) for value in request["values"]]
    await _send(await _begin(request["name"]), request["topic"], values)
    return {}


async def txn_offsets(request: Request) -> Answer:
    offsets = {TopicPartition(request["topic"], request["partition"]): request["offset"]}
    producer = await _begin(request["name"])
    await producer.send_offsets_to_transaction(offsets, request["group"])
    return {}


async def txn_end(request: Request) -> Answer:
    _in_transaction.discard(request["name"])
    producer = _producers[request["name"]]
    if request["commit"]:
        await producer.commit_transaction()
    else:
        await producer.abort_transaction()
    return {}


async def txn_close(request: Request) -> Answer:
    _in_transaction.discard(request["name"])
    await _producers.pop(request["name"]).stop()
    return {}


async def read_values(request: Request) -> Answer:
    place = TopicPartition(request["topic"], request["partition"])
    consumer = AIOKafkaConsumer(
        bootstrap_servers=request["bootstrap"],
        group_id=None,
        isolation_level="read_committed" if request["committed"] else "read_uncommitted",
    )
    reading = Reading(request)
    async with consumer:
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        while reading.goes_on():
            for batch in (await consumer.getmany(timeout_ms=100)).values():
                reading.values += [(found.value or b"").decode() for found in batch]
    return {"values": reading.values}


async def transform(request: Request) -> Answer:
    progress = Transform(request)
    while progress.goes_on():
        try:
            await _transform(request, progress)
        except (KafkaError, TimeoutError) as error:
            progress.fail(error)
    return progress.answer()


async def _transform(request: Request, progress: Transform) -> None:
    producer = await _open(request)
    consumer = AIOKafkaConsumer(
        request["topic"],
        bootstrap_servers=request["bootstrap"],
        group_id=request["group"],
        group_instance_id="transformer",
        partition_assignment_strategy=[RangePartitionAssignor],
        session_timeout_ms=TRANSFORM_SESSION_MS,
        heartbeat_interval_ms=300,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    try:
        await consumer.start()
        while progress.goes_on():
            found = await consumer.getmany(timeout_ms=100)
            if not found:
                continue
            values = [(place.partition, record.value) for place, batch in found.items() for record in batch]
            async with producer.transaction():
                await _send(producer, request["output"], values)
                offsets = {place: batch[-1].offset + 1 for place, batch in found.items()}
                await producer.send_offsets_to_transaction(offsets, request["group"])
            progress.committed(len(values))
    finally:
        await consumer.stop()
        await producer.stop()


def _run(operation: Callable[[Request], Awaitable[Answer]]) -> Callable[[Request], Answer]:
    async def answered(request: Request) -> Answer:
        return await operation(request)

    return lambda request: _runner.run(answered(request))


OPERATIONS = {
    "txn_open": _run(txn_open),
    "txn_send": _run(txn_send),
    "txn_offsets": _run(txn_offsets),
    "txn_end": _run(txn_end),
    "txn_close": _run(txn_close),
    "read_values": _run(read_values),
    "transform": _run(transform),
}

"""Driver for aiokafka."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from tests.interop.clients.python import aio_transactions
from tests.interop.clients.python.loop import Answer, Request, Stream, packed_record, send_arguments, serve

TIMEOUT_S = 30.0
TIMEOUT_MS = 30_000


def _producer(request: Request) -> Any:
    acks = request.get("acks", "all")
    codec = request.get("codec", "none")
    return AIOKafkaProducer(
        bootstrap_servers=request["bootstrap"],
        acks=acks if acks == "all" else int(acks),
        compression_type=None if codec == "none" else codec,
        enable_idempotence=request.get("idempotence", False),
        max_request_size=10_000_000,
        linger_ms=20,
    )


async def produce(request: Request) -> Answer:
    results: list[Answer] = []
    async with _producer(request) as producer:
        futures = [await producer.send(request["topic"], **send_arguments(record)) for record in request["records"]]
        for future in futures:
            try:
                metadata = await asyncio.wait_for(future, TIMEOUT_S)
                results.append({"offset": getattr(metadata, "offset", None), "error": None})
            except KafkaError as error:
                results.append({"offset": None, "error": getattr(error, "errno", None) or repr(error)})
    return {"results": results}


async def stream(request: Request) -> Answer:
    numbers = Stream(request)

    def answered(future: asyncio.Future[Any]) -> None:
        numbers.ack(future.exception())

    async with _producer({**request, "idempotence": True}) as producer:
        while await asyncio.to_thread(numbers.goes_on):
            future = await producer.send(request["topic"], value=numbers.next_value(), partition=0)
            future.add_done_callback(answered)
        await asyncio.wait_for(producer.flush(), TIMEOUT_S)
    return numbers.answer()


def _consumer(request: Request) -> Any:
    return AIOKafkaConsumer(
        bootstrap_servers=request["bootstrap"],
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=10_000_000,
    )


async def read(request: Request) -> Answer:
    place = TopicPartition(request["topic"], request["partition"])
    records: list[Answer] = []
    async with _consumer(request) as consumer:
        consumer.assign([place])
        if request.get("timestamp") is not None:
            consumer.seek(place, (await consumer.offsets_for_times({place: request["timestamp"]}))[place].offset)
        elif request.get("offset") is not None:
            consumer.seek(place, request["offset"])
        else:
            await consumer.seek_to_beginning(place)
        async with asyncio.timeout(TIMEOUT_S):
            while len(records) < request["count"]:
                for batch in (await consumer.getmany(timeout_ms=1000)).values():
                    for found in batch:
                        headers = [(name, content) for name, content in found.headers]
                        records.append(packed_record(found.offset, found.timestamp, found.key, found.value, headers))
    return {"records": records[: request["count"]]}


async def offsets(request: Request) -> Answer:
    place = TopicPartition(request["topic"], request["partition"])
    async with _consumer(request) as consumer:
        return {
            "earliest": (await consumer.beginning_offsets([place]))[place],
            "latest": (await consumer.end_offsets([place]))[place],
            "at": (await consumer.offsets_for_times({place: request["timestamp"]}))[place].offset,
        }


def _check(response: Any) -> None:
    """Raise the error in an admin response, which aiokafka's admin client does not check."""
    for entry in getattr(response, "topic_errors", None) or getattr(response, "topic_error_codes", None) or ():
        if entry[1]:
            raise RuntimeError(f"error {entry[1]}: {entry}")


def with_admin(work: Callable[[Any, Request], Awaitable[Answer]]) -> Callable[[Request], Awaitable[Answer]]:
    async def connected(request: Request) -> Answer:
        admin = AIOKafkaAdminClient(bootstrap_servers=request["bootstrap"])
        await admin.start()
        try:
            return await work(admin, request)
        finally:
            await admin.close()

    return connected


async def create_topic(admin: Any, request: Request) -> Answer:
    topic = NewTopic(request["topic"], request["partitions"], 1, topic_configs=request["configs"])
    _check(await admin.create_topics([topic], timeout_ms=TIMEOUT_MS))
    return {}


async def topics(admin: Any, _request: Request) -> Answer:
    described = await admin.describe_topics(await admin.list_topics())
    return {"topics": {topic["topic"]: len(topic["partitions"]) for topic in described}}


async def describe_configs(admin: Any, request: Request) -> Answer:
    responses = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, request["topic"])])
    ((error, message, _type, _name, entries),) = responses[0].resources
    if error:
        raise RuntimeError(f"error {error}: {message}")
    return {"configs": {entry[0]: entry[1] for entry in entries}}


async def alter_configs(admin: Any, request: Request) -> Answer:
    resource = ConfigResource(ConfigResourceType.TOPIC, request["topic"], configs=request["configs"])
    for response in await admin.alter_configs([resource]):
        for error, message, *_ in response.resources:
            if error:
                raise RuntimeError(f"error {error}: {message}")
    return {}


async def create_partitions(admin: Any, request: Request) -> Answer:
    _check(await admin.create_partitions({request["topic"]: NewPartitions(request["partitions"])}))
    return {}


async def delete_records(admin: Any, request: Request) -> Answer:
    place = TopicPartition(request["topic"], request["partition"])
    found = await admin.delete_records({place: RecordsToDelete(before_offset=request["offset"])})
    return {"low_watermark": found[place]}


async def delete_topic(admin: Any, request: Request) -> Answer:
    _check(await admin.delete_topics([request["topic"]], timeout_ms=TIMEOUT_MS))
    return {}


async def cluster(admin: Any, _request: Request) -> Answer:
    found = await admin.describe_cluster()
    return {
        "cluster_id": found["cluster_id"],
        "brokers": [f"{broker['host']}:{broker['port']}" for broker in found["brokers"]],
    }


def _run(operation: Callable[[Request], Awaitable[Answer]]) -> Callable[[Request], Answer]:
    async def answered(request: Request) -> Answer:
        return await operation(request)

    return lambda request: asyncio.run(answered(request))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    plain = {"produce": produce, "stream": stream, "read": read, "offsets": offsets}
    administrative = {
        "create_topic": create_topic,
        "topics": topics,
        "describe_configs": describe_configs,
        "alter_configs": alter_configs,
        "create_partitions": create_partitions,
        "delete_records": delete_records,
        "delete_topic": delete_topic,
        "cluster": cluster,
    }
    serve(
        {
            "version": lambda _: {"version": aiokafka.__version__},
            **{name: _run(operation) for name, operation in plain.items()},
            **{name: _run(with_admin(operation)) for name, operation in administrative.items()},
            **aio_transactions.OPERATIONS,
        }
    )

"""Produce and fetch by one connection alone, in batches, without a future for each record: a floor of our clients."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from barnabas.clients.addresses import Address
from barnabas.clients.config import ClientConfig
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.node_connections import settings_of
from barnabas.clients.records import ConsumerRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.fetch import (
    TOPIC_IDS_FROM,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.protocol.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.records.reader import read_fetched

BATCH_BYTES = 64 * 1024
FETCH_BYTES = 1 << 20
TIMEOUT_MS = 30_000


@asynccontextmanager
async def connected(bootstrap: str) -> AsyncIterator[Connection]:
    """Open a connection."""
    host, _, port = bootstrap.rpartition(":")
    settings = settings_of(ClientConfig(bootstrap=bootstrap))
    connection = await Connection.open(Address(host, int(port)), settings)
    try:
        yield connection
    finally:
        connection.close()


async def produce(connection: Connection, topic: str, records: int, value: bytes) -> None:
    """Send batches as the producer does, one in flight while the next one fills."""
    sent: asyncio.Task[None] | None = None
    while records:
        builder = RecordBatchBuilder(max_bytes=BATCH_BYTES)
        while records and builder.append(time.time_ns() // 1_000_000, None, value):
            records -= 1
        if sent is not None:
            await sent
        sent = asyncio.create_task(_send(connection, topic, builder.build()))
    if sent is not None:
        await sent


async def consume(connection: Connection, topic: str, records: int) -> int:
    """Fetch and decode from the beginning, one fetch in flight meanwhile, as the consumer does."""
    found = offset = 0
    fetched = asyncio.create_task(_fetch(connection, topic, offset))
    while found < records:
        batches = list(iter_batches(await fetched))
        offset = batches[-1].next_offset if batches else offset
        fetched = asyncio.create_task(_fetch(connection, topic, offset))
        await asyncio.sleep(0)
        for batch in batches:
            batch.ensure_valid()
            found += len(read_fetched(batch, ConsumerRecord, topic, 0, max_decompressed_bytes=FETCH_BYTES))
    fetched.cancel()
    return found


async def _send(connection: Connection, topic: str, batch: bytes) -> None:
    topics = [ProduceTopic(name=topic, partitions=[ProducePartition(0, memoryview(batch))])]
    answer = await connection.request(ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topics=topics))
    _check(answer.topics[0].partitions[0].error)


async def _fetch(connection: Connection, topic: str, offset: int) -> memoryview:
    wanted = FetchTopic(name=topic, partitions=[FetchPartition(partition=0, offset=offset, max_bytes=FETCH_BYTES)])
    query = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=FETCH_BYTES, topics=[wanted])
    answer: FetchResponse = await connection.request(query, highest=TOPIC_IDS_FROM - 1)
    partition = answer.topics[0].partitions[0]
    _check(partition.error)
    return partition.data


def _check(error: ErrorCode) -> None:
    if error is not ErrorCode.NONE:
        raise RuntimeError(f"the broker answered {error!r}")

"""A client whose broker throttles it: requests wait for that time, and their timeouts begin after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas import Producer, ProducerConfig
from barnabas.clients.errors import ClosedError
from barnabas.clients.network.connection import Connection
from barnabas.protocol.dialects import KAFKA
from barnabas.protocol.framing import SIZE_PREFIX
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionRange, ApiVersionsResponse
from barnabas.protocol.messages.topics.metadata import MetadataRequest, MetadataResponse
from tests.clients.test_connection import peer, settings
from tests.support.daemon import start_daemon
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.quotas import alter_quotas
from tests.support.metrics import metric

THROTTLE_MS = 400
TIMEOUT_MS = 300
"""Shorter than the throttle."""


class ThrottlingBroker:
    """Throttles after the first Metadata request, and serves nothing before the throttle is over, like a real one."""

    def __init__(self) -> None:
        self.received: list[ApiKey] = []
        self.muted_until = 0.0
        self.too_early = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                size = int.from_bytes(await reader.readexactly(SIZE_PREFIX), "big")
                header = KAFKA.read_request(memoryview(await reader.readexactly(size)))
            except asyncio.IncompleteReadError:
                return
            self.received.append(ApiKey(header.api))
            if loop.time() < self.muted_until:
                self.too_early += 1
                await asyncio.sleep(self.muted_until - loop.time())
            response: Any = MetadataResponse(cluster_id="c", brokers=[], topics=[])
            if header.api == ApiKey.API_VERSIONS:
                apis = [
                    ApiVersionRange(api=api, min_version=4, max_version=4)
                    for api in (ApiKey.API_VERSIONS, ApiKey.METADATA)
                ]
                response = ApiVersionsResponse(apis=apis)
            frame, _ = KAFKA.encode_response(header, response)
            if self.received.count(ApiKey.METADATA) == 1:
                frame = KAFKA.with_throttle(header, frame, THROTTLE_MS)
                self.muted_until = loop.time() + THROTTLE_MS / 1000
            writer.write(frame)


@asynccontextmanager
async def throttled() -> AsyncIterator[tuple[Connection, ThrottlingBroker]]:
    broker = ThrottlingBroker()
    async with peer(broker.serve) as address:
        connection = await Connection.open(address, settings(request_timeout_ms=TIMEOUT_MS))
        try:
            yield connection, broker
        finally:
            connection.close()


def ask(connection: Connection) -> asyncio.Future[Any]:
    return connection.request(MetadataRequest.of_names(None))


async def test_requests_wait_for_the_end_of_the_throttle_and_time_out_after_it() -> None:
    async with throttled() as (connection, broker):
        writable = asyncio.Event()
        connection.on_writable = writable.set
        await ask(connection)
        assert not connection.writable
        answers = [ask(connection), ask(connection)]
        connection.resume_writing()
        assert not writable.is_set(), "an empty write buffer does not end the throttle"
        await asyncio.gather(*answers)
        assert writable.is_set()
        assert broker.too_early == 0


async def test_a_request_sent_before_the_throttle_does_not_time_out_in_it() -> None:
    async with throttled() as (connection, broker):
        await asyncio.gather(ask(connection), ask(connection))
        assert broker.too_early == 1


async def test_closing_fails_the_requests_that_wait() -> None:
    async with throttled() as (connection, broker):
        await ask(connection)
        waiting = ask(connection)
        connection.close()
        with pytest.raises(ClosedError):
            await waiting
        await connection.wait_closed()
        assert broker.received.count(ApiKey.METADATA) == 1


async def test_a_producer_above_its_quota_delivers_everything(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        with KafkaWire(daemon.host, daemon.port) as admin:
            alter_quotas(admin, "client-id", "greedy", producer_byte_rate=100_000.0)
        config = ProducerConfig(
            bootstrap=f"{daemon.host}:{daemon.port}", client_id="greedy", request_timeout_ms=1000, max_in_flight=1
        )
        async with Producer(config) as producer:
            sent = [await producer.send("t", bytes(10_000)) for _ in range(115)]
            await producer.flush()
            assert [(await each).offset for each in sent] == list(range(115))
        assert (metric(daemon, 'barnabas_throttled_requests_total{quota="producer_byte_rate"}') or 0) > 0

"""A connection by Kafka's protocol: requests in flight, cancelled callers, and peers that answer badly or never."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.clients.addresses import Address
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    ClosedError,
    ProtocolViolationError,
)
from barnabas.clients.kafka.connection import KafkaConnection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client.fetch import FETCH
from barnabas.protocol.kafka.client.list_groups import LIST_GROUPS
from barnabas.protocol.messages.data.fetch import FetchRequest
from barnabas.protocol.messages.groups.groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

SERVED = b"\0\0\0\0\0\1\0\x10\0\0\0\2"
"""Body of an answer to ApiVersions 0: ListGroups in versions 0 to 2."""


def config(**settings: Any) -> ClientConfig:
    return ClientConfig(**{"request_timeout_ms": 20_000, **settings})


async def frame(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


def answer(request: bytes, body: bytes) -> bytes:
    return (4 + len(body)).to_bytes(4, "big") + request[4:8] + body


def group(name: str) -> bytes:
    """The body of an answer to ListGroups 2 with one group."""
    return bytes(6) + b"\0\0\0\1\0" + bytes([len(name)]) + name.encode() + b"\0\0"


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, served: bytes = SERVED) -> None:
    """Answer as a broker that has ApiVersions 0 only."""
    writer.write(answer(await frame(reader), b"\0\x23\0\0\0\0"))
    writer.write(answer(await frame(reader), served))


@asynccontextmanager
async def connected(peer: Peer, max_answer_bytes: int = 1 << 20, **settings: Any) -> AsyncIterator[KafkaConnection]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await peer(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = Address(*server.sockets[0].getsockname()[:2])
    try:
        connection = await KafkaConnection.open(address, config(**settings), max_answer_bytes=max_answer_bytes)
        try:
            yield connection
        finally:
            connection.close()
    finally:
        server.close()


async def listed(connection: KafkaConnection) -> str:
    answer: ListGroupsResponse = await connection.request(LIST_GROUPS, ListGroupsRequest())
    (found,) = answer.groups
    assert isinstance(found, ListedGroup)
    return found.group_id


async def test_answers_belong_to_the_requests_in_flight_in_their_order() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        requests = [await frame(reader) for _ in range(3)]
        for request, name in zip(requests, "abc", strict=True):
            writer.write(answer(request, group(name)))
        await reader.read()

    async with connected(peer) as connection:
        assert connection.version_of(LIST_GROUPS) == 2
        assert await asyncio.gather(*(listed(connection) for _ in range(3))) == ["a", "b", "c"]
        assert connection.is_idle


async def test_a_cancelled_caller_leaves_the_connection_to_the_others() -> None:
    first_came = asyncio.Event()
    may_answer = asyncio.Event()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        first = await frame(reader)
        first_came.set()
        await may_answer.wait()
        writer.write(answer(first, group("late")))
        writer.write(answer(await frame(reader), group("b")))
        await reader.read()

    async with connected(peer) as connection:
        cancelled = asyncio.create_task(listed(connection))
        await first_came.wait()
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        second = asyncio.create_task(listed(connection))
        may_answer.set()
        assert await second == "b"
        assert not connection.is_closed


async def test_a_request_without_an_answer_in_time_fails_all_in_flight_and_closes() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        await reader.read()

    async with connected(peer) as connection:
        late = connection.request(LIST_GROUPS, ListGroupsRequest(), timeout_ms=20)
        results = await asyncio.gather(listed(connection), late, listed(connection), return_exceptions=True)
        assert [type(each) for each in results] == [BrokerTimeoutError] * 3
        assert connection.is_closed
        with pytest.raises(BrokerTimeoutError, match=r"no answer within 0\.02 s"):
            await listed(connection)


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        (lambda request: answer(bytes(8), group("a")), "correlation id 0, not 3"),
        (lambda request: b"\x7f\xff\xff\xff", "frame size 2147483647 is above 1048576 bytes, the limit of this client"),
        (lambda request: b"\0\0\0\2ab", "an answer of 2 bytes"),
        (lambda request: answer(request, b"\0\0"), "list_groups: throttle_ms: the message ends"),
        (lambda request: answer(request, group("a")) * 2, "correlation id 3, not 4"),
        (lambda request: answer(request, group("a")) + answer(request[:7] + b"\4", group("a")) * 2, "no request is in"),
    ],
)
async def test_an_invalid_answer_closes_the_connection(sent: Callable[[bytes], bytes], sentence: str) -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        writer.write(sent(await frame(reader)))
        await reader.read()

    async with connected(peer) as connection:
        await asyncio.gather(listed(connection), listed(connection), return_exceptions=True)
        with pytest.raises(ProtocolViolationError, match=f"{sentence}.*is it a Kafka broker"):
            await listed(connection)
        assert connection.is_closed


async def test_a_lost_connection_fails_requests_in_flight() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        await frame(reader)

    async with connected(peer) as connection:
        with pytest.raises(BrokerConnectionError, match="the broker closed the connection"):
            await listed(connection)


async def test_closing_fails_requests_in_flight() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        await reader.read()

    async with connected(peer) as connection:
        waiting = asyncio.create_task(listed(connection))
        await asyncio.sleep(0)
        connection.close()
        with pytest.raises(ClosedError):
            await waiting


async def test_an_api_without_a_common_version_is_an_error_that_names_both_ranges() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer, b"\0\0\0\0\0\1\0\1\0\0\0\3")
        await reader.read()

    async with connected(peer) as connection:
        query = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1, topics=())
        with pytest.raises(ProtocolViolationError, match="from 4 to 17, and the broker serves versions 0 to 3"):
            await connection.request(FETCH, query)
        with pytest.raises(ProtocolViolationError, match="from 0 to 5, and the broker does not serve it"):
            await listed(connection)


async def test_a_large_answer_arrives_in_pieces() -> None:
    name = "g" * 100
    body = bytes(6) + (3000).to_bytes(4, "big") + (b"\0" + bytes([len(name)]) + name.encode() + b"\0\0") * 3000

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        data = answer(await frame(reader), body)
        for start in range(0, len(data), 50_000):
            writer.write(data[start : start + 50_000])
            await writer.drain()
        writer.write(answer(await frame(reader), group("b")))
        await reader.read()

    async with connected(peer) as connection:
        first, second = await asyncio.gather(
            connection.request(LIST_GROUPS, ListGroupsRequest()), connection.request(LIST_GROUPS, ListGroupsRequest())
        )
        assert [each.group_id for each in first.groups] == [name] * 3000
        assert second.error is ErrorCode.NONE


async def test_a_peer_that_never_greets_is_a_timeout() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    with pytest.raises(BrokerTimeoutError, match="no answer within"):
        async with connected(peer, request_timeout_ms=20):
            pass

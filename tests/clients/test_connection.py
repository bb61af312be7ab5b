"""The connection against a real socket, whose other end sends bytes chosen by the test, split as it chooses."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.clients.addresses import Address
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientError,
    ClosedError,
    ProtocolViolationError,
    RefusedError,
)
from barnabas.clients.network.connection import Connection, ConnectionSettings
from barnabas.clients.security.settings import PLAINTEXT_SETTINGS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import OWN_KEYS, ApiKey
from barnabas.protocol.messages.cluster.explain_start import ExplainStartRequest
from barnabas.protocol.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from barnabas.protocol.messages.topics.metadata import MetadataRequest, MetadataResponse, TopicMetadata
from barnabas.protocol.messages.topics.topics import DeleteTopicsRequest
from tests.clients.fake_broker import Drop, FakeBroker, Hold, Raw, Silence

ALL_TOPICS = MetadataRequest.of_names(None)
METADATA_VERSION = 13


def settings(**changes: Any) -> ConnectionSettings:
    values: dict[str, Any] = {
        "connect_timeout_ms": 5000,
        "request_timeout_ms": 5000,
        "max_frame_bytes": 1 << 20,
        **changes,
    }
    return ConnectionSettings(client_id="test", client_version="1", **values)


@asynccontextmanager
async def connected(broker: FakeBroker, **changes: int) -> AsyncIterator[Connection]:
    connection = await Connection.open(Address(broker.host, broker.port), settings(**changes))
    try:
        yield connection
    finally:
        connection.close()


@asynccontextmanager
async def peer(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[Address]:
    """A server that is not a broker."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()
        await server.wait_closed()


def answer(correlation_id: int, response: MetadataResponse) -> bytes:
    """The frame of an answer in the latest version of metadata."""
    body = b"\0" + response.encode(METADATA_VERSION)
    return (4 + len(body)).to_bytes(4, "big") + correlation_id.to_bytes(4, "big") + body


async def test_responses_reach_their_requests_in_order(broker: FakeBroker) -> None:
    async with connected(broker) as connection:
        futures = [connection.request(MetadataRequest.of_names([name])) for name in ("orders", "x", "lines")]
        answers: list[MetadataResponse] = await asyncio.gather(*futures)
        assert [answer.topics[0].name for answer in answers] == ["orders", "x", "lines"]
        assert not connection._pending


async def test_a_response_received_byte_by_byte_is_reassembled(broker: FakeBroker) -> None:
    async with connected(broker) as connection:
        request = connection.request(ALL_TOPICS)
        response = MetadataResponse(cluster_id="c", brokers=[], topics=[TopicMetadata(name="t")])
        broker.intercept = lambda api, asked: Silence()
        for byte in answer(1, response):
            connection.get_buffer(-1)[:1] = bytes([byte])
            connection.buffer_updated(1)
        assert await request == response


async def test_several_responses_in_one_read_and_a_partial_one_after_them_are_all_parsed(broker: FakeBroker) -> None:
    async with connected(broker) as connection:
        broker.intercept = lambda api, asked: Silence()
        requests = [connection.request(ALL_TOPICS) for _ in range(3)]
        data = b"".join(
            answer(number, MetadataResponse(cluster_id=str(number), brokers=[], topics=[])) for number in (1, 2, 3)
        )
        for part in (data[: len(data) - 7], data[len(data) - 7 :]):
            connection.get_buffer(-1)[: len(part)] = part
            connection.buffer_updated(len(part))
        assert [(await request).cluster_id for request in requests] == ["1", "2", "3"]


@pytest.mark.parametrize("topics", [1, 2000, 9000])
async def test_a_response_of_any_size_up_to_the_limit_arrives_whole(broker: FakeBroker, topics: int) -> None:
    for number in range(topics):
        broker.create(f"topic-with-a-name-that-fills-the-frame-{number:06}")
    async with connected(broker) as connection:
        for _ in range(3):  # the shared buffer and the frame's own one take turns
            answer = await connection.request(ALL_TOPICS)
            assert len(answer.topics) == topics + 2
            assert len((await connection.request(MetadataRequest.of_names(["lines"]))).topics) == 1


async def test_a_response_above_max_frame_bytes_closes_the_connection_with_an_error(broker: FakeBroker) -> None:
    for number in range(100):
        broker.create(f"topic-{number}")
    async with connected(broker, max_frame_bytes=1024) as connection:
        with pytest.raises(ProtocolViolationError, match=r"frame size \d+ is above .*=1024"):
            await connection.request(ALL_TOPICS)
        assert connection.closed


async def test_a_refused_connection_is_an_error_with_the_address_and_what_to_check() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]  # bound, not listening: refused
        with pytest.raises(BrokerConnectionError) as failure:
            await Connection.open(Address("127.0.0.1", port), settings())
    assert f"cannot connect to 127.0.0.1:{port}: " in str(failure.value)
    assert "check that a Barnabas broker listens there" in str(failure.value)
    assert isinstance(failure.value, ConnectionError)


async def test_an_unknown_host_is_an_error() -> None:
    with pytest.raises(BrokerConnectionError, match=r"cannot connect to no-such-host\.invalid:9092"):
        await Connection.open(Address("no-such-host.invalid", 9092), settings())


async def test_a_silent_peer_is_given_up_after_connect_timeout() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with peer(silent) as address:
        with pytest.raises(
            BrokerConnectionError, match=r"takes connections, but did not answer .* connect_timeout_ms=50"
        ):
            await Connection.open(address, settings(connect_timeout_ms=50))


async def test_a_peer_that_closes_on_the_greeting_is_reported_with_what_to_check() -> None:
    async def kafka(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)

    async with peer(kafka) as address:
        with pytest.raises(
            BrokerConnectionError, match=r"before it answered the greeting.*check that a broker listens there"
        ):
            await Connection.open(address, settings())


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00\x00\x00\x02\x00\x00",
        b"\x00\x00\x00\x08\x00\x00\x00\x07\x00\x00\x00\x00",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x09",
    ],
    ids=["http", "no header", "another correlation id", "negative size", "an array that is longer than its frame"],
)
async def test_bytes_of_another_protocol_close_the_connection_with_a_clear_error(answer: bytes) -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.write(answer)
        await reader.read()

    async with peer(other) as address:
        with pytest.raises(ProtocolViolationError, match=r"127\.0\.0\.1:\d+ does not speak Kafka's protocol"):
            await Connection.open(address, settings(max_frame_bytes=1 << 26))


async def test_a_response_with_a_wrong_correlation_id_closes_the_connection(broker: FakeBroker) -> None:
    raw = Raw(answer(77, MetadataResponse(cluster_id="c", brokers=[], topics=[])))
    broker.intercept = lambda api, request: raw if api is ApiKey.METADATA else None
    async with connected(broker) as connection:
        first = connection.request(ALL_TOPICS)
        second = connection.request(ALL_TOPICS)
        with pytest.raises(ProtocolViolationError, match=r"correlation id 77, not 1"):
            await first
        with pytest.raises(ProtocolViolationError):
            await second


async def test_an_unrequested_response_closes_the_connection(broker: FakeBroker) -> None:
    async with connected(broker) as connection:
        data = answer(5, MetadataResponse(cluster_id="c", brokers=[], topics=[]))
        connection.get_buffer(-1)[: len(data)] = data
        connection.buffer_updated(len(data))
        assert connection.closed


async def test_a_response_with_a_wrong_body_fails_its_request_and_closes(broker: FakeBroker) -> None:
    raw = (5).to_bytes(4, "big") + (1).to_bytes(4, "big") + b"\0"  # correlation id 1, an empty body
    broker.intercept = lambda api, request: Raw(raw) if api is ApiKey.METADATA else None
    async with connected(broker) as connection:
        with pytest.raises(ProtocolViolationError, match="metadata: throttle_ms"):
            await connection.request(ALL_TOPICS)
        assert connection.closed


async def test_a_lost_connection_fails_every_request_in_flight_and_names_the_broker(broker: FakeBroker) -> None:
    closed: list[Connection] = []
    async with connected(broker) as connection:
        connection.on_closed = closed.append
        broker.intercept = lambda api, request: Drop()
        requests = [connection.request(ALL_TOPICS) for _ in range(3)]
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        assert all(isinstance(outcome, BrokerConnectionError) for outcome in outcomes)
        assert f"the connection to 127.0.0.1:{broker.port} was lost" in str(outcomes[0])
        assert "unanswered requests (3)" in str(outcomes[0])
        assert len({id(outcome) for outcome in outcomes}) == 3
        assert closed == [connection]
        with pytest.raises(BrokerConnectionError):
            connection.request(ALL_TOPICS)


async def test_a_request_between_the_peers_close_and_connection_lost_is_refused(broker: FakeBroker) -> None:
    async with connected(broker) as connection:
        assert connection._transport is not None
        connection._transport.close()  # as asyncio does at the end of the stream; it calls connection_lost later
        produce = ProduceRequest(
            acks=1,
            timeout_ms=1000,
            topics=[ProduceTopic(name="lines", partitions=[ProducePartition(0, memoryview(bytes(100)))])],
        )
        with pytest.raises(BrokerConnectionError, match="was lost"):
            connection.request(ALL_TOPICS)
        with pytest.raises(BrokerConnectionError, match="was lost"):
            connection.request(produce)


async def test_a_response_timeout_fails_all_requests_and_closes(broker: FakeBroker) -> None:
    async with connected(broker, request_timeout_ms=60_000) as connection:
        broker.intercept = lambda api, request: Silence()
        patient = connection.request(ALL_TOPICS)
        hasty = connection.request(ALL_TOPICS, timeout_ms=30)
        async with asyncio.timeout(30):
            with pytest.raises(BrokerTimeoutError, match="did not answer metadata within 30 ms"):
                await hasty
        with pytest.raises(BrokerTimeoutError):
            await patient
        assert connection.closed


async def test_a_timer_that_fires_for_an_answered_request_leaves_the_others_alone(broker: FakeBroker) -> None:
    async with connected(broker) as connection:
        await connection.request(ALL_TOPICS, timeout_ms=40)
        release = asyncio.Event()
        broker.intercept = lambda api, request: Hold(release)
        slow = connection.request(ALL_TOPICS)
        asyncio.get_running_loop().call_later(0.08, release.set)
        assert (await slow).cluster_id == "fake-cluster"


async def test_the_response_to_a_cancelled_request_is_dropped_and_the_next_one_delivered(broker: FakeBroker) -> None:
    release = asyncio.Event()
    async with connected(broker) as connection:
        broker.intercept = lambda api, request: Hold(release)
        given_up = connection.request(MetadataRequest.of_names(["orders"]))
        wanted = connection.request(MetadataRequest.of_names(["lines"]))
        given_up.cancel()
        release.set()
        assert (await wanted).topics[0].name == "lines"


async def test_closing_fails_waiting_and_later_requests(broker: FakeBroker) -> None:
    async with connected(broker) as connection:
        broker.intercept = lambda api, request: Silence()
        waiting = connection.request(ALL_TOPICS)
        connection.close()
        connection.close()
        with pytest.raises(ClosedError):
            await waiting
        with pytest.raises(ClosedError):
            connection.request(ALL_TOPICS)


async def test_an_api_that_the_broker_does_not_serve_is_refused_before_it_is_sent(broker: FakeBroker) -> None:
    broker.apis = {key: broker.apis[key] for key in (ApiKey.API_VERSIONS, ApiKey.METADATA)}
    async with connected(broker) as connection:
        with pytest.raises(RefusedError, match="does not serve delete_topics") as refusal:
            connection.request(DeleteTopicsRequest(names=[]))
        assert refusal.value.code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("served", "sentence"),
    [
        ({}, "does not serve delete_topics$"),
        (
            {int(ApiKey.DELETE_TOPICS): (90, 99)},
            "not serve delete_topics in a version that this client has, only in 90",
        ),
    ],
)
async def test_an_api_without_a_common_version_is_refused_with_the_brokers_versions(
    broker: FakeBroker, served: dict[int, tuple[int, int]], sentence: str
) -> None:
    broker.apis = {key: broker.apis[key] for key in (ApiKey.API_VERSIONS, ApiKey.METADATA)} | served
    async with connected(broker) as connection:
        with pytest.raises(RefusedError, match=sentence):
            connection.request(DeleteTopicsRequest(names=[]))


async def test_what_only_barnabas_answers_says_so(broker: FakeBroker) -> None:
    broker.apis = {key: versions for key, versions in broker.apis.items() if key not in OWN_KEYS}
    async with connected(broker) as connection:
        with pytest.raises(
            RefusedError, match=r"explain_start needs a Barnabas broker; 127\.0\.0\.1:\d+ is Apache Kafka"
        ):
            connection.request(ExplainStartRequest())


async def test_a_broker_without_the_clients_version_of_the_greeting_is_greeted_again(broker: FakeBroker) -> None:
    """As by Kafka: the refusal is in version 0, with the versions that it has."""
    asked: list[int] = []

    def refuse_new_ones(api: ApiKey, request: Any) -> Any:
        if api is ApiKey.API_VERSIONS:
            asked.append(request.version)
            if request.version > 0:
                refusal = request.refused(ErrorCode.UNSUPPORTED_VERSION, "").encode(0)
                return Raw((4 + len(refusal)).to_bytes(4, "big") + (0).to_bytes(4, "big") + refusal)
        return None

    broker.intercept = refuse_new_ones
    async with connected(broker) as connection:
        assert asked == [4, 0]
        await connection.request(ALL_TOPICS)


async def test_a_login_waits_for_the_requests_that_are_on_their_way_and_holds_others_back(broker: FakeBroker) -> None:
    release = asyncio.Event()
    async with connected(broker) as connection:
        began = asyncio.Event()

        async def log_in(settings: object) -> None:
            began.set()

        connection._log_in = log_in  # type: ignore[assignment, method-assign]
        broker.intercept = lambda api, request: Hold(release)
        on_its_way = connection.request(ALL_TOPICS)
        connection._begin_login(PLAINTEXT_SETTINGS)
        await asyncio.sleep(0)
        held = connection.request(ALL_TOPICS)
        assert not began.is_set()
        assert len(connection._pending) == 1
        release.set()
        await on_its_way
        await held
        assert began.is_set()


async def test_a_login_that_fails_by_a_bug_closes_the_connection_and_fails_what_it_held_back(
    broker: FakeBroker,
) -> None:
    async with connected(broker) as connection:

        async def log_in(settings: object) -> None:
            raise KeyError("bug")

        connection._log_in = log_in  # type: ignore[assignment, method-assign]
        connection._begin_login(PLAINTEXT_SETTINGS)
        await asyncio.sleep(0)
        with pytest.raises(ClientError, match="internal error"):
            await connection.request(ALL_TOPICS)
        assert connection.closed


async def test_a_connection_that_is_left_during_a_login_is_closed_after_it(broker: FakeBroker) -> None:
    async with connected(broker) as connection:
        release = asyncio.Event()

        async def log_in(settings: object) -> None:
            await release.wait()

        connection._log_in = log_in  # type: ignore[assignment, method-assign]
        connection._begin_login(PLAINTEXT_SETTINGS)
        await asyncio.sleep(0)
        connection.close_when_idle()
        assert not connection.closed
        release.set()
        assert connection._login is not None
        await connection._login
        assert connection.closed

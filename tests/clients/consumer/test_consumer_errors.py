"""Errors of the consumer: lost offsets, damaged batches, unreachable brokers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.consumer import Consumer
from barnabas.clients.errors import (
    BrokerConnectionError,
    ClientError,
    CorruptBatchError,
    OffsetOutOfRangeError,
    RefusedError,
    UnknownTopicError,
)
from barnabas.protocol.compression import Codec
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.fetch import FetchPartitionResult, FetchResponse, FetchTopicResult
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.wire.pieces import RecordBytes
from tests.clients.fake_broker import Drop, FakeBroker, RefusePartitions, Respond
from tests.clients.waiting import turns

LINES = TopicPartition("lines", 0)
ORDERS = [TopicPartition("orders", partition) for partition in range(3)]
QUICK = {
    "offset_reset": "earliest",
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 20,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 20,
}


def fill(broker: FakeBroker, partition: TopicPartition, first: int, count: int) -> None:
    for number in range(first, first + count):
        builder = RecordBatchBuilder(max_bytes=1000)
        builder.append(1000 + number, None, b"%d" % number)
        broker.logs[partition].append(builder.build())
    broker.appended()


@asynccontextmanager
async def consuming(broker: FakeBroker, *partitions: TopicPartition, **settings: Any) -> AsyncIterator[Consumer]:
    async with Consumer(ConsumerConfig(bootstrap=broker.bootstrap, **{**QUICK, **settings})) as consumer:
        await consumer.assign(partitions or [LINES])
        yield consumer


async def offsets(consumer: Consumer, count: int) -> list[int]:
    found: list[int] = []
    async with asyncio.timeout(30):
        while len(found) < count:
            found += [record.offset for record in await consumer.poll(count - len(found))]
    return found


async def fails(consumer: Consumer) -> ClientError:
    """The error that the next polls raise."""
    async with asyncio.timeout(30):
        while True:
            try:
                assert await consumer.poll(timeout_ms=100) == []
            except ClientError as error:
                return error


@pytest.mark.parametrize(("policy", "first"), [("earliest", 5), ("latest", 20)])
async def test_an_offset_out_of_range_is_reset_by_offset_reset(broker: FakeBroker, policy: str, first: int) -> None:
    fill(broker, LINES, 0, 20)
    broker.log("lines").start_offset = 5
    del broker.log("lines").batches[:5]
    async with consuming(broker, offset_reset=policy) as consumer:
        consumer.seek(LINES, 2)
        poll = asyncio.ensure_future(offsets(consumer, 1))
        while await consumer.position(LINES) == 2:
            await turns(1)
        fill(broker, LINES, 20, 1)
        assert await poll == [first]


async def test_an_offset_out_of_range_is_an_error_with_offset_reset_error(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 3)
    async with consuming(broker, offset_reset="error") as consumer:
        consumer.seek(LINES, 10)
        for _ in range(2):  # it is said as long as nobody seeks
            error = await fails(consumer)
            assert isinstance(error, OffsetOutOfRangeError)
            assert "lines-0: offset 10 is outside the log's range 0..3; seek, or set offset_reset" in str(error)
            assert (error.offset, error.log_start_offset, error.high_watermark) == (10, 0, 3)
        consumer.seek(LINES, 1)
        assert await offsets(consumer, 2) == [1, 2]


async def test_records_fetched_before_the_log_lost_them_are_returned_first(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 50)
    async with consuming(broker, offset_reset="error", max_partition_bytes=600) as consumer:
        consumer.seek(LINES, 0)
        assert await offsets(consumer, 1) == [0]
        broker.log("lines").start_offset = 45
        await turns(50)
        seen = [0]

        async def read_on() -> None:
            async for record in consumer:
                seen.append(record.offset)

        with pytest.raises(OffsetOutOfRangeError):
            await asyncio.wait_for(read_on(), 30)
        assert seen == list(range(len(seen)))
        assert len(seen) > 1
        assert await consumer.position(LINES) == len(seen)


def damage(broker: FakeBroker, index: int, position: int) -> None:
    stored = bytearray(broker.log("lines").batches[index])
    stored[position] ^= 0xFF
    broker.log("lines").batches[index] = bytes(stored)


async def test_a_batch_with_a_wrong_checksum_is_named_and_can_be_skipped(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 5)
    damage(broker, 2, -1)
    async with consuming(broker) as consumer:
        assert await offsets(consumer, 2) == [0, 1]
        for _ in range(2):
            error = await fails(consumer)
            assert isinstance(error, CorruptBatchError)
            assert "lines-0: the batch at offset 2 is corrupt: " in str(error)
            assert "crc" in str(error)
            assert "seek to 3 to skip the batch" in str(error)
            assert error.next_offset == 3
        consumer.seek(LINES, 3)
        assert await offsets(consumer, 2) == [3, 4]


async def test_records_before_an_error_are_returned_before_it_is_raised(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 5)
    damage(broker, 3, -1)
    async with consuming(broker) as consumer:
        assert [record.offset for record in await consumer.poll(100, 5_000)] == [0, 1, 2]
        with pytest.raises(CorruptBatchError, match="the batch at offset 3"):
            await consumer.poll(100, 5_000)


async def test_without_check_crcs_a_wrong_checksum_goes_unnoticed(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 3)
    damage(broker, 1, 17)  # a byte of the checksum itself
    async with consuming(broker, check_crcs=False) as consumer:
        assert await offsets(consumer, 3) == [0, 1, 2]


async def test_a_batch_with_an_impossible_size_is_an_error_and_not_an_endless_loop(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 3)
    stored = bytearray(broker.log("lines").batches[0])

    def intercept(api: ApiKey, request: Any) -> Any:
        if api is not ApiKey.FETCH:
            return None
        result = FetchPartitionResult(
            partition=0,
            error=ErrorCode.NONE,
            high_watermark=3,
            last_stable_offset=3,
            log_start_offset=0,
            aborted=[],
            records=RecordBytes(stored),
        )
        return Respond(FetchResponse(topics=[FetchTopicResult(name="lines", partitions=[result])]))

    broker.intercept = intercept
    async with consuming(broker) as consumer:
        stored[8:12] = (5).to_bytes(4, "big")
        error = await fails(consumer)
        assert isinstance(error, CorruptBatchError)
        assert error.next_offset == -1
        stored[8:12] = (1 << 30).to_bytes(4, "big")
        consumer.seek(LINES, 0)
        assert "more than max_frame_bytes" in str(await fails(consumer))


async def test_a_batch_that_grows_beyond_max_batch_bytes_is_refused(broker: FakeBroker) -> None:
    builder = RecordBatchBuilder(Codec.ZSTD, max_bytes=10_000_000)
    builder.append(1, None, bytes(1_000_000))
    broker.log("lines").append(builder.build())
    async with consuming(broker, max_batch_bytes=500_000) as consumer:
        assert isinstance(await fails(consumer), CorruptBatchError)


async def test_an_error_of_one_partition_leaves_the_others_and_their_records_alone(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 3)
    damage(broker, 0, -1)
    fill(broker, ORDERS[0], 0, 100)
    async with consuming(broker, LINES, ORDERS[0]) as consumer:
        seen: list[int] = []
        errors: list[str] = []
        async with asyncio.timeout(30):
            while len(seen) < 100:
                try:
                    seen += [record.offset for record in await consumer.poll(7)]
                except CorruptBatchError as error:
                    errors.append(error.topic)
        assert seen == list(range(100))
        assert set(errors) == {"lines"}


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.KAFKA_STORAGE_ERROR],
)
async def test_a_retriable_error_is_retried(broker: FakeBroker, code: ErrorCode) -> None:
    fill(broker, LINES, 0, 3)
    left = 3

    def intercept(api: ApiKey, request: Any) -> Any:
        nonlocal left
        if api is ApiKey.FETCH and left:
            left -= 1
            return RefusePartitions(code)
        return None

    broker.intercept = intercept
    async with consuming(broker) as consumer:
        assert await offsets(consumer, 3) == [0, 1, 2]


async def test_a_final_error_is_raised_with_its_code(broker: FakeBroker) -> None:
    broker.intercept = lambda api, request: (
        RefusePartitions(ErrorCode.UNKNOWN_SERVER_ERROR) if api is ApiKey.FETCH else None
    )
    async with consuming(broker) as consumer:
        error = await fails(consumer)
        assert isinstance(error, RefusedError)
        assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert (error.topic, error.partition) == LINES


async def test_a_partition_that_the_broker_leaves_out_is_an_error(broker: FakeBroker) -> None:
    broker.intercept = lambda api, request: Respond(FetchResponse(topics=[])) if api is ApiKey.FETCH else None
    async with consuming(broker) as consumer:
        assert "lines-0: the broker left it out" in str(await fails(consumer))


async def test_reading_continues_over_a_broker_restart_without_loss_or_repetition(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 20)
    async with consuming(broker, max_wait_ms=50) as consumer:
        assert await offsets(consumer, 20) == list(range(20))
        await broker.stop()
        assert await consumer.poll(timeout_ms=50) == []
        fill(broker, LINES, 20, 20)
        await broker.start()
        assert await offsets(consumer, 20) == list(range(20, 40))


async def test_repeatedly_cut_connections_lose_and_repeat_no_record(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 300)
    count = 0

    def intercept(api: ApiKey, request: Any) -> Any:
        nonlocal count
        count += api is ApiKey.FETCH
        return Drop(serve_first=True) if api is ApiKey.FETCH and count % 3 == 0 else None

    broker.intercept = intercept
    async with consuming(broker, max_partition_bytes=1000) as consumer:
        assert await offsets(consumer, 300) == list(range(300))


async def test_a_broker_that_stays_away_is_an_error_after_api_timeout_ms(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 1)
    async with consuming(broker, api_timeout_ms=100) as consumer:
        assert await offsets(consumer, 1) == [0]
        await broker.stop()
        error = await fails(consumer)
        assert isinstance(error, BrokerConnectionError)
        assert "lines-0: could not be read for api_timeout_ms=100: " in str(error)
        assert f"cannot connect to 127.0.0.1:{broker.port}" in str(error)
        fill(broker, LINES, 1, 1)
        await broker.start()  # it is not too late
        assert await offsets(consumer, 1) == [1]


async def test_unavailable_offsets_are_an_error_after_api_timeout_ms(broker: FakeBroker) -> None:
    async with consuming(broker, api_timeout_ms=100) as consumer:
        await broker.stop()
        with pytest.raises(BrokerConnectionError, match=r"list_offsets: gave up after .* attempts in 100 ms"):
            await consumer.end_offsets([LINES])


async def test_a_topic_that_is_deleted_is_an_error_soon(broker: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.clients.network.cluster.UNKNOWN_TOPIC_WAIT_S", 0.05)
    monkeypatch.setattr("barnabas.clients.consumer.fetch_failures.UNKNOWN_TOPIC_WAIT_S", 0.05)
    fill(broker, LINES, 0, 1)
    async with consuming(broker, max_wait_ms=20) as consumer:
        await offsets(consumer, 1)
        del broker.topics["lines"]
        del broker.logs[LINES]
        error = await fails(consumer)
        assert isinstance(error, UnknownTopicError)
        with pytest.raises(UnknownTopicError):
            await consumer.end_offsets([LINES])


async def test_a_partition_that_moves_to_another_broker_is_followed(broker: FakeBroker) -> None:
    other = FakeBroker(2)
    broker.peers.append(other)
    other.peers, other.topics, other.leaders, other.logs = broker.peers, broker.topics, broker.leaders, broker.logs
    fill(broker, LINES, 0, 10)
    async with other, consuming(broker, max_wait_ms=20) as consumer:
        assert await offsets(consumer, 10) == list(range(10))
        broker.leaders[LINES] = 2
        fill(broker, LINES, 10, 10)
        assert await offsets(consumer, 10) == list(range(10, 20))
        assert other.asked(ApiKey.FETCH)


async def test_an_internal_error_of_the_fetcher_is_raised_by_the_next_read(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any) -> bool:
        raise RuntimeError("a bug")

    monkeypatch.setattr("barnabas.clients.consumer.fetcher.Fetcher._take_in", broken)
    async with consuming(broker, max_wait_ms=20) as consumer:
        assert "reading failed by an internal error: RuntimeError('a bug')" in str(await fails(consumer))

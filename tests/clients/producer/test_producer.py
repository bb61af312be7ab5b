from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    BufferFullError,
    ClosedError,
    RecordTooLargeError,
    RefusedError,
    UnknownTopicError,
)
from barnabas.clients.producer.partitioner import partition_for_key
from barnabas.clients.producer.producer import Producer
from barnabas.clients.records import RecordMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.produce import ProduceRequest
from barnabas.protocol.records.batch import RecordBatch
from tests.clients.fake_broker import FakeBroker, Hold, Silence
from tests.clients.waiting import turns, until


@asynccontextmanager
async def producing(broker: FakeBroker, **settings: Any) -> AsyncIterator[Producer]:
    async with Producer(ProducerConfig(bootstrap=broker.bootstrap, **settings)) as producer:
        yield producer


def only(api_wanted: ApiKey, action: Any) -> Any:
    return lambda api, request: action if api is api_wanted else None


async def test_a_record_arrives_as_it_was_sent_and_its_future_has_its_offset(broker: FakeBroker) -> None:
    async with producing(broker) as producer:
        headers = [("trace", b"\x00\xff"), ("empty", b""), ("none", None), ("trace", b"again")]
        sent = await producer.send_and_wait("lines", b"value", b"key", headers=headers, timestamp_ms=1234)
    assert sent == RecordMetadata("lines", 0, 0, 1234)
    (record,) = broker.log("lines").records()
    assert record == (0, 1234, b"key", b"value", tuple(headers))


async def test_null_keys_and_null_values_arrive_as_null(broker: FakeBroker) -> None:
    async with producing(broker) as producer:
        await producer.send("lines", None, b"gone")
        await producer.send("lines", b"", b"")
        await producer.send("lines", None)
    assert [(record.key, record.value) for record in broker.log("lines").records()] == [
        (b"gone", None),
        (b"", b""),
        (None, None),
    ]


async def test_a_record_without_a_timestamp_gets_the_time_of_the_clock(broker: FakeBroker) -> None:
    async with Producer(ProducerConfig(bootstrap=broker.bootstrap), clock=lambda: 42) as producer:
        assert (await producer.send_and_wait("lines", b"v")).timestamp == 42
        assert (await producer.send_and_wait("lines", b"v", timestamp_ms=-1)).timestamp == -1


async def test_log_append_time_overrides_the_records_timestamp(broker: FakeBroker) -> None:
    serve = broker._append

    def stamped(topic: str, entry: Any) -> Any:
        result = serve(topic, entry)
        result.log_append_time_ms = 777
        return result

    broker._append = stamped  # type: ignore[method-assign]
    async with producing(broker) as producer:
        futures = [await producer.send("lines", b"v", timestamp_ms=number) for number in range(3)]
    assert [future.result() for future in futures] == [RecordMetadata("lines", 0, offset, 777) for offset in range(3)]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_records_of_a_partition_keep_their_order_and_their_offsets(broker: FakeBroker, compression: str) -> None:
    async with producing(broker, compression=compression, batch_size=500) as producer:
        futures = [await producer.send("lines", b"%d" % number, b"key") for number in range(1000)]
        results = await asyncio.gather(*futures)
    assert [result.offset for result in results] == list(range(1000))
    assert broker.log("lines").values() == [b"%d" % number for number in range(1000)]
    assert len(broker.log("lines").batches) > 10
    assert {RecordBatch(batch).codec.name.lower() for batch in broker.log("lines").batches} == {compression}


async def test_records_go_to_their_keys_partition_or_the_explicit_one(
    broker: FakeBroker,
) -> None:
    async with producing(broker) as producer:
        for number in range(60):
            await producer.send("orders", b"%d" % number, b"key-%d" % (number % 7))
        placed = await producer.send_and_wait("orders", b"told", b"key-1", partition=2)
    assert placed.partition == 2
    for number in range(60):
        partition = partition_for_key(b"key-%d" % (number % 7), 3)
        assert broker.log("orders", partition).values().count(b"%d" % number) == 1


async def test_records_without_a_key_fill_batches_and_reach_all_partitions(broker: FakeBroker) -> None:
    async with producing(broker, batch_size=1000) as producer:
        for _ in range(2000):
            await producer.send("orders", bytes(20))
    logs = [broker.log("orders", partition) for partition in range(3)]
    assert sum(len(log.records()) for log in logs) == 2000
    assert all(len(log.records()) > 200 for log in logs)
    assert sum(len(log.batches) for log in logs) < 200


async def test_records_sent_in_one_turn_of_the_loop_travel_in_one_batch(broker: FakeBroker) -> None:
    async with producing(broker) as producer:
        await producer.send_and_wait("lines", b"first")
        await asyncio.gather(*(producer.send_and_wait("lines", b"%d" % number) for number in range(100)))
    assert len(broker.asked(ApiKey.PRODUCE)) == 2


async def test_linger_collects_records_until_its_time_is_over(broker: FakeBroker) -> None:
    async with producing(broker, linger_ms=1500) as producer:
        first = await producer.send("lines", b"1")
        await turns()
        second = await producer.send("lines", b"2")
        assert broker.asked(ApiKey.PRODUCE) == []
        await asyncio.gather(first, second)
    assert len(broker.asked(ApiKey.PRODUCE)) == 1


async def test_a_batch_lingers_even_when_the_one_before_it_is_acknowledged(broker: FakeBroker) -> None:
    async with producing(broker, linger_ms=60_000, batch_size=1000) as producer:
        futures = [await producer.send("lines", bytes(400)) for _ in range(3)]  # the first two fill a batch
        await futures[0]
        await turns()
        assert not futures[2].done()
        assert len(broker.asked(ApiKey.PRODUCE)) == 1


async def test_a_full_batch_does_not_linger(broker: FakeBroker) -> None:
    async with producing(broker, linger_ms=60_000, batch_size=1000) as producer:
        futures = [await producer.send("lines", bytes(100)) for _ in range(20)]
        async with asyncio.timeout(30):
            await futures[0]
        assert not futures[-1].done()


async def test_flush_sends_lingering_batches_and_waits_for_them(broker: FakeBroker) -> None:
    async with producing(broker, linger_ms=60_000) as producer:
        futures = [await producer.send("orders", b"v", partition=partition) for partition in range(3)]
        async with asyncio.timeout(30):
            await producer.flush()
        assert all(future.done() for future in futures)
        assert len(broker.asked(ApiKey.PRODUCE)) == 1  # one request with a batch for each partition
        assert producer.delivered_records == 3
        assert producer.buffered_bytes == 0


async def test_leaving_the_context_delivers_buffered_records(broker: FakeBroker) -> None:
    async with producing(broker, linger_ms=60_000) as producer:
        future = await producer.send("lines", b"last words")
    assert future.result().offset == 0
    assert broker.log("lines").values() == [b"last words"]


async def test_close_with_a_timeout_fails_remaining_records(broker: FakeBroker) -> None:
    broker.intercept = only(ApiKey.PRODUCE, Silence())
    producer = Producer(ProducerConfig(bootstrap=broker.bootstrap))
    await producer.start()
    future = await producer.send("lines", b"v")
    await producer.close(timeout_ms=30)
    with pytest.raises(ClosedError, match="lines-0: the producer was closed before delivery"):
        future.result()
    with pytest.raises(ClosedError, match="the producer is closed"):
        await producer.send("lines", b"v")
    await producer.close()


async def test_close_ends_sends_that_wait_for_metadata_or_for_room(broker: FakeBroker) -> None:
    producer = Producer(ProducerConfig(bootstrap=broker.bootstrap, buffer_memory=10_000, batch_size=5_000))
    await producer.start()
    await producer.partitions_for("lines")
    broker.intercept = lambda api, request: Silence()
    pouring = asyncio.ensure_future(_pour(producer, 20))
    await until(lambda: producer._memory.has_waiters)
    sending = asyncio.ensure_future(producer.send("orders", b"v"))
    await turns()
    await producer.close(timeout_ms=1)
    for task in (pouring, sending):
        with pytest.raises(ClosedError):
            await task


async def test_using_an_unstarted_producer_is_an_error() -> None:
    with pytest.raises(ClosedError, match="not started"):
        await Producer().send("lines", b"v")


async def test_only_one_batch_of_a_partition_is_in_flight(broker: FakeBroker) -> None:
    release = asyncio.Event()
    broker.intercept = only(ApiKey.PRODUCE, Hold(release))
    async with producing(broker, batch_size=300, max_in_flight=5) as producer:
        await producer.partitions_for("orders")  # its metadata would wait behind what is held
        futures = [await producer.send("lines", bytes(100)) for _ in range(20)]
        await producer.send("orders", bytes(100), partition=0)
        await until(lambda: len(broker.asked(ApiKey.PRODUCE)) > 0)
        await turns()
        in_flight = producer._sender._requests_in_flight[1]  # type: ignore[union-attr]
        assert in_flight <= 2  # one of lines-0, one of orders-0
        release.set()
        await asyncio.gather(*futures)
    for request in broker.asked(ApiKey.PRODUCE):
        assert len(request.topics[0].partitions) == 1


async def test_requests_in_flight_are_bounded(broker: FakeBroker) -> None:
    broker.create("wide", 50)
    release = asyncio.Event()
    broker.intercept = only(ApiKey.PRODUCE, Hold(release))
    async with producing(broker, max_in_flight=2) as producer:
        futures = []
        for partition in range(50):
            futures.append(await producer.send("wide", b"v", partition=partition))
            await asyncio.sleep(0)  # each gets a turn of its own, so a request of its own
        assert producer._sender._requests_in_flight[1] == 2  # type: ignore[union-attr]
        release.set()
        await asyncio.gather(*futures)
    assert 3 <= len(broker.asked(ApiKey.PRODUCE)) <= 6


async def test_a_request_holds_at_most_max_request_bytes(broker: FakeBroker) -> None:
    broker.create("wide", 10)
    async with producing(broker, linger_ms=60_000, batch_size=1000, max_request_bytes=2500) as producer:
        for partition in range(10):
            for _ in range(4):
                await producer.send("wide", bytes(200), partition=partition)
        await producer.flush()
    requests: list[ProduceRequest] = broker.asked(ApiKey.PRODUCE)
    sizes = [sum(len(p.batch) for topic in request.topics for p in topic.partitions) for request in requests]
    assert sum(sizes) > 8000
    assert all(size <= 2500 for size in sizes)


async def test_memory_is_bounded_and_a_full_buffer_holds_senders_back(broker: FakeBroker) -> None:
    release = asyncio.Event()
    broker.intercept = only(ApiKey.PRODUCE, Hold(release))
    async with producing(broker, buffer_memory=100_000, batch_size=10_000) as producer:
        sent = 0

        async def pour() -> None:
            nonlocal sent
            for _ in range(300):
                await producer.send("lines", bytes(1000))
                sent += 1

        pouring = asyncio.ensure_future(pour())
        await until(lambda: producer._memory.has_waiters)
        assert 70 < sent < 100
        assert producer.buffered_bytes <= 100_000
        assert not pouring.done()
        release.set()
        await pouring
    assert len(broker.log("lines").records()) == 300
    assert producer.buffered_bytes == 0


async def test_a_buffer_that_stays_full_is_an_error_after_max_block_ms(broker: FakeBroker) -> None:
    release = asyncio.Event()
    broker.intercept = only(ApiKey.PRODUCE, Hold(release))
    async with producing(broker, buffer_memory=10_000, batch_size=5_000, max_block_ms=30) as producer:
        with pytest.raises(BufferFullError, match=r"lines: buffer_memory=10000 stayed full for max_block_ms=30"):
            await _pour(producer, 20)
        release.set()
        await producer.flush()
        await producer.send_and_wait("lines", b"room again")
    assert producer.buffered_bytes == 0


async def test_a_lingering_batch_is_sent_when_its_memory_is_needed(broker: FakeBroker) -> None:
    async with producing(broker, linger_ms=60_000, buffer_memory=10_000, batch_size=9_000) as producer:
        async with asyncio.timeout(30):
            for partition in (0, 1, 2, 0, 1, 2):
                await producer.send("orders", bytes(3000), partition=partition)


async def test_a_record_above_a_limit_is_refused_immediately_and_takes_no_memory(broker: FakeBroker) -> None:
    async with producing(broker, max_request_bytes=100_000, buffer_memory=150_000) as producer:
        with pytest.raises(RecordTooLargeError, match=r"lines-0: a record of 200000 bytes is above max_request_bytes"):
            await producer.send("lines", bytes(200_000), partition=0)
        assert producer.buffered_bytes == 0
    async with producing(broker, buffer_memory=100_000) as producer:
        with pytest.raises(RecordTooLargeError, match=r"lines: a record of 200\d+ bytes is above buffer_memory=100000"):
            await producer.send("lines", bytes(200_000))


async def test_a_record_far_above_batch_size_travels_alone(broker: FakeBroker) -> None:
    async with producing(broker, batch_size=1000) as producer:
        await producer.send("lines", b"before")
        await producer.send("lines", bytes(900_000))
        await producer.send("lines", b"after")
    assert [len(value or b"") for value in broker.log("lines").values()] == [6, 900_000, 5]
    assert len(broker.log("lines").batches) == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"value": "text"}, "value must be bytes or None, not str: encode it first"),
        ({"value": b"v", "key": 7}, "key must be bytes or None, not int"),
        ({"value": b"v", "headers": [(b"name", b"v")]}, "a header's name must be str, not bytes"),
        ({"value": b"v", "headers": [("name", "text")]}, "header 'name' must be bytes or None, not str"),
    ],
)
async def test_values_that_are_not_bytes_are_refused(
    broker: FakeBroker, arguments: dict[str, Any], sentence: str
) -> None:
    async with producing(broker) as producer:
        with pytest.raises(TypeError, match=sentence):
            await producer.send("lines", **arguments)
        assert producer.buffered_bytes == 0


async def test_a_timestamp_that_no_batch_can_hold_fails_that_record_only(broker: FakeBroker) -> None:
    async with producing(broker) as producer:
        good = await producer.send("lines", b"good")
        with pytest.raises((ValueError, OverflowError)):
            await producer.send_and_wait("lines", b"bad", timestamp_ms=1 << 70)
        assert (await good).offset == 0
    assert producer.buffered_bytes == 0
    assert broker.log("lines").values() == [b"good"]


async def test_an_unknown_topic_is_an_error_after_a_short_wait(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.clients.network.cluster.UNKNOWN_TOPIC_WAIT_S", 0.05)
    async with producing(broker, retry_backoff_ms=5) as producer:
        with pytest.raises(UnknownTopicError, match="there is no topic 'nowhere'; create it first"):
            await producer.send("nowhere", b"v")
        assert producer.buffered_bytes == 0


async def test_a_topic_that_the_broker_creates_on_request_is_used(broker: FakeBroker) -> None:
    broker.create_missing_topics = True
    async with producing(broker) as producer:
        assert (await producer.send_and_wait("new", b"v")).offset == 0


async def test_an_unknown_partition_is_refused_and_an_added_one_found(broker: FakeBroker) -> None:
    async with producing(broker) as producer:
        with pytest.raises(UnknownTopicError, match=r"orders-3: the topic has 3 partitions, 0\.\.2"):
            await producer.send("orders", b"v", partition=3)
        with pytest.raises(UnknownTopicError, match=r"orders--1"):
            await producer.send("orders", b"v", partition=-1)
        broker.create("orders", 5)
        assert (await producer.send_and_wait("orders", b"v", partition=3)).partition == 3
        assert await producer.partitions_for("orders") == 5


async def test_acks_0_has_no_response_and_no_offset(broker: FakeBroker) -> None:
    async with producing(broker, acks=0) as producer:
        results = [await producer.send_and_wait("lines", b"%d" % number) for number in range(10)]
        assert {result.offset for result in results} == {-1}
    async with producing(broker, acks=1) as producer:  # the broker has read them once it answers the next connection
        await producer.send_and_wait("orders", b"v")
    await until(lambda: len(broker.log("lines").records()) == 10)
    assert broker.log("lines").values() == [b"%d" % number for number in range(10)]


@pytest.mark.skipif(
    (3, 12) <= sys.version_info < (3, 12, 9) or (3, 13) <= sys.version_info < (3, 13, 2),
    reason="this Python's writelines does not pause the protocol (CVE-2024-12254)",
)
async def test_acks_0_stops_sending_while_the_socket_is_full(broker: FakeBroker) -> None:
    release = asyncio.Event()
    broker.intercept = only(ApiKey.PRODUCE, Hold(release))
    async with producing(broker, acks=0, buffer_memory=2_000_000, batch_size=100_000) as producer:
        pouring = asyncio.ensure_future(_pour(producer, 40_000))
        await until(lambda: producer._memory.has_waiters)
        release.set()
        await pouring
        await producer.flush()
        assert producer.delivered_records == 40_000


async def _pour(producer: Producer, count: int) -> None:
    for _ in range(count):
        await producer.send("lines", bytes(1000))


async def test_acks_and_timeout_are_in_the_request(broker: FakeBroker) -> None:
    async with producing(broker, acks=1, request_timeout_ms=12_345) as producer:
        await producer.send_and_wait("lines", b"v")
    (request,) = broker.asked(ApiKey.PRODUCE)
    assert (request.acks, request.timeout_ms) == (1, 12_345)


async def test_an_unreachable_broker_is_an_immediate_error_at_start() -> None:
    with pytest.raises(BrokerConnectionError, match=r"cannot connect to 127\.0\.0\.1:1: "):
        async with Producer(ProducerConfig(bootstrap="127.0.0.1:1")):
            pass


async def test_one_reachable_broker_of_the_bootstrap_list_is_enough(broker: FakeBroker) -> None:
    async with Producer(ProducerConfig(bootstrap=f"127.0.0.1:1,{broker.bootstrap}")) as producer:
        await producer.send_and_wait("lines", b"v")
    with pytest.raises(BrokerConnectionError, match=r"none of 2 brokers can be reached: .*:1: .*; .*:2: "):
        await Producer(ProducerConfig(bootstrap="127.0.0.1:1,127.0.0.1:2")).start()


async def test_a_cancelled_future_does_not_disturb_its_batch(broker: FakeBroker) -> None:
    async with producing(broker) as producer:
        futures = [await producer.send("lines", b"%d" % number) for number in range(3)]
        futures[1].cancel()
        await producer.flush()
        assert futures[2].result().offset == 2


async def test_many_tasks_may_send_concurrently(broker: FakeBroker) -> None:
    async with producing(broker, batch_size=2000) as producer:

        async def task(number: int) -> list[int]:
            return [(await producer.send_and_wait("lines", b"%d" % number)).offset for _ in range(20)]

        offsets = await asyncio.gather(*(task(number) for number in range(50)))
    assert sorted(offset for own in offsets for offset in own) == list(range(1000))
    assert all(own == sorted(own) for own in offsets)


async def test_the_compression_ratio_makes_batches_fuller(broker: FakeBroker) -> None:
    async with producing(broker, compression="zstd", batch_size=4000) as producer:
        for _ in range(20_000):
            await producer.send("lines", b"the same words again and again and again")
    batches = [RecordBatch(batch) for batch in broker.log("lines").batches]
    assert batches[-2].record_count > 2 * batches[0].record_count
    assert all(batch.size_bytes <= 4000 for batch in batches)


async def test_a_final_error_fails_its_own_partition_only(broker: FakeBroker) -> None:
    append = broker._append

    def picky(topic: str, entry: Any) -> Any:
        result = append(topic, entry)
        if entry.partition == 1:
            result.error, result.message, result.base_offset = ErrorCode.INVALID_RECORD, "record 0 has no key", -1
        return result

    broker._append = picky  # type: ignore[method-assign]
    async with producing(broker, linger_ms=60_000) as producer:
        futures = [await producer.send("orders", b"v", partition=partition) for partition in range(3)]
        await producer.flush()
        outcomes = await asyncio.gather(*futures, return_exceptions=True)
    refused = outcomes.pop(1)
    assert isinstance(refused, RefusedError)
    assert (refused.code, refused.topic, refused.partition) == (ErrorCode.INVALID_RECORD, "orders", 1)
    assert str(refused) == "INVALID_RECORD: orders-1: record 0 has no key"
    assert all(isinstance(outcome, RecordMetadata) for outcome in outcomes)
    assert (producer.delivered_records, producer.failed_records) == (2, 1)

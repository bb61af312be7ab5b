from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.consumer import Consumer
from barnabas.clients.errors import BrokerConnectionError, ClientError, ClosedError, UnknownTopicError
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.node_connections import NodeConnections, Purpose
from barnabas.clients.offsets import ListedOffset
from barnabas.clients.records import ConsumerRecord
from barnabas.protocol.compression import Codec
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.fetch import AbortedTransaction, FetchPartitionResult, FetchRequest
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.wire.pieces import RecordBytes
from tests.clients.fake_broker import FakeBroker, Hold
from tests.clients.waiting import turns, until

LINES = TopicPartition("lines", 0)
ORDERS = [TopicPartition("orders", partition) for partition in range(3)]


def batch(values: Sequence[bytes | None], codec: Codec = Codec.NONE, **fields: Any) -> bytes:
    """One batch; the timestamps are 1000, 1001, ..."""
    builder = RecordBatchBuilder(codec, max_bytes=1 << 30, **fields)
    for number, value in enumerate(values):
        builder.append(1000 + number, None, value)
    return builder.build()


def control_batch(kind: int, producer_id: int) -> bytes:
    builder = RecordBatchBuilder(
        max_bytes=1000, is_control=True, is_transactional=True, producer_id=producer_id, producer_epoch=0
    )
    builder.append(1, b"\x00\x00" + kind.to_bytes(2, "big"), b"\x00\x00\x00\x00\x00\x00")
    return builder.build()


def fill(broker: FakeBroker, partition: TopicPartition, first: int, count: int, per_batch: int = 10) -> None:
    for start in range(first, first + count, per_batch):
        broker.logs[partition].append(batch([b"%d" % number for number in range(start, start + per_batch)]))
    broker.appended()


@asynccontextmanager
async def consuming(
    broker: FakeBroker, partitions: Sequence[TopicPartition] = (LINES,), **settings: Any
) -> AsyncIterator[Consumer]:
    config = ConsumerConfig(bootstrap=broker.bootstrap, **{"offset_reset": "earliest", **settings})
    async with Consumer(config) as consumer:
        await consumer.assign(partitions)
        yield consumer


async def read(consumer: Consumer, count: int, timeout_s: float = 10) -> list[ConsumerRecord]:
    """Exactly `count` records."""
    records: list[ConsumerRecord] = []
    async with asyncio.timeout(timeout_s):
        while len(records) < count:
            records += await consumer.poll(count - len(records))
    return records


def values(records: Sequence[ConsumerRecord]) -> list[bytes | None]:
    return [record.value for record in records]


async def test_a_record_is_handed_out_as_it_was_stored(broker: FakeBroker) -> None:
    builder = RecordBatchBuilder(max_bytes=1000)
    builder.append(1234, b"key", b"value", [("trace", b"\x00\xff"), ("none", None)])
    builder.append(1235, None, None)
    broker.log("lines").append(builder.build())
    async with consuming(broker) as consumer:
        assert await read(consumer, 2) == [
            ConsumerRecord("lines", 0, 0, 1234, 0, b"key", b"value", (("trace", b"\x00\xff"), ("none", None))),
            ConsumerRecord("lines", 0, 1, 1235, 0, None, None, ()),
        ]


@pytest.mark.parametrize("codec", list(Codec))
async def test_batches_of_every_codec_are_read(broker: FakeBroker, codec: Codec) -> None:
    broker.log("lines").append(batch([b"%d" % number * 10 for number in range(100)], codec))
    async with consuming(broker) as consumer:
        assert values(await read(consumer, 100)) == [b"%d" % number * 10 for number in range(100)]


async def test_iteration_returns_every_record_once_and_waits_for_more(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 50)
    async with consuming(broker) as consumer:
        seen = []
        async with asyncio.timeout(30):
            async for record in consumer:
                seen.append(record.offset)
                assert await consumer.position(LINES) == record.offset + 1
                if len(seen) == 50:
                    asyncio.get_running_loop().call_soon(fill, broker, LINES, 50, 50)
                if len(seen) == 100:
                    break
        assert seen == list(range(100))


async def test_leaving_an_iteration_loses_nothing_for_the_next_one_or_a_poll(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 50)
    async with consuming(broker) as consumer:
        async for record in consumer:
            if record.offset == 13:
                break
        assert [record.offset for record in await read(consumer, 3)] == [14, 15, 16]
        async for record in consumer:
            assert record.offset == 17
            break
        assert await consumer.position(LINES) == 18


async def test_poll_returns_at_most_max_records_and_keeps_the_rest(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 100)
    async with consuming(broker, max_poll_records=30) as consumer:
        assert len(await read(consumer, 7)) == 7
        assert len(await consumer.poll()) == 30
        assert [record.offset for record in await read(consumer, 63)] == list(range(37, 100))
        with pytest.raises(ValueError, match="max_records=0"):
            await consumer.poll(0)


async def test_poll_without_records_returns_an_empty_list_when_its_time_is_over(broker: FakeBroker) -> None:
    async with consuming(broker) as consumer:
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await consumer.poll(timeout_ms=60) == []
        assert loop.time() - began > 0.05
        assert await consumer.poll(timeout_ms=0) == []


async def test_a_waiting_poll_returns_when_a_record_comes(broker: FakeBroker) -> None:
    async with consuming(broker, max_wait_ms=10_000) as consumer:
        poll = asyncio.ensure_future(consumer.poll(timeout_ms=10_000))
        await until(lambda: bool(broker.asked(ApiKey.FETCH)))
        fill(broker, LINES, 0, 10)
        assert len(await poll) == 10


async def test_offset_reset_decides_where_an_unsought_partition_begins(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 20)
    async with consuming(broker, offset_reset="latest") as consumer:
        assert await consumer.poll(timeout_ms=30) == []
        fill(broker, LINES, 20, 10)
        assert (await read(consumer, 1))[0].offset == 20
    async with consuming(broker, offset_reset="error") as consumer:
        with pytest.raises(ClientError, match="lines-0: has no position; seek first"):
            await consumer.poll()
        with pytest.raises(ClientError, match="lines-0: has no position; seek first"):
            await consumer.position(LINES)
        consumer.seek(LINES, 15)
        assert (await read(consumer, 1))[0].offset == 15


async def test_seek_into_the_middle_of_a_batch_skips_the_records_before_it(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 100)
    async with consuming(broker) as consumer:
        consumer.seek(LINES, 37)
        assert values(await read(consumer, 4)) == [b"37", b"38", b"39", b"40"]
        consumer.seek(LINES, 5)
        assert await consumer.position(LINES) == 5
        assert values(await read(consumer, 2)) == [b"5", b"6"]
        with pytest.raises(ValueError, match="offset -2 is negative"):
            consumer.seek(LINES, -2)
        with pytest.raises(ValueError, match="orders-0 is not assigned"):
            consumer.seek(ORDERS[0], 1)


async def test_seek_inside_of_an_iteration_takes_effect_with_the_next_record(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 100)
    async with consuming(broker) as consumer:
        seen = []
        async for record in consumer:
            seen.append(record.offset)
            if record.offset == 3 and len(seen) < 6:
                consumer.seek(LINES, 90)
            if record.offset == 91:
                consumer.seek(LINES, 2)
            if len(seen) == 8:
                break
        assert seen == [0, 1, 2, 3, 90, 91, 2, 3]


async def test_a_response_to_a_fetch_sent_before_the_seek_is_dropped(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.clients.consumer.fetcher.Fetcher.interrupt", lambda *arguments: None)
    fill(broker, LINES, 0, 100)
    release = asyncio.Event()
    broker.intercept = lambda api, request: Hold(release) if api is ApiKey.FETCH else None
    async with consuming(broker) as consumer:
        consumer.seek(LINES, 50)
        assert await consumer.poll(timeout_ms=10) == []
        consumer.seek(LINES, 7)
        release.set()
        assert (await read(consumer, 1))[0].offset == 7


async def test_seek_to_beginning_and_end(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 30)
    async with consuming(broker) as consumer:
        await consumer.seek_to_end()
        assert await consumer.position(LINES) == 30
        await consumer.seek_to_beginning(LINES)
        assert (await read(consumer, 1))[0].offset == 0


async def test_seek_to_timestamp_finds_the_first_record_that_is_late_enough_or_the_end(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 10)  # timestamps 1000..1009
    async with consuming(broker) as consumer:
        assert await consumer.seek_to_timestamp({LINES: 1004}) == {LINES: 4}
        assert (await read(consumer, 1))[0].timestamp == 1004
        assert await consumer.seek_to_timestamp({LINES: 99_999}) == {LINES: 10}
        assert await consumer.offsets_for_times({LINES: 1005}) == {LINES: ListedOffset(5, 1005, 0)}
        assert await consumer.offsets_for_times({LINES: 99_999}) == {LINES: None}
        with pytest.raises(ValueError, match="timestamp -1 is negative"):
            await consumer.offsets_for_times({LINES: -1})


async def test_a_seek_does_not_wait_for_a_fetch_that_waits(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 10)
    async with consuming(broker, max_wait_ms=60_000) as consumer:
        await read(consumer, 10)
        assert await consumer.poll(timeout_ms=20) == []  # a fetch waits at the broker now
        consumer.seek(LINES, 4)
        assert (await read(consumer, 1, timeout_s=30))[0].offset == 4


async def test_beginning_and_end_offsets_of_any_partition(broker: FakeBroker) -> None:
    fill(broker, ORDERS[1], 0, 20)
    async with consuming(broker) as consumer:
        assert await consumer.beginning_offsets(ORDERS) == dict.fromkeys(ORDERS, 0)
        assert await consumer.end_offsets(ORDERS) == {ORDERS[0]: 0, ORDERS[1]: 20, ORDERS[2]: 0}
        assert await consumer.partitions_for("orders") == tuple(ORDERS)


async def test_assign_keeps_positions_adds_and_removes(broker: FakeBroker) -> None:
    for partition in ORDERS:
        fill(broker, partition, 0, 20)
    async with consuming(broker, ORDERS[:2]) as consumer:
        await read(consumer, 30)
        kept = await consumer.position(ORDERS[0])
        await consumer.assign([ORDERS[0], ("orders", 2)])
        assert consumer.assignment == (ORDERS[0], ORDERS[2])
        assert await consumer.position(ORDERS[0]) == kept
        records = await read(consumer, 20 - kept + 20)
        assert {record.partition for record in records} == ({0, 2} if kept < 20 else {2})
        await consumer.assign([])
        assert await consumer.poll(timeout_ms=10) == []
        assert consumer.buffered_bytes == 0


async def test_assigning_an_unknown_partition_changes_nothing(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.clients.network.cluster.UNKNOWN_TOPIC_WAIT_S", 0.02)
    async with consuming(broker) as consumer:
        with pytest.raises(UnknownTopicError, match=r"lines-5: the topic has 1 partitions, 0\.\.0"):
            await consumer.assign([("lines", 5)])
        with pytest.raises(UnknownTopicError, match="there is no topic 'nowhere'"):
            await consumer.assign([("nowhere", 0)])
        assert consumer.assignment == (LINES,)


async def test_pause_hands_out_nothing_and_resume_goes_on_where_it_was(broker: FakeBroker) -> None:
    for partition in ORDERS[:2]:
        fill(broker, partition, 0, 20)
    async with consuming(broker, ORDERS[:2], max_wait_ms=60_000) as consumer:
        async for record in consumer:
            if record.partition == 0 and record.offset == 4:
                break
        consumer.pause(ORDERS[0])
        assert consumer.paused == (ORDERS[0],)
        before = await consumer.position(ORDERS[1])
        assert {record.partition for record in await read(consumer, 20 - before)} == {1}
        assert await consumer.poll(timeout_ms=10) == []
        consumer.resume(ORDERS[0])
        assert [record.offset for record in await read(consumer, 15)] == list(range(5, 20))
        consumer.pause()
        fill(broker, ORDERS[0], 20, 10)
        fill(broker, ORDERS[1], 20, 10)
        assert await consumer.poll(timeout_ms=10) == []
        consumer.resume()
        assert len(await read(consumer, 20)) == 20


async def test_control_batches_are_skipped_and_the_position_passes_them(broker: FakeBroker) -> None:
    log = broker.log("lines")
    log.append(batch([b"a"]))
    log.append(control_batch(1, 7))
    log.append(batch([b"b"]))
    log.append(control_batch(1, 7))
    async with consuming(broker) as consumer:
        assert values(await read(consumer, 2)) == [b"a", b"b"]
        assert await consumer.poll(timeout_ms=20) == []
        assert await consumer.position(LINES) == 4
        assert consumer.buffered_bytes == 0


async def test_gaps_between_and_inside_of_batches_are_passed(broker: FakeBroker) -> None:
    log = broker.log("lines")
    builder = RecordBatchBuilder(max_bytes=1000)
    builder.append(1, None, b"0")
    builder.append(1, None, b"3", offset=3)
    log.append(builder.build())
    log.append(batch([b"20"]), at=20)
    async with consuming(broker) as consumer:
        assert [record.offset for record in await read(consumer, 3)] == [0, 3, 20]
        consumer.seek(LINES, 1)
        assert [record.offset for record in await read(consumer, 2)] == [3, 20]
        consumer.seek(LINES, 7)
        assert [record.offset for record in await read(consumer, 1)] == [20]


async def test_a_read_committed_consumer_skips_aborted_records_and_another_one_does_not(broker: FakeBroker) -> None:
    log = broker.log("lines")

    def transactional(values: Sequence[bytes], producer_id: int) -> bytes:
        return batch(values, is_transactional=True, producer_id=producer_id, producer_epoch=0, base_sequence=0)

    log.append(transactional([b"kept by 5"], 5))
    log.append(transactional([b"aborted", b"aborted"], 7))
    log.append(transactional([b"kept by 5"], 5))
    log.append(control_batch(0, 7))  # 7 aborts
    log.append(transactional([b"kept by 7"], 7))
    log.append(control_batch(1, 7))
    log.append(control_batch(1, 5))
    log.append(batch([b"plain"]))
    read_partition = broker._read_partition

    def with_aborted(*arguments: Any) -> tuple[FetchPartitionResult, int]:
        result, size = read_partition(*arguments)
        result.aborted = [AbortedTransaction(producer_id=7, first_offset=1)]
        return result, size

    broker._read_partition = with_aborted  # type: ignore[method-assign, assignment]
    async with consuming(broker, isolation="read_committed") as consumer:
        assert values(await read(consumer, 4)) == [b"kept by 5", b"kept by 5", b"kept by 7", b"plain"]
        request: FetchRequest = broker.asked(ApiKey.FETCH)[0]
        assert request.isolation == 1
    broker._read_partition = read_partition  # type: ignore[method-assign]
    async with consuming(broker) as consumer:
        assert len(await read(consumer, 6)) == 6


async def test_a_read_that_begins_after_aborted_data_returns_records_after_the_marker(broker: FakeBroker) -> None:
    """The response then has only the marker of the aborted transaction."""
    log = broker.log("lines")
    log.append(batch([b"aborted"], is_transactional=True, producer_id=7, producer_epoch=0, base_sequence=0))
    log.append(control_batch(0, 7))
    log.append(batch([b"kept"], is_transactional=True, producer_id=7, producer_epoch=0, base_sequence=1))
    log.append(control_batch(1, 7))
    read_partition = broker._read_partition

    def with_aborted(*arguments: Any) -> tuple[FetchPartitionResult, int]:
        result, size = read_partition(*arguments)
        result.aborted = [AbortedTransaction(producer_id=7, first_offset=0)]
        return result, size

    broker._read_partition = with_aborted  # type: ignore[method-assign, assignment]
    async with consuming(broker, isolation="read_committed") as consumer:
        consumer.seek(LINES, 1)
        assert values(await read(consumer, 1)) == [b"kept"]


async def test_a_batch_larger_than_the_fetch_size_is_read(broker: FakeBroker) -> None:
    log = broker.log("lines")
    log.append(batch([b"small"]))
    log.append(batch([bytes(300_000)]))
    log.append(batch([b"small again"]))
    async with consuming(broker, max_partition_bytes=1000, max_bytes=2000, prefetch_bytes=4000) as consumer:
        assert [len(value or b"") for value in values(await read(consumer, 3))] == [5, 300_000, 11]


async def test_a_batch_that_does_not_fit_after_others_is_requested_first(broker: FakeBroker) -> None:
    """A broker may truncate all but a request's first batch: the partition must not starve."""
    fill(broker, ORDERS[0], 0, 100)
    broker.log("orders", 1).append(batch([bytes(5000)]))
    read_partition = broker._read_partition

    def cutting(partition: TopicPartition, entry: Any, budget: int, before: list[Any]) -> Any:
        result, size = read_partition(partition, entry, budget, before)
        if partition == ORDERS[1] and size > entry.max_bytes:
            result.records = RecordBytes(result.data[: entry.max_bytes])
            size = entry.max_bytes
        return result, size

    broker._read_partition = cutting  # type: ignore[method-assign, assignment]
    async with consuming(broker, ORDERS[:2], max_partition_bytes=400, max_bytes=900) as consumer:
        records = await read(consumer, 101)
    assert max(len(record.value or b"") for record in records) == 5000
    asked = [
        p.max_bytes for r in broker.asked(ApiKey.FETCH) for t in r.topics for p in t.partitions if p.partition == 1
    ]
    assert max(asked) >= 5000


async def test_prefetched_bytes_stay_within_their_bounds(broker: FakeBroker) -> None:
    for partition in ORDERS:
        for _ in range(100):
            broker.logs[partition].append(batch([bytes(1000)]))
    async with consuming(
        broker, ORDERS, max_partition_bytes=5_000, max_bytes=20_000, prefetch_bytes=30_000, max_wait_ms=20
    ) as consumer:
        largest = 0
        seen = 0
        async for _ in consumer:
            await turns(2)  # a slow reader: everything that may be fetched ahead is
            largest = max(largest, consumer.buffered_bytes)
            seen += 1
            if seen == 300:
                break
        assert 10_000 < largest <= 30_000
        assert await consumer.poll(timeout_ms=5) == []
        assert consumer.buffered_bytes == 0


async def test_prefetch_bytes_bound_many_partitions_together(broker: FakeBroker) -> None:
    for partition in ORDERS:
        for _ in range(50):
            broker.logs[partition].append(batch([bytes(1000)]))
    async with consuming(broker, ORDERS, prefetch_bytes=5_000, max_partition_bytes=50_000) as consumer:
        largest = 0
        for _ in range(150):
            largest = max(largest, consumer.buffered_bytes)
            assert len(await read(consumer, 1)) == 1
            await turns(2)
        assert 3_000 < largest <= 5_000 + 2_000  # an answer has at least one batch, however little was asked for
        assert all(request.max_bytes > 0 for request in broker.asked(ApiKey.FETCH))


async def test_unread_records_are_fetched_only_once(broker: FakeBroker) -> None:
    for _ in range(100):
        broker.log("lines").append(batch([bytes(1000)]))
    async with consuming(broker, max_partition_bytes=5_000) as consumer:
        await read(consumer, 1)
        await until(lambda: consumer.buffered_bytes >= 5_000)
        await turns(50)
        assert consumer.buffered_bytes <= 2 * 5_000
        assert len(broker.asked(ApiKey.FETCH)) <= 4
        assert len(await read(consumer, 99)) == 99


async def test_an_iteration_over_buffered_records_lets_other_tasks_run(broker: FakeBroker) -> None:
    for _ in range(4):
        broker.log("lines").append(batch([b"v"] * 1000))
    async with consuming(broker) as consumer:
        await read(consumer, 1)
        await until(lambda: consumer.buffered_bytes == 0 or len(broker.asked(ApiKey.FETCH)) > 1)
        others_turns = 0

        async def other() -> None:
            nonlocal others_turns
            while True:
                others_turns += 1
                await asyncio.sleep(0)

        task = asyncio.ensure_future(other())
        async for record in consumer:
            if record.offset == 3_998:
                break
        task.cancel()
        assert others_turns >= 3


async def test_resume_does_not_wait_for_a_fetch_that_was_sent_without_the_partition(broker: FakeBroker) -> None:
    async with consuming(broker, ORDERS[:2], max_wait_ms=60_000) as consumer:
        await consumer.seek_to_beginning()
        consumer.pause(ORDERS[0])
        assert await consumer.poll(timeout_ms=20) == []  # a fetch of the other partition waits at the broker now
        fill(broker, ORDERS[0], 0, 10)
        assert await consumer.poll(timeout_ms=20) == []
        consumer.resume(ORDERS[0])
        assert len(await read(consumer, 10, timeout_s=30)) == 10


async def test_a_partition_that_is_added_does_not_wait_for_a_fetch_that_was_sent_without_it(
    broker: FakeBroker,
) -> None:
    fill(broker, ORDERS[0], 0, 10)
    async with consuming(broker, ORDERS[1:2], max_wait_ms=60_000) as consumer:
        assert await consumer.poll(timeout_ms=20) == []
        await consumer.assign(ORDERS[:2])
        assert len(await read(consumer, 10, timeout_s=30)) == 10


async def test_a_partition_that_is_added_while_the_first_fetch_connects_is_part_of_it(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, may_connect = NodeConnections.connect, asyncio.Event()

    async def held_up(self: NodeConnections, node_id: int, purpose: Purpose = Purpose.CONTROL) -> Connection:
        if purpose is Purpose.FETCH:
            await may_connect.wait()
        return await connect(self, node_id, purpose)

    monkeypatch.setattr(NodeConnections, "connect", held_up)
    fill(broker, ORDERS[0], 0, 10)
    async with consuming(broker, ORDERS[1:2], max_wait_ms=60_000) as consumer:
        assert await consumer.poll(timeout_ms=20) == []
        await consumer.assign(ORDERS[:2])
        assert await consumer.position(ORDERS[0]) == 0
        may_connect.set()
        assert len(await read(consumer, 10, timeout_s=30)) == 10
    assert len(broker.asked(ApiKey.FETCH)[0].topics[0].partitions) == 2


async def test_partitions_take_turns(broker: FakeBroker) -> None:
    for partition in ORDERS:
        fill(broker, partition, 0, 1000)
    async with consuming(broker, ORDERS, max_partition_bytes=2_000, max_bytes=2_500) as consumer:
        records = await read(consumer, 900)
    counts = [sum(record.partition == partition for record in records) for partition in range(3)]
    assert min(counts) > 200


async def test_a_busy_partition_does_not_starve_a_quiet_one(broker: FakeBroker) -> None:
    for _ in range(200):
        broker.log("orders", 0).append(batch([bytes(1000)] * 2))
    async with consuming(broker, ORDERS[:2], max_partition_bytes=4_000, max_wait_ms=60_000) as consumer:
        seen = []
        async with asyncio.timeout(20):
            async for record in consumer:
                seen.append(record.partition)
                if len(seen) == 50:
                    broker.log("orders", 1).append(batch([b"me too"]))
                    broker.appended()
                if record.partition == 1:
                    break
                await turns(1)
        assert len(seen) < 390  # before the busy one ran dry


async def test_fetches_wait_at_the_broker_instead_of_polling(broker: FakeBroker) -> None:
    fill(broker, LINES, 0, 10)
    async with consuming(broker, max_wait_ms=10_000) as consumer:
        await read(consumer, 10)
        assert await consumer.poll(timeout_ms=100) == []
        assert len(broker.asked(ApiKey.FETCH)) <= 2
        request: FetchRequest = broker.asked(ApiKey.FETCH)[-1]
        assert (request.max_wait_ms, request.min_bytes) == (10_000, 1)


async def test_metadata_and_offset_requests_do_not_wait_for_a_waiting_fetch(broker: FakeBroker) -> None:
    async with consuming(broker, max_wait_ms=60_000) as consumer:
        assert await consumer.poll(timeout_ms=20) == []
        async with asyncio.timeout(30):
            assert await consumer.end_offsets([LINES]) == {LINES: 0}


async def test_close_ends_a_waiting_poll_and_a_waiting_iteration(broker: FakeBroker) -> None:
    consumer = Consumer(ConsumerConfig(bootstrap=broker.bootstrap))
    await consumer.start()
    await consumer.assign([LINES])
    poll = asyncio.ensure_future(consumer.poll(timeout_ms=60_000))
    await turns()
    await consumer.close()
    await consumer.close()
    with pytest.raises(ClosedError, match="the consumer is closed"):
        await poll
    with pytest.raises(ClosedError):
        await anext(consumer)


async def test_using_an_unstarted_consumer_and_a_wrong_address_fail_immediately() -> None:
    with pytest.raises(ClosedError, match="not started"):
        await Consumer().poll()
    with pytest.raises(BrokerConnectionError, match=r"cannot connect to 127\.0\.0\.1:1"):
        await Consumer(ConsumerConfig(bootstrap="127.0.0.1:1")).start()


async def test_close_leaves_no_connection_open(broker: FakeBroker) -> None:
    async with consuming(broker) as consumer:
        await consumer.poll(timeout_ms=20)
        await until(lambda: broker.open_connections == 2)  # one for control, one for fetches
    await until(lambda: broker.open_connections == 0)

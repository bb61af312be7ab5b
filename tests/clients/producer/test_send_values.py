"""`Producer.send_values`: records that share one future, batch by batch."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import ClosedError, RecordTooLargeError, RefusedError
from barnabas.clients.producer.producer import Producer
from barnabas.clients.records import RecordMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.produce import ProducePartitionResult
from tests.clients.fake_broker import FakeBroker

VALUES: list[bytes | None] = [b"%d" % number * (number % 50) if number % 7 else None for number in range(500)]


def refuse_large(broker: FakeBroker, largest_bytes: int, smallest_refused: int = -1) -> None:
    """Refuse batches as too large, or as invalid those whose first record has this offset or a later one."""
    serve = broker._append

    def limited(topic: str, entry: Any) -> Any:
        if len(entry.batch) > largest_bytes:
            return ProducePartitionResult(entry.partition, ErrorCode.MESSAGE_TOO_LARGE)
        if 0 <= smallest_refused <= len(broker.log("lines").records()):
            return ProducePartitionResult(entry.partition, ErrorCode.INVALID_RECORD)
        return serve(topic, entry)

    broker._append = limited  # type: ignore[method-assign]


async def send_all(producer: Producer, values: list[bytes | None]) -> list[tuple[int, asyncio.Future[RecordMetadata]]]:
    sent = []
    left = values
    while left:
        sent.append(await producer.send_values("lines", left, headers=[("h", b"1")], timestamp_ms=5))
        left = left[sent[-1][0] :]
    return sent


async def test_all_values_arrive_in_order_between_other_records_and_free_their_memory(broker: FakeBroker) -> None:
    async with Producer(ProducerConfig(bootstrap=broker.bootstrap, batch_size=1000)) as producer:
        await producer.send("lines", b"before", timestamp_ms=4)
        sent = await send_all(producer, VALUES)
        await producer.send("lines", b"after", b"key", timestamp_ms=6)
        await producer.flush()
        assert producer.buffered_bytes == 0
        assert producer.delivered_records == len(VALUES) + 2
    records = broker.log("lines").records()
    assert [record.value for record in records] == [b"before", *VALUES, b"after"]
    assert {(record.timestamp, record.key, record.headers) for record in records[1:-1]} == {(5, None, (("h", b"1"),))}
    first = 1
    for count, future in sent:
        assert future.result() == RecordMetadata("lines", 0, first, 5)
        first += count
    assert len(sent) > 3


async def test_values_with_keys_arrive_in_order(broker: FakeBroker) -> None:
    keys = [b"%d" % number * 3 if number % 5 else None for number in range(len(VALUES))]
    async with Producer(ProducerConfig(bootstrap=broker.bootstrap, batch_size=1000)) as producer:
        sent = 0
        while sent < len(VALUES):
            taken, _ = await producer.send_values("lines", VALUES[sent:], keys=keys[sent:], partition=0)
            sent += taken
        await producer.flush()
        assert producer.buffered_bytes == 0
        with pytest.raises(ValueError, match="keys need a partition"):
            await producer.send_values("lines", [b"v"], keys=[b"k"])
        with pytest.raises(ValueError, match="one key for each value"):
            await producer.send_values("lines", [b"v", b"w"], keys=[b"k"], partition=0)
        with pytest.raises(TypeError, match="key must be bytes or None, not int"):
            await producer.send_values("lines", [b"v"], keys=[1], partition=0)  # type: ignore[list-item]
    assert [(record.key, record.value) for record in broker.log("lines").records()] == [*zip(keys, VALUES, strict=True)]


async def test_a_second_value_of_any_size_is_left_for_the_next_call(broker: FakeBroker) -> None:
    async with Producer(ProducerConfig(bootstrap=broker.bootstrap, batch_size=1000)) as producer:
        assert (await producer.send_values("lines", [b"a", bytes(3_000_000)]))[0] == 1


async def test_halves_of_a_split_batch_resolve_their_future_together(broker: FakeBroker) -> None:
    refuse_large(broker, 2000)
    async with Producer(ProducerConfig(bootstrap=broker.bootstrap)) as producer:
        ((count, future),) = await send_all(producer, VALUES[:200])
        assert await future == RecordMetadata("lines", 0, 0, 5)
        await producer.flush()
        assert producer.buffered_bytes == 0
    assert count == 200
    assert [record.value for record in broker.log("lines").records()] == VALUES[:200]


async def test_a_refused_half_fails_the_future_of_all(broker: FakeBroker) -> None:
    refuse_large(broker, 2000, smallest_refused=60)
    async with Producer(ProducerConfig(bootstrap=broker.bootstrap)) as producer:
        ((_, future),) = await send_all(producer, VALUES[:200])
        with pytest.raises(RefusedError, match="INVALID_RECORD"):
            await future
        await producer.flush()
        assert producer.buffered_bytes == 0
        assert producer.delivered_records + producer.failed_records == 200


async def test_a_value_that_is_too_large_is_left_for_its_own_call(broker: FakeBroker) -> None:
    async with Producer(ProducerConfig(bootstrap=broker.bootstrap, max_request_bytes=70_000)) as producer:
        values: list[bytes | None] = [b"a", b"b", b"x" * 80_000]
        count, _ = await producer.send_values("lines", values)
        assert count == 2
        with pytest.raises(RecordTooLargeError, match="a record of 80000 bytes is above max_request_bytes=70000"):
            await producer.send_values("lines", values[2:])
        with pytest.raises(TypeError, match="value must be bytes or None, not str"):
            await producer.send_values("lines", ["text"])  # type: ignore[list-item]
        with pytest.raises(ValueError, match="no values"):
            await producer.send_values("lines", [])
    with pytest.raises(ClosedError):
        await producer.send_values("lines", values)
    assert broker.log("lines").values() == [b"a", b"b"]

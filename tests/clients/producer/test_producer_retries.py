"""Retries of the producer: brokers that stop, restart, refuse, stay silent, or are not the leader."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    DeliveryTimeoutError,
    RecordTooLargeError,
    RefusedError,
)
from barnabas.clients.producer.producer import Producer
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.produce import ProducePartitionResult, ProduceResponse, ProduceTopicResult
from barnabas.protocol.topic_partition import TopicPartition
from tests.clients.fake_broker import Action, Drop, FakeBroker, Hold, Refuse, RefusePartitions, Respond, Silence
from tests.clients.waiting import turns, until

QUICK: dict[str, Any] = {
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 20,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 20,
}


@asynccontextmanager
async def producing(broker: FakeBroker, **settings: Any) -> AsyncIterator[Producer]:
    async with Producer(ProducerConfig(bootstrap=broker.bootstrap, **{**QUICK, **settings})) as producer:
        yield producer


def first(count: int, action: Action, api_wanted: ApiKey = ApiKey.PRODUCE) -> Any:
    """Apply the action to the first `count` requests of an API."""
    left = count

    def intercept(api: ApiKey, request: Any) -> Action | None:
        nonlocal left
        if api is not api_wanted or left == 0:
            return None
        left -= 1
        return action

    return intercept


@pytest.mark.parametrize(
    "action",
    [
        Drop(),
        RefusePartitions(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        RefusePartitions(ErrorCode.LEADER_NOT_AVAILABLE),
        RefusePartitions(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        RefusePartitions(ErrorCode.NOT_ENOUGH_REPLICAS),
        RefusePartitions(ErrorCode.REQUEST_TIMED_OUT),
        RefusePartitions(ErrorCode.KAFKA_STORAGE_ERROR),
        RefusePartitions(ErrorCode.CORRUPT_MESSAGE),
        Refuse(ErrorCode.REQUEST_TIMED_OUT),
    ],
    ids=str,
)
async def test_retriable_errors_lose_and_reorder_no_records(broker: FakeBroker, action: Action) -> None:
    broker.intercept = first(3, action)
    async with producing(broker, batch_size=300) as producer:
        futures = [await producer.send("lines", b"%03d" % number) for number in range(200)]
        offsets = [(await future).offset for future in futures]
    assert offsets == list(range(200))
    assert broker.log("lines").values() == [b"%03d" % number for number in range(200)]


async def test_between_two_attempts_no_batch_of_the_partition_is_sent(broker: FakeBroker) -> None:
    broker.intercept = first(1, RefusePartitions(ErrorCode.NOT_ENOUGH_REPLICAS))
    producer = Producer(
        ProducerConfig(bootstrap=broker.bootstrap, retry_backoff_ms=60_000, retry_backoff_max_ms=60_000)
    )
    await producer.start()
    refused = await producer.send("orders", b"v", partition=0)
    await until(lambda: bool(broker.asked(ApiKey.PRODUCE)))
    await turns()
    behind = await producer.send("orders", b"v", partition=0)
    assert (await producer.send_and_wait("orders", b"v", partition=1)).offset == 0
    await turns()
    assert not refused.done()
    assert not behind.done()
    assert len(broker.asked(ApiKey.PRODUCE)) == 2
    await producer.close(timeout_ms=1)


async def test_without_idempotence_a_lost_response_may_store_twice_but_never_out_of_order(broker: FakeBroker) -> None:
    broker.intercept = first(2, Drop(serve_first=True))
    async with producing(broker, batch_size=300, enable_idempotence=False) as producer:
        futures = [await producer.send("lines", b"%03d" % number) for number in range(200)]
        await asyncio.gather(*futures)
    values = broker.log("lines").values()
    last_copies = list(dict.fromkeys(reversed(values)))[::-1]
    assert last_copies == [b"%03d" % number for number in range(200)]
    assert len(values) > 200  # at least once: it cannot know


async def test_all_records_arrive_over_a_broker_restart(broker: FakeBroker) -> None:
    async with producing(broker, batch_size=500) as producer:
        futures = [await producer.send("lines", b"%04d" % number) for number in range(100)]
        await producer.flush()
        await broker.stop()
        futures += [await producer.send("lines", b"%04d" % number) for number in range(100, 1000)]
        await turns(100)
        assert not futures[-1].done()
        await broker.start()
        offsets = [(await future).offset for future in futures]
    assert offsets == list(range(1000))
    assert broker.log("lines").values() == [b"%04d" % number for number in range(1000)]


async def test_a_broker_that_stays_away_fails_the_records_in_delivery_timeout_ms_with_the_reason(
    broker: FakeBroker,
) -> None:
    async with producing(broker, delivery_timeout_ms=1000, request_timeout_ms=500) as producer:
        await producer.send_and_wait("lines", b"there")
        await broker.stop()
        futures = [await producer.send("lines", b"gone") for _ in range(3)]
        with pytest.raises(DeliveryTimeoutError) as failure:
            await futures[0]
        assert str(failure.value).startswith("lines-0: 3 records were not delivered within delivery_timeout_ms=1000")
        assert f"cannot connect to 127.0.0.1:{broker.port}" in str(failure.value)
        assert isinstance(failure.value.last_error, BrokerConnectionError)
        assert (failure.value.topic, failure.value.partition) == ("lines", 0)
        assert all(future.done() for future in futures)
        assert producer.buffered_bytes == 0
        assert producer.failed_records == 3


async def test_a_silent_broker_is_retried_on_a_new_connection(broker: FakeBroker) -> None:
    broker.intercept = first(1, Silence())
    async with producing(broker, request_timeout_ms=50) as producer:
        assert (await producer.send_and_wait("lines", b"v")).offset == 0
    assert broker.connections_made >= 2


async def test_records_overdue_in_flight_fail_once_and_the_queue_goes_on(broker: FakeBroker) -> None:
    broker.intercept = first(1, Silence())
    async with producing(broker, request_timeout_ms=1000, delivery_timeout_ms=1000, batch_size=200) as producer:
        doomed = await producer.send("lines", bytes(150))
        with pytest.raises(DeliveryTimeoutError):
            await doomed
        assert (await producer.send_and_wait("lines", b"next")).offset == 0
    assert broker.log("lines").values() == [b"next"]


async def test_a_response_after_the_delivery_timeout_is_ignored(
    broker: FakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    release = asyncio.Event()
    broker.intercept = first(1, Hold(release))
    async with producing(broker, request_timeout_ms=1000, delivery_timeout_ms=1000) as producer:
        await producer.partitions_for("lines")
        connection = producer._cluster.connections.connected(1)
        assert connection is not None
        connection._settings = dataclasses.replace(connection._settings, request_timeout_ms=60_000)
        with pytest.raises(DeliveryTimeoutError):
            await producer.send_and_wait("lines", b"late")
        behind = await producer.send("lines", b"behind")
        release.set()
        assert (await behind).offset == 1
        assert (producer.delivered_records, producer.failed_records) == (1, 1)
        assert producer.buffered_bytes == 0
    assert [record for record in caplog.records if record.name == "asyncio"] == []


async def test_retries_0_gives_up_at_the_first_error(broker: FakeBroker) -> None:
    async with producing(broker, retries=0) as producer:
        broker.intercept = first(1, RefusePartitions(ErrorCode.NOT_ENOUGH_REPLICAS, "1 of 2 in sync"))
        with pytest.raises(RefusedError, match="lines-0: 1 of 2 in sync") as refusal:
            await producer.send_and_wait("lines", b"v")
        assert refusal.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
        broker.intercept = first(1, Drop())
        with pytest.raises(BrokerConnectionError, match=r"lines-0: 1 records were not delivered in 1 attempts: .*lost"):
            await producer.send_and_wait("lines", b"v")


async def test_a_code_that_is_not_retriable_is_not_retried(broker: FakeBroker) -> None:
    broker.intercept = first(1, RefusePartitions(ErrorCode.INVALID_REQUIRED_ACKS))
    async with producing(broker) as producer:
        with pytest.raises(RefusedError):
            await producer.send_and_wait("lines", b"v")
    assert len(broker.asked(ApiKey.PRODUCE)) == 1


async def test_a_batch_that_is_too_large_for_the_topic_is_split_until_it_fits(broker: FakeBroker) -> None:
    append = broker._append

    def small_only(topic: str, entry: Any) -> ProducePartitionResult:
        if len(entry.batch) > 700:
            return ProducePartitionResult(entry.partition, ErrorCode.MESSAGE_TOO_LARGE)
        return append(topic, entry)

    broker._append = small_only  # type: ignore[method-assign]
    async with producing(broker, compression="lz4", linger_ms=5) as producer:
        futures = [
            await producer.send("lines", b"%03d" % number * 10, b"k", headers=[("h", b"v")], timestamp_ms=number)
            for number in range(100)
        ]
        await producer.flush()
        assert all(future.done() for future in futures)
        assert [future.result().offset for future in futures] == list(range(100))
        assert [future.result().timestamp for future in futures] == list(range(100))
        with pytest.raises(RecordTooLargeError, match=r"lines-0: the batch is above the topic's max\.message\.bytes"):
            await producer.send_and_wait("lines", os.urandom(1000))
        assert producer.buffered_bytes == 0
    assert broker.log("lines").values() == [b"%03d" % number * 10 for number in range(100)]


async def test_a_result_that_the_broker_left_out_fails_that_batch(broker: FakeBroker) -> None:
    broker.intercept = first(1, Respond(ProduceResponse(topics=[ProduceTopicResult(name="lines", partitions=[])])))
    async with producing(broker) as producer:
        with pytest.raises(RefusedError, match="lines-0: the broker left it out"):
            await producer.send_and_wait("lines", b"v")


async def test_a_partition_that_moves_to_another_broker_is_followed(broker: FakeBroker) -> None:
    other = FakeBroker(2)
    broker.peers.append(other)
    other.peers, other.topics, other.leaders, other.logs = broker.peers, broker.topics, broker.leaders, broker.logs
    async with other, producing(broker, batch_size=300) as producer:
        futures = [await producer.send("lines", b"%03d" % number) for number in range(100)]
        await asyncio.gather(*futures)
        broker.leaders[TopicPartition("lines", 0)] = 2
        futures = [await producer.send("lines", b"%03d" % number) for number in range(100, 200)]
        await asyncio.gather(*futures)
        assert other.asked(ApiKey.PRODUCE)
    assert broker.log("lines").values() == [b"%03d" % number for number in range(200)]


async def test_a_partition_without_a_leader_waits_for_one(broker: FakeBroker) -> None:
    broker.leaders[TopicPartition("lines", 0)] = -1
    async with producing(broker, metadata_max_age_ms=100_000) as producer:
        future = await producer.send("lines", b"v")
        await turns(50)
        assert not future.done()
        broker.leaders[TopicPartition("lines", 0)] = 1
        assert (await future).offset == 0


async def test_a_partition_that_never_gets_a_leader_is_named(broker: FakeBroker) -> None:
    broker.leaders[TopicPartition("lines", 0)] = -1
    async with producing(broker, delivery_timeout_ms=100, request_timeout_ms=50) as producer:
        with pytest.raises(DeliveryTimeoutError, match=r"lines-0: .*LEADER_NOT_AVAILABLE"):
            await producer.send_and_wait("lines", b"v")


async def test_a_topic_that_is_deleted_under_the_producer_fails_its_records_and_no_others(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.clients.network.cluster.UNKNOWN_TOPIC_WAIT_S", 0.05)
    async with producing(broker, delivery_timeout_ms=1500, request_timeout_ms=500) as producer:
        await producer.send_and_wait("lines", b"v")
        del broker.topics["lines"]
        del broker.logs[TopicPartition("lines", 0)]
        doomed = await producer.send("lines", b"v")
        assert (await producer.send_and_wait("orders", b"v")).topic == "orders"
        with pytest.raises(DeliveryTimeoutError, match=r"lines-0: .*UNKNOWN_TOPIC_OR_PARTITION"):
            await doomed


async def test_an_advertised_address_that_cannot_be_reached_is_named_with_the_setting(broker: FakeBroker) -> None:
    broker.advertised = ("127.0.0.1", 1)
    async with producing(broker, delivery_timeout_ms=100, request_timeout_ms=50) as producer:
        with pytest.raises(DeliveryTimeoutError, match=r"127\.0\.0\.1:1.*broker 1 advertises .* advertised\.listeners"):
            await producer.send_and_wait("lines", b"v")


async def test_missing_metadata_is_an_error_after_max_block_ms(broker: FakeBroker) -> None:
    async with producing(broker, max_block_ms=60) as producer:
        broker.intercept = first(1000, Drop(), ApiKey.METADATA)
        with pytest.raises(BrokerConnectionError, match="no metadata of topic 'lines' within 60 ms"):
            await producer.send("lines", b"v")


async def test_new_partitions_are_noticed_when_the_metadata_is_old(broker: FakeBroker) -> None:
    async with producing(broker, metadata_max_age_ms=20) as producer:
        await producer.send_and_wait("orders", b"v")
        broker.create("orders", 6)
        while await producer.partitions_for("orders") < 6:
            await asyncio.sleep(0.005)
        partitions = {(await producer.send_and_wait("orders", b"v", b"%d" % number)).partition for number in range(50)}
    assert partitions == set(range(6))

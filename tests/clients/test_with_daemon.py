"""The client against a real broker in a process of its own."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from barnabas import (
    Admin,
    AdminConfig,
    BrokerConnectionError,
    Consumer,
    ConsumerConfig,
    ConsumerRecord,
    DeliveryTimeoutError,
    ErrorCode,
    OffsetOutOfRangeError,
    Producer,
    ProducerConfig,
    RecordTooLargeError,
    RefusedError,
    TopicPartition,
    UnknownTopicError,
)
from tests.support.daemon import Daemon, start_daemon

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One broker for the tests that leave it running; each creates its own topics."""
    with start_daemon(tmp_path_factory.mktemp("daemon"), "auto.create.topics.enable=false") as running:
        yield running


@pytest.fixture
def own_daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A broker that the test may stop and start."""
    with start_daemon(tmp_path) as running:
        yield running


def producing(daemon: Daemon, **settings: Any) -> Producer:
    return Producer(ProducerConfig(bootstrap=daemon.bootstrap, **settings))


def consuming(daemon: Daemon, **settings: Any) -> Consumer:
    return Consumer(ConsumerConfig(bootstrap=daemon.bootstrap, **{"offset_reset": "earliest", **settings}))


def admin_of(daemon: Daemon) -> Admin:
    return Admin(AdminConfig(bootstrap=daemon.bootstrap))


async def create(daemon: Daemon, name: str, partitions: int = 1, **configs: str) -> list[TopicPartition]:
    async with admin_of(daemon) as admin:
        await admin.create_topic(
            name, partitions=partitions, configs={key.replace("_", "."): value for key, value in configs.items()}
        )
    return [TopicPartition(name, partition) for partition in range(partitions)]


async def read_all(daemon: Daemon, partitions: list[TopicPartition], **settings: Any) -> list[ConsumerRecord]:
    """Everything up to the end offsets as they are now."""
    async with consuming(daemon, **settings) as consumer:
        await consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        records: list[ConsumerRecord] = []
        async with asyncio.timeout(30):
            while any([await consumer.position(partition) < end for partition, end in ends.items()]):
                records += await consumer.poll()
        return records


@pytest.mark.parametrize("codec", CODECS)
async def test_every_kind_of_record_is_read_as_it_was_sent(daemon: Daemon, codec: str) -> None:
    partitions = await create(daemon, f"kinds-{codec}")
    topic = f"kinds-{codec}"
    sent: list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]] = [
        (b"key", b"value", ()),
        (None, b"no key", ()),
        (b"tombstone", None, ()),
        (None, None, ()),
        (b"", b"", ()),
        (b"headers", b"v", (("a", b"1"), ("a", b"2"), ("null", None), ("empty", b""), ("naïve", b"\x00\xff"))),
        (bytes(range(256)), os.urandom(100_000), ()),
    ]
    async with producing(daemon, compression=codec) as producer:
        futures = [
            await producer.send(topic, value, key, headers=headers, timestamp_ms=1_600_000_000_000 + number)
            for number, (key, value, headers) in enumerate(sent)
        ]
        assert [(await future).offset for future in futures] == list(range(len(sent)))
    records = await read_all(daemon, partitions)
    assert [(record.key, record.value, record.headers) for record in records] == sent
    assert [record.timestamp for record in records] == [1_600_000_000_000 + n for n in range(len(sent))]
    assert {record.timestamp_type for record in records} == {0}


async def test_records_of_a_key_keep_their_order_over_partitions_and_codecs(daemon: Daemon) -> None:
    partitions = await create(daemon, "by-key", 4)
    chooser = random.Random(1)
    sent: dict[bytes, list[bytes]] = {}

    async def produce(codec: str) -> None:
        async with producing(daemon, compression=codec, batch_size=2_000) as producer:
            for number in range(3_000):
                key = f"{codec}-{chooser.randrange(40)}".encode()
                sent.setdefault(key, []).append(b"%d" % number)
                await producer.send("by-key", b"%d" % number, key)

    await asyncio.gather(*(produce(codec) for codec in CODECS))
    received: dict[bytes, list[bytes]] = {}
    homes: dict[bytes, set[int]] = {}
    for record in await read_all(daemon, partitions, max_partition_bytes=20_000):
        assert record.key is not None
        assert record.value is not None
        received.setdefault(record.key, []).append(record.value)
        homes.setdefault(record.key, set()).add(record.partition)
    assert received == sent
    assert all(len(home) == 1 for home in homes.values())


async def test_log_append_time_is_in_the_future_and_in_the_record(daemon: Daemon) -> None:
    partitions = await create(daemon, "stamped", message_timestamp_type="LogAppendTime")
    async with producing(daemon) as producer:
        sent = await producer.send_and_wait("stamped", b"v", timestamp_ms=5)
    (record,) = await read_all(daemon, partitions)
    assert record.timestamp == sent.timestamp > 1_700_000_000_000
    assert record.timestamp_type == 1


async def test_a_timestamp_finds_its_record(daemon: Daemon) -> None:
    (partition,) = await create(daemon, "times")
    async with producing(daemon, batch_size=500) as producer:
        for number in range(1_000):
            await producer.send("times", b"%d" % number, timestamp_ms=1_600_000_000_000 + 10 * number)
    async with consuming(daemon) as consumer:
        await consumer.assign([partition])
        assert await consumer.seek_to_timestamp({partition: 1_600_000_005_001}) == {partition: 501}
        (record,) = await consumer.poll(1)
        assert record.value == b"501"
        assert await consumer.seek_to_timestamp({partition: 1_700_000_000_000}) == {partition: 1000}
        assert await consumer.seek_to_timestamp({partition: 0}) == {partition: 0}
        assert (await consumer.poll(1))[0].value == b"0"
    async with admin_of(daemon) as admin:
        latest = await admin.list_offsets({partition: -3})
        assert (latest[partition].offset, latest[partition].timestamp) == (999, 1_600_000_009_990)


async def test_a_huge_record_is_stored_and_one_above_the_topics_limit_refused(daemon: Daemon) -> None:
    partitions = await create(daemon, "huge", max_message_bytes="20000000")
    value = os.urandom(12_000_000)
    async with producing(daemon, max_request_bytes=30_000_000) as producer:
        await producer.send("huge", b"before")
        await producer.send("huge", value)
        await producer.send("huge", b"after")
        with pytest.raises(RecordTooLargeError, match="huge-0: "):
            await producer.send_and_wait("huge", bytes(20_000_000), partition=0)
        await producer.send_and_wait("huge", b"still alive")
    records = await read_all(daemon, partitions, max_partition_bytes=10_000, max_bytes=20_000, prefetch_bytes=50_000)
    assert [record.value for record in records] == [b"before", value, b"after", b"still alive"]


@pytest.mark.parametrize("limit", ["max_message_bytes", "segment_bytes"])
async def test_batches_above_the_topics_limit_are_split(daemon: Daemon, limit: str) -> None:
    name = f"small-{limit}"
    partitions = await create(daemon, name, 1, **{limit: "1100"})
    async with producing(daemon) as producer:
        futures = [await producer.send(name, b"%04d" % number * 10) for number in range(500)]
        assert [(await future).offset for future in futures] == list(range(500))
        with pytest.raises(RefusedError, match=f"{name}-0: .*1100"):
            await producer.send_and_wait(name, bytes(2_000))
    assert [record.value for record in await read_all(daemon, partitions)] == [b"%04d" % n * 10 for n in range(500)]


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("at_once", [False, True])
async def test_a_few_large_records_behind_many_small_ones_survive_the_splits_of_their_batch(
    daemon: Daemon, compression: Any, *, at_once: bool
) -> None:
    name = f"skewed-{compression}-{at_once}"
    partitions = await create(daemon, name, max_message_bytes="5500")
    chance = random.Random(1)
    values = [b"small"] * 990 + [chance.randbytes(5_000) for _ in range(10)]
    async with producing(daemon, linger_ms=60_000, batch_size=1_000_000, compression=compression) as producer:
        futures = []
        if at_once:
            count, future = await producer.send_values(name, values)
            assert count == len(values)
            futures.append(future)
        else:
            futures += [await producer.send(name, value) for value in values]
        async with asyncio.timeout(30):
            await producer.flush()
            assert [(await future).offset for future in futures] == list(range(len(futures)))
        assert producer.delivered_records == len(values)
        assert producer.buffered_bytes == 0
    assert [record.value for record in await read_all(daemon, partitions)] == values


async def test_the_producers_buffer_stays_within_its_bound(daemon: Daemon) -> None:
    await create(daemon, "bounded", 3)
    largest = 0
    async with producing(daemon, buffer_memory=500_000, batch_size=50_000) as producer:
        for _ in range(20_000):
            await producer.send("bounded", bytes(1_000))
            largest = max(largest, producer.buffered_bytes)
    assert producer.delivered_records == 20_000
    assert largest <= 500_000


async def test_prefetched_records_stay_within_their_bound(daemon: Daemon) -> None:
    partitions = await create(daemon, "ahead", 3)
    async with producing(daemon, batch_size=5_000) as producer:
        for number in range(6_000):
            await producer.send("ahead", bytes(1_000), partition=number % 3)
    largest = 0
    async with consuming(daemon, max_partition_bytes=50_000, max_bytes=100_000, prefetch_bytes=200_000) as consumer:
        await consumer.assign(partitions)
        seen = 0
        async for _ in consumer:
            seen += 1
            largest = max(largest, consumer.buffered_bytes)
            if seen % 20 == 0:
                await asyncio.sleep(0)
            if seen == 6_000:
                break
    assert 50_000 < largest <= 200_000


async def test_a_consumer_at_the_end_gets_new_records_immediately(daemon: Daemon) -> None:
    (partition,) = await create(daemon, "live")
    async with consuming(daemon, max_wait_ms=30_000) as consumer, producing(daemon) as producer:
        await consumer.assign([partition])
        assert await consumer.poll(timeout_ms=50) == []
        for number in range(20):
            poll = asyncio.ensure_future(consumer.poll(timeout_ms=5_000))
            await producer.send_and_wait("live", b"%d" % number)
            assert [record.value for record in await poll] == [b"%d" % number]


async def test_offsets_out_of_range_are_exact(daemon: Daemon) -> None:
    (partition,) = await create(daemon, "short")
    async with producing(daemon) as producer:
        await producer.send_and_wait("short", b"only")
    async with consuming(daemon, offset_reset="error") as consumer:
        await consumer.assign([partition])
        consumer.seek(partition, 0)
        assert len(await consumer.poll()) == 1
        consumer.seek(partition, 1)  # the end is no error
        assert await consumer.poll(timeout_ms=50) == []
        consumer.seek(partition, 2)
        with pytest.raises(OffsetOutOfRangeError, match=r"short-0: offset 2 is outside the log's range 0\.\.1"):
            await consumer.poll(timeout_ms=5_000)


async def test_topics_and_configs_can_be_managed(daemon: Daemon) -> None:
    async with admin_of(daemon) as admin:
        made = await admin.create_topic("managed", partitions=2, configs={"retention.bytes": "1000"})
        assert made.partitions == 2
        assert "managed" in [topic.name for topic in await admin.list_topics()]
        described = await admin.describe_topic("managed")
        assert (described.topic_id, len(described.partitions)) == (made.topic_id, 2)
        (entry,) = await admin.describe_configs(topic="managed", names=["retention.bytes"])
        assert (entry.value, entry.is_default) == ("1000", False)
        await admin.alter_configs(topic="managed", set_to={"segment.ms": "5000"}, delete=["retention.bytes"])
        found = {entry.name: entry for entry in await admin.describe_configs(topic="managed")}
        assert found["segment.ms"].value == "5000"
        assert found["retention.bytes"].is_default
        await admin.create_partitions("managed", 5)
        assert len((await admin.describe_topic("managed")).partitions) == 5
        await admin.delete_topic("managed")
        with pytest.raises(UnknownTopicError):
            await admin.describe_topic("managed")
        cluster = await admin.describe_cluster()
        assert [(broker.host, broker.port) for broker in cluster.brokers] == [(daemon.host, daemon.port)]


async def test_the_brokers_errors_have_their_code_and_message(daemon: Daemon) -> None:
    await create(daemon, "taken")
    async with admin_of(daemon) as admin:
        for attempt, code in (
            (admin.create_topic("taken"), ErrorCode.TOPIC_ALREADY_EXISTS),
            (admin.create_topic("../x"), ErrorCode.INVALID_TOPIC_EXCEPTION),
            (admin.create_topic("none", partitions=0), ErrorCode.INVALID_PARTITIONS),
            (admin.create_topic("odd", configs={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG),
            (admin.create_partitions("taken", 1), ErrorCode.INVALID_PARTITIONS),
            (admin.delete_topic("nothing"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (admin.alter_configs(topic="taken", set_to={"no.such": "1"}), ErrorCode.INVALID_CONFIG),
            (admin.alter_configs(topic="nothing", set_to={"retention.ms": "1"}), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ):
            with pytest.raises(RefusedError) as refusal:
                await attempt
            assert refusal.value.code is code
            assert len(refusal.value.message) > 10


@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_the_client_works_with_both_event_loops(
    daemon: Daemon, runner: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    name = f"loop-{runner.__module__.replace('.', '-')}"

    async def round_trip() -> None:
        partitions = await create(daemon, name, 2)
        async with producing(daemon, batch_size=10_000) as producer:
            for number in range(2_000):
                await producer.send(name, b"%d" % number * 20)
        assert len(await read_all(daemon, partitions)) == 2_000

    runner(round_trip())


def distinct_in_order(values: list[bytes | None]) -> list[bytes | None]:
    """Remove repeats after lost responses, keeping the first of each."""
    return list(dict.fromkeys(values))


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
async def test_a_restart_while_producing_loses_no_record_and_keeps_the_order(own_daemon: Daemon, clean: bool) -> None:
    partitions = await create(own_daemon, "through", 3)
    count = 30_000
    async with producing(own_daemon, batch_size=4_000, buffer_memory=1_000_000) as producer:
        futures = []
        restarting: asyncio.Future[None] | None = None
        for number in range(count):
            futures.append(await producer.send("through", b"%d" % number, partition=number % 3))
            if number == count // 3:
                restarting = asyncio.ensure_future(asyncio.to_thread(own_daemon.restart, clean=clean))
        assert restarting is not None
        await restarting
        metadata = await asyncio.gather(*futures)
    assert producer.failed_records == 0
    records = await read_all(own_daemon, partitions)
    for partition in range(3):
        values = [record.value for record in records if record.partition == partition]
        assert distinct_in_order(values) == [b"%d" % number for number in range(partition, count, 3)]
    stored = {(record.partition, record.offset): record.value for record in records}
    for number, where in enumerate(metadata):
        assert stored[where.partition, where.offset] == b"%d" % number


async def test_a_consumer_continues_over_a_restart(own_daemon: Daemon) -> None:
    partitions = await create(own_daemon, "across", 2)
    seen: list[ConsumerRecord] = []
    async with producing(own_daemon) as producer, consuming(own_daemon) as consumer:
        await consumer.assign(partitions)
        for generation in range(3):
            futures = [
                await producer.send("across", b"%d-%d" % (generation, number), partition=number % 2)
                for number in range(100)
            ]
            await asyncio.gather(*futures)
            async with asyncio.timeout(20):
                while len(seen) < 100 * (generation + 1):
                    seen += await consumer.poll()
            await asyncio.to_thread(own_daemon.restart)
    for partition in range(2):
        assert [record.offset for record in seen if record.partition == partition] == list(range(150))


async def test_a_stopped_broker_is_an_error_in_bounded_time(own_daemon: Daemon) -> None:
    (partition,) = await create(own_daemon, "gone")
    async with (
        producing(own_daemon, delivery_timeout_ms=2000, request_timeout_ms=1000) as producer,
        consuming(own_daemon, api_timeout_ms=2000) as consumer,
    ):
        await producer.send_and_wait("gone", b"v")
        await consumer.assign([partition])
        assert len(await consumer.poll()) == 1
        await asyncio.to_thread(own_daemon.stop)
        sentence = rf"cannot connect to 127\.0\.0\.1:{own_daemon.port}: .*check that a Barnabas broker listens there"
        async with asyncio.timeout(30):
            with pytest.raises(DeliveryTimeoutError, match=sentence):
                await producer.send_and_wait("gone", b"v")
            with pytest.raises(BrokerConnectionError, match=sentence):
                await consumer.poll(timeout_ms=5_000)
    with pytest.raises(BrokerConnectionError, match=sentence):
        await producing(own_daemon).start()


async def test_garbage_on_one_connection_disturbs_no_other(daemon: Daemon) -> None:
    await create(daemon, "calm")
    async with producing(daemon) as producer:
        await producer.send_and_wait("calm", b"1")
        with socket.create_connection((daemon.host, daemon.port), 30) as rude:
            rude.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert rude.recv(1) == b""
        assert (await producer.send_and_wait("calm", b"2")).offset == 1

"""Exactly once in order, against a real broker: through a proxy that loses responses, and through kill -9."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from barnabas.clients.records import RecordMetadata
from barnabas.protocol.records.batch import RecordBatch
from tests.clients.cutting_proxy import CuttingProxy
from tests.support.daemon import Daemon, start_daemon

PARTITIONS = 3
RECORDS = 6_000
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 2,
    "retry_backoff_max_ms": 20,
    "reconnect_backoff_ms": 2,
    "reconnect_backoff_max_ms": 20,
}
SMALL: dict[str, Any] = {
    "batch_size": 500,
    "buffer_memory": 60_000,
}  # many requests: each answer is a chance to be lost


async def start_behind(proxy: CuttingProxy, directory: Path, **configs: str) -> Daemon:
    """A daemon that sends clients to the proxy, with a topic `t`."""
    daemon = await asyncio.to_thread(start_daemon, directory, f"advertised.listeners={proxy.address}")
    proxy.upstream = (daemon.host, daemon.port)
    async with Admin(AdminConfig(bootstrap=proxy.address)) as admin:
        await admin.create_topic("t", partitions=PARTITIONS, configs=configs)
    return daemon


async def read_values(proxy: CuttingProxy) -> list[list[bytes | None]]:
    """Everything stored, by partition and offset."""
    partitions = [TopicPartition("t", number) for number in range(PARTITIONS)]
    values: list[list[bytes | None]] = [[] for _ in partitions]
    async with Consumer(ConsumerConfig(bootstrap=proxy.address, offset_reset="earliest")) as consumer:
        await consumer.assign(partitions)
        left = sum((await consumer.end_offsets(partitions)).values())
        async with asyncio.timeout(30):
            while left > 0:
                for record in await consumer.poll():
                    assert record.offset == len(values[record.partition])
                    values[record.partition].append(record.value)
                    left -= 1
    return values


def expected(partition: int) -> list[bytes]:
    return [b"%06d" % number for number in range(partition, RECORDS, PARTITIONS)]


async def send_all(
    producer: Producer, *, at_half: asyncio.Event | None = None
) -> Sequence[asyncio.Future[RecordMetadata]]:
    futures = []
    for number in range(RECORDS):
        if at_half is not None and number == RECORDS // 2:
            at_half.set()
        futures.append(await producer.send("t", b"%06d" % number, partition=number % PARTITIONS))
    return futures


@pytest.mark.parametrize(
    ("seed", "settings", "configs"),
    [
        (1, {}, {}),
        (2, {"compression": "zstd", "linger_ms": 1}, {}),
        (3, {}, {"max_message_bytes": "700"}),  # batches are split
        (4, {}, {"flush_messages": "1"}),  # answers wait for the disk
    ],
    ids=["plain", "zstd", "split", "flushed"],
)
async def test_lost_responses_cause_no_loss_no_reordering_and_no_duplicates(
    tmp_path: Path, seed: int, settings: dict[str, Any], configs: dict[str, str]
) -> None:
    named = {name.replace("_", "."): value for name, value in configs.items()}
    async with CuttingProxy(random.Random(seed), cut_rate=0.3) as proxy:
        with await start_behind(proxy, tmp_path, **named):
            config = ProducerConfig(bootstrap=proxy.address, **QUICK, **SMALL, **settings)
            async with asyncio.timeout(60), Producer(config) as producer:
                metadata = await asyncio.gather(*await send_all(producer))
            assert proxy.cuts >= 3
            values = await read_values(proxy)
    assert values == [expected(partition) for partition in range(PARTITIONS)]
    for number, where in enumerate(metadata):
        assert where.offset == number // PARTITIONS


async def test_without_idempotence_lost_answers_store_records_twice(tmp_path: Path) -> None:
    async with CuttingProxy(random.Random(5), cut_rate=0.3) as proxy:
        with await start_behind(proxy, tmp_path):
            config = ProducerConfig(bootstrap=proxy.address, enable_idempotence=False, **QUICK, **SMALL)
            async with asyncio.timeout(60), Producer(config) as producer:
                await asyncio.gather(*await send_all(producer))
            assert proxy.cuts >= 3
            values = await read_values(proxy)
    assert sum(map(len, values)) > RECORDS
    for partition in range(PARTITIONS):
        assert list(dict.fromkeys(values[partition])) == expected(partition)


@pytest.mark.parametrize("clean", [False, True], ids=["killed", "stopped"])
async def test_a_restart_with_lost_responses_causes_no_loss_and_no_duplicates(tmp_path: Path, clean: bool) -> None:
    async with CuttingProxy(random.Random(6), cut_rate=0.3) as proxy:
        with await start_behind(proxy, tmp_path, **{"segment.bytes": "20000"}) as daemon:
            config = ProducerConfig(bootstrap=proxy.address, **QUICK, **SMALL)
            at_half = asyncio.Event()

            async def restart() -> None:
                await at_half.wait()
                proxy.cut_rate = 1.0  # from here on no answer arrives: the restart meets batches in doubt
                cuts = proxy.cuts
                while proxy.cuts < cuts + 5:
                    await asyncio.sleep(0.001)
                await asyncio.to_thread(daemon.restart, clean=clean)
                proxy.cut_rate = 0.3

            async with asyncio.timeout(60), Producer(config) as producer, asyncio.TaskGroup() as group:
                group.create_task(restart())
                metadata = await asyncio.gather(*await send_all(producer, at_half=at_half))
            values = await read_values(proxy)
    assert producer.failed_records == 0
    assert values == [expected(partition) for partition in range(PARTITIONS)]
    for number, where in enumerate(metadata):
        assert where.offset == number // PARTITIONS


async def test_given_up_records_are_not_stored_after_later_ones(tmp_path: Path) -> None:
    async with CuttingProxy(random.Random(7), cut_rate=1.0) as proxy:
        with await start_behind(proxy, tmp_path) as daemon:
            config = ProducerConfig(
                bootstrap=proxy.address, delivery_timeout_ms=2000, request_timeout_ms=1000, batch_size=300, **QUICK
            )
            async with asyncio.timeout(30), Producer(config) as producer:
                doomed = [await producer.send("t", b"doomed %d" % number, partition=0) for number in range(100)]
                outcomes = await asyncio.gather(*doomed, return_exceptions=True)
                assert all(isinstance(outcome, TimeoutError) for outcome in outcomes)
                proxy.cut_rate = 0.0
                later = [await producer.send("t", b"later %d" % number, partition=0) for number in range(100)]
                await asyncio.gather(*later)
            values = (await read_values(proxy))[0]
            (log,) = (daemon.data_directory / "t-0").glob("*.log")
            epochs = [RecordBatch(log.read_bytes(), position).producer_epoch for position in _batch_positions(log)]
    assert values[-100:] == [b"later %d" % number for number in range(100)]
    # In doubt: each at most once and in order. A slow machine gives some up while those behind them still have time.
    doomed_and_stored = [int(str(value, "ascii").removeprefix("doomed ")) for value in values[:-100] if value]
    assert doomed_and_stored == sorted(set(doomed_and_stored))
    assert epochs == sorted(epochs)
    assert epochs[-1] > epochs[0]


def _batch_positions(log: Path) -> list[int]:
    data = log.read_bytes()
    positions, position = [], 0
    while position < len(data):
        positions.append(position)
        position += RecordBatch(data, position).size_bytes
    return positions

"""Clients that we did not write go on after the death of the source and the promotion of its mirror."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from barnabas import Consumer, ConsumerConfig
from barnabas.broker.mirrors.stored_entries import iter_entries
from barnabas.protocol.topic_partition import TopicPartition
from tests.interop.clients.driver import Driver
from tests.interop.clients.programs import CLIENTS, Client
from tests.interop.clients.transaction_features import Instance
from tests.support.daemon import Daemon, start_daemon
from tests.support.mirrors.copies import MIRROR, admin_of, until
from tests.support.mirrors.moving_address import MovingAddress, moving_address
from tests.support.mirrors.promotions import promote

CHOSEN = [each for each in CLIENTS if each.name in ("Java 4.3.0", "confluent-kafka")]


async def values(daemon: Daemon) -> list[int]:
    """Return the numbers that read_committed consumers get."""
    found: list[int] = []
    async with Consumer(
        ConsumerConfig(bootstrap=daemon.bootstrap, isolation="read_committed", offset_reset="earliest")
    ) as consumer:
        await consumer.assign([TopicPartition("t", 0)])
        while records := await consumer.poll(timeout_ms=1000):
            found += [int(each.value or b"-1") for each in records]
    return found


@asynccontextmanager
async def mirrored(tmp_path: Path) -> AsyncIterator[tuple[Daemon, Daemon, MovingAddress]]:
    """Run a source and its mirror, both with the same address for clients, which leads to the source."""
    async with moving_address(0) as address:
        advertised = f"advertised.listeners=PLAINTEXT://{address.bootstrap}"
        with (
            start_daemon(tmp_path / "source", advertised) as source,
            start_daemon(tmp_path / "copy", advertised) as copy,
        ):
            address.move(source.port)
            await asyncio.to_thread(source.create_topic, "t")
            async with admin_of(copy) as admin:
                await admin.mirrors.create(MIRROR, bootstrap=[source.bootstrap], topics=["t"])
            await until(copy, lambda found: [each.state for each in found.partitions] == ["caught_up"])
            yield source, copy, address


@asynccontextmanager
async def driver_of(client: Client, directory: Path, bootstrap: str) -> AsyncIterator[Driver]:
    driver = Driver(client.command(), directory, client.limits)
    driver.bootstrap = bootstrap
    try:
        yield driver
    finally:
        await asyncio.to_thread(driver.close)


def source_end(source: Daemon) -> int:
    """Return the log end offset of the dead source."""
    segment = (source.directory / "data" / "t-0" / f"{0:020d}.log").read_bytes()
    return max(each.last_offset for each in iter_entries(memoryview(segment))) + 1


@pytest.mark.parametrize("client", CHOSEN, ids=lambda client: client.name)
async def test_an_idempotent_producer_goes_on_after_a_promotion_under_load(
    client: Client, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with (
        mirrored(tmp_path) as (source, copy, address),
        driver_of(client, tmp_path_factory.mktemp("driver"), address.bootstrap) as driver,
    ):
        running = driver.stream("t")
        stream = await asyncio.to_thread(running.__enter__)
        for _ in range(2):
            await asyncio.to_thread(stream.wait_for_progress)
        source.kill()
        (row,) = (await promote(copy)).promoted
        lost = source_end(source) - row.copied_end
        address.move(copy.port)
        for _ in range(3):
            await asyncio.to_thread(stream.wait_for_progress)
        await asyncio.to_thread(running.__exit__, None, None, None)
        found = await values(copy)
    assert lost or stream.result["failed"] == []
    assert found == sorted(set(found))
    assert stream.result["acked"] - len(found) <= lost


@pytest.mark.parametrize("client", CHOSEN, ids=lambda client: client.name)
async def test_a_transactional_producer_starts_again_and_sees_only_decided_transactions(
    client: Client, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with (
        mirrored(tmp_path) as (source, copy, address),
        driver_of(client, tmp_path_factory.mktemp("driver"), address.bootstrap) as driver,
    ):

        def before() -> None:
            first = Instance(driver, "first", "id")
            first.send("t", "1", "2")
            first.commit()
            first.send("t", "3")

        def after() -> list[str]:
            second = Instance(driver, "second", "id")
            second.send("t", "4")
            second.commit()
            second.close()
            answer = driver.call("read_values", topic="t", partition=0, committed=True, count=3)
            found: list[str] = answer["values"]
            return found

        await asyncio.to_thread(before)
        await until(copy, lambda found: [each.offset for each in found.partitions] == [4])
        source.kill()
        (row,) = (await promote(copy)).promoted
        assert (row.committed, row.aborted) == (0, 1)
        address.move(copy.port)
        assert await asyncio.to_thread(after) == ["1", "2", "4"]
        assert await values(copy) == [1, 2, 4]

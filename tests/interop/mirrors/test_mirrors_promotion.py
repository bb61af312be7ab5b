"""Clients that we did not write go on after the death of the source and the promotion of its mirror."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig
from barnabas.broker.mirrors.stored_entries import iter_entries
from barnabas.protocol.messages.data.list_offsets import LATEST_TIMESTAMP
from barnabas.protocol.topic_partition import TopicPartition
from tests.interop.clients.driver import Driver, Stream
from tests.interop.clients.programs import CLIENTS, Client
from tests.interop.clients.transaction_features import Instance
from tests.support.daemon import Daemon, start_daemon
from tests.support.free_ports import free_port
from tests.support.mirrors.copies import MIRROR, admin_of, until
from tests.support.mirrors.moving_address import MovingAddress, moving_address
from tests.support.mirrors.promotions import promote

CHOSEN = [each for each in CLIENTS if each.name in ("Java 4.3.0", "confluent-kafka")]
PARTITION = TopicPartition("t", 0)
NOWHERE = 0


async def values(daemon: Daemon) -> list[int]:
    """Return the numbers that read_committed consumers get."""
    found: list[int] = []
    async with Consumer(
        ConsumerConfig(bootstrap=daemon.bootstrap, isolation="read_committed", offset_reset="earliest")
    ) as consumer:
        await consumer.assign([PARTITION])
        while records := await consumer.poll(timeout_ms=1000):
            found += [int(each.value or b"-1") for each in records]
    return found


class Mirrored(NamedTuple):
    """A source and its mirror, both with the same address for clients, which leads to the source."""

    source: Daemon
    copy: Daemon
    address: MovingAddress
    inside: str
    """The listener at which the mirror reads the source, so that clients alone can be cut off."""


@asynccontextmanager
async def mirrored(tmp_path: Path) -> AsyncIterator[Mirrored]:
    async with moving_address(0) as address:
        advertised = f"advertised.listeners=PLAINTEXT://{address.bootstrap}"
        inside = f"127.0.0.1:{free_port()}"
        listeners = (
            f"listeners=PLAINTEXT://127.0.0.1:0,MIRROR://{inside}",
            f"{advertised},MIRROR://{inside}",
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,MIRROR:PLAINTEXT",
        )
        with (
            start_daemon(tmp_path / "source", *listeners) as source,
            start_daemon(tmp_path / "copy", advertised) as copy,
        ):
            address.move(source.port)
            await asyncio.to_thread(source.create_topic, "t")
            async with admin_of(copy) as admin:
                await admin.mirrors.create(MIRROR, bootstrap=[inside], topics=["t"])
            await until(copy, lambda found: [each.state for each in found.partitions] == ["caught_up"])
            yield Mirrored(source, copy, address, inside)


@asynccontextmanager
async def driver_of(client: Client, directory: Path, bootstrap: str) -> AsyncIterator[Driver]:
    driver = Driver(client.command(), directory, client.limits)
    driver.bootstrap = bootstrap
    try:
        yield driver
    finally:
        await asyncio.to_thread(driver.close)


@asynccontextmanager
async def streaming(driver: Driver) -> AsyncIterator[Stream]:
    running = driver.stream("t")
    stream = await asyncio.to_thread(running.__enter__)
    try:
        yield stream
    finally:
        await asyncio.to_thread(running.__exit__, None, None, None)


async def progress(stream: Stream, times: int) -> None:
    for _ in range(times):
        await asyncio.to_thread(stream.wait_for_progress)


async def latest(bootstrap: str) -> int:
    """Return the log end offset of a running broker."""
    async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
        return (await admin.list_offsets({PARTITION: LATEST_TIMESTAMP}))[PARTITION].offset


def source_end(source: Daemon) -> int:
    """Return the log end offset of the dead source."""
    segment = (source.directory / "data" / "t-0" / f"{0:020d}.log").read_bytes()
    return max(each.last_offset for each in iter_entries(memoryview(segment))) + 1


@pytest.mark.parametrize("client", CHOSEN, ids=lambda client: client.name)
async def test_an_idempotent_producer_goes_on_after_a_promotion_that_lost_nothing_acknowledged(
    client: Client, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with (
        mirrored(tmp_path) as (source, copy, address, inside),
        driver_of(client, tmp_path_factory.mktemp("driver"), address.bootstrap) as driver,
    ):
        async with streaming(driver) as stream:
            await progress(stream, 2)
            address.move(NOWHERE)  # in the middle of requests: what was acknowledged is in the source's log now
            end = await latest(inside)
            await until(copy, lambda found: [each.offset >= end for each in found.partitions] == [True])
            source.kill()
            await promote(copy)
            address.move(copy.port)
            await progress(stream, 3)
        assert stream.result["failed"] == []
        assert await values(copy) == list(range(stream.result["sent"]))


@pytest.mark.parametrize("client", CHOSEN, ids=lambda client: client.name)
async def test_an_idempotent_producer_never_fills_the_gap_of_a_promotion_that_lost_acknowledged_records(
    client: Client, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its next sequence is out of order, as at Kafka's leader after an unclean election.

    Java's producer goes on with a new epoch, librdkafka's ends with a fatal error, and a new one has to be made.
    """
    is_fatal = client.name == "confluent-kafka"
    async with (
        mirrored(tmp_path) as (source, copy, address, inside),
        driver_of(client, tmp_path_factory.mktemp("driver"), address.bootstrap) as driver,
    ):
        async with streaming(driver) as stream:
            # Without a copied batch the producer would be unknown, and could begin anywhere.
            await until(copy, lambda found: found.partitions[0].offset > 0)
            async with admin_of(copy) as admin:
                await admin.mirrors.pause(MIRROR)
            await until(copy, lambda found: [each.state for each in found.partitions] == ["paused"])
            end = await latest(inside)  # what has been fetched may still be appended
            while stream.acked <= end:
                await progress(stream, 1)
            source.kill()
            (row,) = (await promote(copy)).promoted
            lost = source_end(source) - row.copied_end
            address.move(copy.port)
            if is_fatal:
                await asyncio.to_thread(stream.wait_for_end)
            else:
                await progress(stream, 3)
        found = await values(copy)
        async with streaming(driver) as again:
            await progress(again, 1)
        both = await values(copy)
    assert found[: row.copied_end] == list(range(row.copied_end))
    assert found == sorted(set(found))
    assert 0 < stream.result["acked"] - len(found) <= lost
    if is_fatal:
        assert len(found) == row.copied_end
        assert any("OUT_OF_ORDER_SEQUENCE_NUMBER" in each for each in stream.result["failed"])
    else:
        assert stream.result["failed"] == []
    assert again.result["failed"] == []
    assert both == [*found, *range(again.result["sent"])]


@pytest.mark.parametrize("client", CHOSEN, ids=lambda client: client.name)
async def test_a_transactional_producer_starts_again_and_sees_only_decided_transactions(
    client: Client, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with (
        mirrored(tmp_path) as (source, copy, address, _),
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

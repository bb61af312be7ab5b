"""The former source follows after a promotion, and both change places again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from barnabas.clients.errors import FailbackError
from barnabas.commands.main import main
from tests.support.daemon import Daemon, start_daemon
from tests.support.groups.committed import create_topic
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.wire_producer import WireProducer
from tests.support.mirrors.copies import MIRROR, admin_of, has_copied, segments, until
from tests.support.mirrors.promotions import drop_last_batches, promote


@pytest.fixture
def east(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(tmp_path / "east") as daemon:
        with KafkaWire(daemon.host, daemon.port) as wire:
            create_topic(wire, "t", 1)
        yield daemon


@pytest.fixture
def west(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(tmp_path / "west") as daemon:
        yield daemon


def write(daemon: Daemon, transactional_id: str, *values: bytes, is_open: bool = False) -> None:
    """Write one committed transaction of a batch for each value, and another one that stays open."""
    with KafkaWire(daemon.host, daemon.port) as wire:
        producer = WireProducer(wire, transactional_id, timeout_ms=1000)
        assert producer.init() == 0
        for value in values:
            assert producer.write("t", 0, value) == 0
        assert producer.end(is_commit=True) == 0
        if is_open:
            assert producer.write("t", 0, b"open") == 0


async def failback(here: Daemon, former: Daemon) -> Result:
    arguments = ["mirror", "failback", MIRROR, "--bootstrap", here.bootstrap, "--former", former.bootstrap]
    return await asyncio.to_thread(CliRunner().invoke, main, arguments)


def content(daemon: Daemon) -> bytes:
    return b"".join(segments(daemon.directory / "data", "t").values())


async def test_the_former_source_is_cut_to_the_common_records_follows_and_takes_over_again(
    east: Daemon, west: Daemon
) -> None:
    await asyncio.to_thread(write, east, "x", b"a", b"b", is_open=True)
    async with admin_of(west) as admin:
        await admin.mirrors.create(MIRROR, bootstrap=[east.bootstrap], topics=["t.*"])
    await until(west, has_copied(4))
    refused = await failback(west, east)
    assert (refused.exit_code, "mirror m is running: only a promoted" in refused.stderr) == (1, True)
    async with admin_of(west) as admin:
        await admin.mirrors.pause(MIRROR)
    await asyncio.to_thread(write, east, "y", b"lost", b"lost")
    east.kill()
    await promote(west)
    await asyncio.to_thread(write, west, "z", b"c")
    unreachable = await failback(west, east)
    assert (unreachable.exit_code, east.bootstrap in unreachable.stderr) == (3, True)

    await asyncio.to_thread(east.start)
    done = await failback(west, east)
    assert done.exit_code == 0, done.stderr
    await until(east, has_copied(7))
    assert content(east) == content(west)
    (kept,) = (east.directory / "data").glob("t-0.cut-*.log")
    assert kept.read_bytes().count(b"lost") == 2
    await asyncio.to_thread(write, west, "z", b"d")
    await until(east, has_copied(9))
    await asyncio.to_thread(east.restart, clean=False)
    await until(east, has_copied(9))

    found = await promote(east)
    assert found.promoted[0].copied_end == 9
    await asyncio.to_thread(write, east, "x", b"e")
    done = await failback(east, west)
    assert done.exit_code == 0, done.stderr
    # The coordinator of east ends its old transaction again, which adds a marker sooner or later.
    await until(west, lambda _: b"e" in content(west)[-200:] and content(west) == content(east))
    assert list((west.directory / "data").glob("t-0.cut-*.log")) == []


async def test_a_topic_that_was_created_again_is_not_cut(east: Daemon, west: Daemon) -> None:
    await asyncio.to_thread(write, east, "x", b"a")
    async with admin_of(west) as admin:
        await admin.mirrors.create(MIRROR, bootstrap=[east.bootstrap], topics=["t"])
    await until(west, has_copied(2))
    await promote(west)
    async with admin_of(east) as admin:
        await admin.delete_topic("t")
        await admin.create_topic("t", partitions=1)
    async with admin_of(west) as admin:
        with pytest.raises(FailbackError, match="t was deleted and created again at the former source"):
            await admin.mirrors.failback(MIRROR)
    refused = await failback(west, east)
    assert (refused.exit_code, "t was deleted and created again" in refused.stderr) == (1, True)
    async with admin_of(east) as admin:
        assert await admin.mirrors.describe_all() == []


async def test_other_records_at_the_same_offsets_and_leader_epoch_are_cut(east: Daemon, west: Daemon) -> None:
    await asyncio.to_thread(write, east, "x", b"a", b"b")
    async with admin_of(west) as admin:
        await admin.mirrors.create(MIRROR, bootstrap=[east.bootstrap], topics=["t"])
    await until(west, has_copied(3))
    east.stop()
    await promote(west)
    drop_last_batches(east.directory / "data", "t-0", 1, is_noticed=False)  # the marker
    await asyncio.to_thread(east.start)
    await asyncio.to_thread(write, east, "y", b"other", b"other")
    done = await failback(west, east)
    assert done.exit_code == 0, done.stderr
    await until(east, has_copied(3))
    assert content(east) == content(west)

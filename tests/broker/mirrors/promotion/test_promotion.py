"""Promotions of a running mirror: open transactions, crashes between the steps, a source that is dead or answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import Producer, ProducerConfig, RefusedError
from barnabas.broker.metadata.mirrors.promotion import EPOCH_STRIDE
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.protocol.mirrors.promotion import Undecided
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import Daemon, start_daemon, with_fault
from tests.support.eventually import eventually
from tests.support.groups.committed import create_topic
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.wire_producer import WireProducer
from tests.support.mirrors.copies import MIRROR, admin_of, has_copied, until
from tests.support.mirrors.promotions import drop_last_batches, promote, promoted, settled, stable, write_end
from tests.support.storage.records import plain

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(tmp_path / "source") as daemon:
        with KafkaWire(daemon.host, daemon.port) as wire:
            create_topic(wire, "t", 2)
        yield daemon


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(tmp_path / "copy") as daemon:
        yield daemon


async def create(copy: Daemon, source: Daemon, **options: object) -> None:
    async with admin_of(copy) as admin:
        await admin.mirrors.create(MIRROR, bootstrap=[source.bootstrap], topics=["t.*"], **options)  # type: ignore[arg-type]


def write(source: Daemon) -> None:
    """Write an aborted and a committed transaction to both partitions, and leave one open in both."""
    with KafkaWire(source.host, source.port) as wire:
        producer = WireProducer(wire, "x")
        assert producer.init() == 0
        for value, is_commit in ((b"no", False), (b"yes", True)):
            assert producer.write_many({("t", 0): (value,), ("t", 1): (value,)}) == 0
            assert producer.end(is_commit=is_commit) == 0
        assert producer.write_many({("t", 0): (b"open",), ("t", 1): (b"open",)}) == 0


async def test_open_transactions_are_aborted_after_the_death_of_the_source(source: Daemon, copy: Daemon) -> None:
    await asyncio.to_thread(write, source)
    await create(copy, source)
    await until(copy, has_copied(10))
    source.kill()
    found = await promote(copy)
    assert found.state == "promoted"
    assert [(each.topic, each.state) for each in found.topics] == [("t", "promoted")]
    assert [(each.copied_end, each.end, each.committed, each.aborted, each.cut) for each in found.promoted] == [
        (5, 6, 0, 1, 0)
    ] * 2
    assert all(each.leader_epoch >= EPOCH_STRIDE for each in found.promoted)
    await write_end(copy)
    assert [await stable(copy, each) for each in (A, B)] == [[b"yes", b"end"]] * 2
    assert await promote(copy) == found  # again, without effect
    await asyncio.to_thread(copy.restart)
    await write_end(copy)
    async with admin_of(copy) as admin:
        assert (await admin.mirrors.describe(MIRROR)).promoted == found.promoted


def wait_for_end(daemon: Daemon) -> None:
    eventually(lambda: None if daemon.running else True, what="the end of the broker")
    daemon.kill()  # closes its files


@pytest.mark.parametrize(
    "step",
    ["promotion.decided", "promotion.prepared", "promotion.marker", "promotion.settled"],
)
async def test_a_promotion_goes_on_after_kill_9_between_its_steps(source: Daemon, tmp_path: Path, step: str) -> None:
    await asyncio.to_thread(write, source)
    with start_daemon(tmp_path / "copy", environ={"BARNABAS_TEST_FAILPOINTS": f"{step}=kill"}) as copy:
        await create(copy, source)
        await until(copy, has_copied(10))
        source.kill()
        async with admin_of(copy) as admin:
            await admin.mirrors.promote(MIRROR)
        await asyncio.to_thread(wait_for_end, copy)
    with start_daemon(tmp_path / "copy") as copy:
        found = await promoted(copy)
        assert [(each.copied_end, each.end, each.aborted) for each in found.promoted] == [(5, 6, 1)] * 2
        await write_end(copy)
        assert [await stable(copy, each) for each in (A, B)] == [[b"yes", b"end"]] * 2


REFUSED_TWICE = """
from barnabas.broker.mirrors.promotion import promotion
from barnabas.protocol.errors import BrokerError, ErrorCode
clamp, refused = promotion.clamp_groups, []

async def clamp_later(*arguments):
    if len(refused) < 2:
        refused.append(1)
        raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "groups are being loaded")
    return await clamp(*arguments)

promotion.clamp_groups = clamp_later
"""


async def test_a_step_that_fails_is_repeated_without_the_steps_before_it(source: Daemon, tmp_path: Path) -> None:
    """Logs that were settled are not cut and settled again at each try, which would keep another file each time."""
    await asyncio.to_thread(write, source)
    with start_daemon(tmp_path / "copy", environ=with_fault(tmp_path, REFUSED_TWICE)) as copy:
        await create(copy, source)
        await until(copy, has_copied(10))
        found = await promote(copy)
        assert copy.log.count("groups are being loaded") == 2
        assert [(each.copied_end, each.end, each.aborted) for each in found.promoted] == [(5, 6, 1)] * 2
        assert list(copy.data_directory.glob("*.cut-*")) == []


async def copied_apart(source: Daemon, copy: Daemon, *, level: int, leaves_open: bool = False) -> None:
    """Copy a transaction that is committed in partition 0, and open in partition 1 for want of its marker.

    With `leaves_open` the producer's next transaction is the open one. A record of another producer follows it.
    """

    def work() -> None:
        with KafkaWire(source.host, source.port) as wire:
            producer = WireProducer(wire, "x", level=level)
            assert producer.init() == 0
            assert producer.write_many({("t", 0): (b"a",), ("t", 1): (b"b",)}) == 0
            assert producer.end(is_commit=True) == 0
            if leaves_open:
                assert producer.write("t", 1, b"open") == 0
            else:
                assert wire.produce(9, "t", plain(1), partition=1, acks=-1).error_code == 0

    await asyncio.to_thread(work)
    await create(copy, source)
    await until(copy, has_copied(5))
    async with admin_of(copy) as admin:
        await admin.mirrors.pause(MIRROR)
    if not leaves_open:
        await asyncio.to_thread(copy.stop)
        drop_last_batches(copy.directory / "data", "t-1", 2)
        await asyncio.to_thread(copy.start)


async def test_a_commit_that_only_another_partition_has_is_written(source: Daemon, copy: Daemon) -> None:
    await copied_apart(source, copy, level=2)
    source.kill()
    found = await promote(copy)
    assert settled(found) == [(0, 0, 0), (1, 0, 0)]
    await write_end(copy)
    assert [await stable(copy, each) for each in (A, B)] == [[b"a", b"end"], [b"b", b"end"]]


async def test_the_source_decides_about_producers_whose_transactions_share_an_epoch(
    source: Daemon, copy: Daemon
) -> None:
    await copied_apart(source, copy, level=0)
    found = await promote(copy)
    assert settled(found) == [(0, 0, 0), (1, 0, 0)]
    await write_end(copy)
    assert await stable(copy, B) == [b"b", b"end"]


async def test_a_transaction_that_is_ongoing_at_the_source_is_aborted(source: Daemon, copy: Daemon) -> None:
    await copied_apart(source, copy, level=0, leaves_open=True)
    found = await promote(copy)
    assert settled(found) == [(0, 0, 0), (0, 1, 0)]
    await write_end(copy)
    assert await stable(copy, B) == [b"b", b"end"]


@pytest.mark.parametrize("undecided", list(Undecided))
async def test_undecided_partitions_are_cut_and_the_records_kept_or_only_the_transaction_is_aborted(
    source: Daemon, copy: Daemon, undecided: Undecided
) -> None:
    await copied_apart(source, copy, level=0, leaves_open=True)
    source.kill()
    async with admin_of(copy) as admin:
        await admin.set_group_offsets("g", {B: CommittedOffset(3)})
    found = await promote(copy, undecided=undecided)
    async with admin_of(copy) as admin:
        committed = (await admin.group_offsets("g"))[B].offset
    kept = list((copy.directory / "data").glob("t-1.cut-*.log"))
    if undecided is Undecided.CUT:
        assert (settled(found), committed, len(kept)) == ([(0, 0, 0), (0, 0, 1)], 2, 1)
    else:
        assert (settled(found), committed, kept) == ([(0, 0, 0), (0, 1, 0)], 3, [])
    await write_end(copy)
    assert await stable(copy, B) == [b"b", b"end"]


async def test_chosen_topics_are_promoted_and_the_mirror_goes_on_with_the_others(source: Daemon, copy: Daemon) -> None:
    with KafkaWire(source.host, source.port) as wire:
        create_topic(wire, "t-other")
    await asyncio.to_thread(write, source)
    await create(copy, source)
    await until(copy, has_copied(10))
    found = await promote(copy, "t")
    assert {each.topic: each.state for each in found.topics} == {"t": "promoted", "t-other": "mirrored"}
    await write_end(copy)
    async with Producer(ProducerConfig(bootstrap=source.bootstrap)) as producer:
        await producer.send_and_wait("t-other", b"later")
        await producer.send_and_wait("t", b"later", partition=0)
    await until(copy, lambda found: [each.offset for each in found.partitions if each.topic == "t-other"] == [1])
    assert await stable(copy, A) == [b"yes", b"end"]
    with pytest.raises(RefusedError, match="has no topic that matches"):
        await promote(copy, "nothing")


async def test_changes_that_a_promotion_forbids_are_refused(source: Daemon, copy: Daemon) -> None:
    await create(copy, source)
    await until(copy, has_copied(0))
    await promote(copy)
    async with admin_of(copy) as admin:
        with pytest.raises(RefusedError, match="is promoted"):
            await admin.mirrors.resume(MIRROR)
        with pytest.raises(RefusedError, match="does not exist"):
            await admin.mirrors.promote("other")
        with pytest.raises(RefusedError, match="not a regular expression"):
            await admin.mirrors.promote(MIRROR, ["("])
        assert await admin.mirrors.delete(MIRROR) == []

"""A daemon mirrors another one: same batches, offsets, epochs and configs; restarts, kills, growth and pauses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import (
    Consumer,
    ConsumerConfig,
    Producer,
    ProducerConfig,
    RefusedError,
)
from barnabas.broker.mirrors.stored_entries import iter_entries
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.protocol.messages.data.list_offsets import EARLIEST_TIMESTAMP
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import Daemon, start_daemon
from tests.support.metrics import wait_for_metric
from tests.support.mirrors.copies import MIRROR, admin_of, has_copied, problems_of, segments, until


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(tmp_path / "source") as daemon:
        yield daemon


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(tmp_path / "copy") as daemon:
        yield daemon


def data_of(daemon: Daemon) -> Path:
    return daemon.directory / "data"


async def create(copy: Daemon, source: Daemon, *topics: str, **options: object) -> None:
    async with admin_of(copy) as admin:
        await admin.mirrors.create(MIRROR, bootstrap=[source.bootstrap], topics=topics or ["t.*"], **options)  # type: ignore[arg-type]


async def produce(daemon: Daemon, topic: str, values: range, partitions: int = 2) -> None:
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
        for number in values:
            await producer.send_and_wait(topic, b"%04d" % number, partition=number % partitions)


async def test_topics_are_copied_at_the_same_offsets_and_are_read_only(source: Daemon, copy: Daemon) -> None:
    source.create_topic("t1", partitions=2, configs={"retention.ms": "1234567890", "segment.bytes": "1048576"})
    source.create_topic("t2", partitions=2)
    source.create_topic("other", partitions=1)
    await produce(source, "t1", range(50))
    await create(copy, source)
    await produce(source, "t2", range(30))
    await until(copy, has_copied(80))
    for topic in ("t1", "t2"):
        assert segments(data_of(copy), topic) == segments(data_of(source), topic)
    async with admin_of(copy) as admin:
        assert [each.name for each in await admin.list_topics() if not each.name.startswith("__")] == ["t1", "t2"]
        configs = {each.name: each.value for each in await admin.describe_configs(topic="t1")}
        assert (configs["retention.ms"], configs["segment.bytes"]) == ("1234567890", "1048576")
    with pytest.raises(RefusedError, match="is copied by mirror 'm'"):
        await produce(copy, "t1", range(1))


async def test_growth_pauses_and_restarts_of_either_side(source: Daemon, copy: Daemon) -> None:
    source.create_topic("t", partitions=1)
    await produce(source, "t", range(10), 1)
    await create(copy, source)
    await until(copy, has_copied(10))
    async with admin_of(copy) as admin:
        await admin.mirrors.pause(MIRROR)
    await until(copy, lambda found: found.state == "paused")
    async with admin_of(source) as admin:
        await admin.create_partitions("t", 3)
    await produce(source, "t", range(30), 3)
    await asyncio.to_thread(copy.restart)
    found = await until(copy, lambda found: found.state == "paused")
    assert [each.offset for each in found.partitions] in ([], [10])
    async with admin_of(copy) as admin:
        await admin.mirrors.resume(MIRROR)
    await until(copy, has_copied(40))
    await asyncio.to_thread(source.restart, clean=False)
    await produce(source, "t", range(6), 3)
    await until(copy, has_copied(46))
    await asyncio.to_thread(copy.restart, clean=False)
    await produce(source, "t", range(3), 3)
    await until(copy, has_copied(49))
    assert segments(data_of(copy), "t") == segments(data_of(source), "t")


async def test_transactions_and_compressed_batches_are_copied_with_their_markers(source: Daemon, copy: Daemon) -> None:
    source.create_topic("t", partitions=2)
    await create(copy, source)
    config = ProducerConfig(bootstrap=source.bootstrap, transactional_id="x", compression="zstd")
    async with Producer(config) as producer:
        for number in range(6):
            with contextlib.suppress(ZeroDivisionError):
                async with producer.transaction():
                    for partition in range(2):
                        await producer.send_and_wait("t", b"%d" % number, partition=partition)
                    if number % 3 == 2:
                        raise ZeroDivisionError
    await until(copy, has_copied(24))
    assert segments(data_of(copy), "t") == segments(data_of(source), "t")
    found: list[bytes | None] = []
    async with Consumer(
        ConsumerConfig(bootstrap=copy.bootstrap, isolation="read_committed", offset_reset="earliest")
    ) as consumer:
        await consumer.assign([TopicPartition("t", 0)])
        async with asyncio.timeout(20):
            while len(found) < 4:
                found += [each.value for each in await consumer.poll(timeout_ms=100)]
    assert found == [b"0", b"1", b"3", b"4"]


async def test_a_source_that_lost_its_tail_is_followed_and_the_cut_records_are_kept(
    source: Daemon, copy: Daemon
) -> None:
    source.create_topic("t", partitions=1)
    await produce(source, "t", range(20), 1)
    await create(copy, source, keep_cut=True)
    await until(copy, has_copied(20))
    source.stop()
    segment = source.directory / "data" / "t-0" / f"{0:020d}.log"
    kept = segment.read_bytes()
    size = next(each.position for each in iter_entries(memoryview(kept)) if each.base_offset == 12)
    with segment.open("r+b") as file:
        file.truncate(size)
    (source.directory / "data" / ".kafka_cleanshutdown").unlink()
    source.start()
    await produce(source, "t", range(100, 103), 1)
    await until(copy, has_copied(15))
    assert segments(data_of(copy), "t") == segments(data_of(source), "t")
    (cut,) = (copy.directory / "data").glob("t-0.cut-*.log")
    assert cut.read_bytes() == kept[size:]
    assert "diverges from its source: dropping offsets 12..19" in copy.log


async def test_a_topic_made_again_a_deleted_one_and_an_occupied_name_are_reported(source: Daemon, copy: Daemon) -> None:
    for topic in ("t-again", "t-deleted", "t-occupied"):
        source.create_topic(topic, partitions=1)
        await produce(source, topic, range(5), 1)
    copy.create_topic("t-occupied", partitions=1)
    await produce(copy, "t-occupied", range(2), 1)
    await create(copy, source)
    found = await until(copy, has_copied(10))
    assert problems_of(found) == {"t-occupied": "a topic of this name exists here; delete it, or exclude it"}
    async with admin_of(source) as admin:
        await admin.delete_topic("t-again")
        await admin.delete_topic("t-deleted")
        await admin.create_topic("t-again", partitions=1)
    found = await until(copy, lambda found: "created again at the source" in problems_of(found).get("t-again", ""))
    problems = problems_of(found)
    assert "does not exist at the source" in problems["t-deleted"]
    assert {each.topic: each.state for each in found.topics} == {
        "t-again": "failed",
        "t-deleted": "deleted_at_source",
    }


async def test_a_topic_deleted_on_both_sides_is_forgotten_and_copied_when_it_comes_again(
    source: Daemon, copy: Daemon
) -> None:
    for topic in ("t-again", "t-gone", "t-stays"):
        source.create_topic(topic, partitions=1)
        await produce(source, topic, range(5), 1)
    await create(copy, source)
    await until(copy, has_copied(15))
    async with admin_of(copy) as admin:
        for topic in ("t-again", "t-gone", "t-stays"):
            await admin.delete_topic(topic)
    async with admin_of(source) as admin:
        await admin.delete_topic("t-again")
        await admin.delete_topic("t-gone")
        await admin.create_topic("t-again", partitions=1)
    await produce(source, "t-again", range(3), 1)

    found = await until(copy, lambda found: len(found.topics) == 2 and has_copied(3)(found))

    assert {each.topic: each.state for each in found.topics} == {"t-again": "mirrored", "t-stays": "deleted_here"}
    source.create_topic("t-gone", partitions=1)
    await produce(source, "t-gone", range(4), 1)
    found = await until(copy, has_copied(7))
    assert problems_of(found) == {"t-stays": "the topic was deleted here; resume the mirror to copy it again"}


async def test_the_start_of_new_copies_can_be_the_end_or_a_time(source: Daemon, copy: Daemon) -> None:
    source.create_topic("t", partitions=1)
    await produce(source, "t", range(5), 1)
    await create(copy, source, start="latest")
    await until(copy, has_copied(5))
    await produce(source, "t", range(3), 1)
    await until(copy, has_copied(8))
    async with admin_of(copy) as admin:
        (offset,) = (await admin.list_offsets({TopicPartition("t", 0): EARLIEST_TIMESTAMP})).values()
    assert offset.offset == 5


async def test_a_source_that_cannot_be_reached_is_an_error_of_the_mirror(source: Daemon, copy: Daemon) -> None:
    source.create_topic("t", partitions=1)
    source.stop()
    await create(copy, source)
    found = await until(copy, lambda found: found.error is not None)
    assert source.bootstrap in str(found.error)
    source.start()
    await produce(source, "t", range(4), 1)
    found = await until(copy, has_copied(4))
    assert found.error is None


async def test_a_cluster_does_not_mirror_itself(copy: Daemon) -> None:
    copy.create_topic("t1", partitions=1)
    await create(copy, copy)
    found = await until(copy, lambda found: found.error is not None)
    assert "the source is this cluster itself, or was copied from its directories" in str(found.error)
    assert (found.partitions, found.problems) == ([], [])


async def test_committed_offsets_of_groups_are_followed_and_the_lag_is_a_metric(source: Daemon, copy: Daemon) -> None:
    source.create_topic("t", partitions=1)
    await produce(source, "t", range(10), 1)
    async with admin_of(source) as admin:
        await admin.set_group_offsets("g", {TopicPartition("t", 0): CommittedOffset(7)})
    await create(copy, source, groups=["g.*"])
    await until(copy, has_copied(10))
    async with admin_of(copy) as admin, asyncio.timeout(30):
        # An offset followed before its records are here is the mirror's end for a while.
        while (found := (await admin.group_offsets("g")).get(TopicPartition("t", 0))) is None or found.offset != 7:
            await asyncio.sleep(0.1)
    await asyncio.to_thread(
        wait_for_metric, copy, 'barnabas_mirror_lag_records{mirror="m",partition="0",topic="t"}', 0.0
    )

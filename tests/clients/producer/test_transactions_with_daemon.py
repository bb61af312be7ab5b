"""Transactions against a real broker: visibility, fencing, lost answers, and kill -9 at the moments that matter."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas import (
    Admin,
    AdminConfig,
    CommitFailedError,
    Consumer,
    ConsumerConfig,
    Producer,
    ProducerConfig,
    ProducerFencedError,
    RefusedError,
    TopicPartition,
    TransactionAbortableError,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from tests.clients.cutting_proxy import CuttingProxy
from tests.clients.waiting import until
from tests.support.daemon import Daemon, start_daemon

QUICK: dict[str, Any] = {
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 20,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 20,
}
PARTITIONS = 3
SMALL = (f"num.partitions={PARTITIONS}", "transaction.state.log.num.partitions=1", "offsets.topic.num.partitions=1")
"""Fewer partitions of internal topics make a start faster."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    soon = "transaction.abort.timed.out.transaction.cleanup.interval.ms=100"
    with start_daemon(tmp_path_factory.mktemp("daemon"), soon, *SMALL) as running:
        yield running


@asynccontextmanager
async def transactional(bootstrap: str, transactional_id: str, **settings: Any) -> AsyncIterator[Producer]:
    config = ProducerConfig(bootstrap=bootstrap, transactional_id=transactional_id, **{**QUICK, **settings})
    async with Producer(config) as producer:
        yield producer


async def read(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[bytes | None]:
    """The values of all partitions up to their ends, sorted."""
    config = ConsumerConfig(bootstrap=bootstrap, offset_reset="earliest", isolation=isolation, **QUICK)
    values: list[bytes | None] = []
    async with Consumer(config) as consumer:
        partitions = await consumer.partitions_for(topic)
        await consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        async with asyncio.timeout(20):
            while any([await consumer.position(each) < ends[each] for each in partitions]):
                values += [record.value for record in await consumer.poll(timeout_ms=50)]
    return sorted(values, key=lambda value: value or b"")


async def send_everywhere(producer: Producer, topic: str, value: bytes) -> None:
    for partition in range(PARTITIONS):
        await producer.send(topic, b"%s-%d" % (value, partition), partition=partition)


def everywhere(*values: bytes) -> list[bytes]:
    return sorted(b"%s-%d" % (value, partition) for value in values for partition in range(PARTITIONS))


async def fail_within(producer: Producer, topic: str, value: bytes) -> None:
    async with producer.transaction():
        await send_everywhere(producer, topic, value)
        await producer.flush()
        raise KeyError("of the program")


async def test_readers_of_committed_records_see_whole_transactions_only(daemon: Daemon) -> None:
    async with transactional(daemon.bootstrap, "visible") as producer:
        async with producer.transaction():
            await send_everywhere(producer, "visible", b"committed")
        with pytest.raises(KeyError):
            await fail_within(producer, "visible", b"aborted")
        await producer.begin_transaction()
        await send_everywhere(producer, "visible", b"open")
        await producer.flush()
        assert await read(daemon.bootstrap, "visible") == everywhere(b"committed")
        assert await read(daemon.bootstrap, "visible", "read_uncommitted") == everywhere(
            b"committed", b"aborted", b"open"
        )
        await producer.commit_transaction()
        assert await read(daemon.bootstrap, "visible") == everywhere(b"committed", b"open")


async def test_a_waiting_reader_gets_the_records_when_they_are_committed(daemon: Daemon) -> None:
    config = ConsumerConfig(
        bootstrap=daemon.bootstrap, offset_reset="earliest", isolation="read_committed", max_wait_ms=60_000
    )
    async with transactional(daemon.bootstrap, "waited") as producer, Consumer(config) as consumer:
        await producer.begin_transaction()
        metadata = await producer.send_and_wait("waited", b"a")
        await consumer.assign([(metadata.topic, metadata.partition)])
        assert await consumer.poll(timeout_ms=50) == []
        await producer.commit_transaction()
        async with asyncio.timeout(20):
            (record,) = await consumer.poll(timeout_ms=20_000)
        assert record.value == b"a"


async def test_a_second_producer_fences_the_first_and_aborts_its_transaction(daemon: Daemon) -> None:
    async with transactional(daemon.bootstrap, "fenced") as first:
        await first.begin_transaction()
        await send_everywhere(first, "fenced", b"first")
        await first.flush()
        async with transactional(daemon.bootstrap, "fenced") as second:
            late = await first.send("fenced", b"late")
            with pytest.raises((TransactionAbortableError, ProducerFencedError)):
                await first.commit_transaction()
            assert late.exception() is not None
            async with second.transaction():
                await send_everywhere(second, "fenced", b"second")
        with pytest.raises(ProducerFencedError):
            await first.abort_transaction()
        with pytest.raises(ProducerFencedError):
            await first.begin_transaction()
    assert await read(daemon.bootstrap, "fenced") == everywhere(b"second")


@pytest.mark.parametrize("next_step", ["sends", "sends_offsets", "commits"])
async def test_a_transaction_that_takes_too_long_is_aborted(daemon: Daemon, next_step: str) -> None:
    topic = name = f"slow-{next_step}"
    async with (
        Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin,
        transactional(daemon.bootstrap, name, transaction_timeout_ms=200) as producer,
    ):
        await producer.begin_transaction()
        await send_everywhere(producer, topic, b"late")
        await producer.flush()
        async with asyncio.timeout(20):
            while await state_of(admin, name) != "CompleteAbort":
                await asyncio.sleep(0.05)
        if next_step == "sends_offsets":
            async with consuming(daemon.bootstrap, "slow") as consumer:
                await consumer.assign([(topic, 0)])
                with pytest.raises(TransactionAbortableError):
                    await producer.send_offsets_to_transaction(consumer, {TopicPartition(topic, 0): 1})
        elif next_step == "sends":
            await producer.send(topic, b"later", partition=0)
        with pytest.raises(TransactionAbortableError):
            await producer.commit_transaction()
        await producer.abort_transaction()
        await producer.begin_transaction()  # the same producer goes on
        await producer.abort_transaction()
    async with transactional(daemon.bootstrap, name) as producer, producer.transaction():
        await send_everywhere(producer, topic, b"in time")
    assert await read(daemon.bootstrap, topic) == everywhere(b"in time")


async def state_of(admin: Admin, transactional_id: str) -> str:
    (found,) = await admin.list_transactions(pattern=transactional_id)
    return found.state


@pytest.mark.parametrize("level", [2, 0], ids=["an epoch per transaction", "the same epoch"])
async def test_lost_answers_change_no_outcome(tmp_path: Path, level: int) -> None:
    apis = {ApiKey.PRODUCE, ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.INIT_PRODUCER_ID}
    async with CuttingProxy(random.Random(11), cut_rate=0.3, apis=apis) as proxy:
        settings = (f"advertised.listeners={proxy.address}", f"initial.features=transaction.version={level}", *SMALL)
        running = await asyncio.to_thread(start_daemon, tmp_path, *settings)
        with running:
            proxy.upstream = (running.host, running.port)
            committed = []
            for producer_number in range(2):
                async with transactional(proxy.address, "lossy") as producer:
                    for number in range(16):
                        value = b"%d-%02d" % (producer_number, number)
                        if number % 4 == 3:
                            with pytest.raises(KeyError):
                                await fail_within(producer, "lossy", value)
                            continue
                        committed.append(value)
                        async with producer.transaction():
                            await send_everywhere(producer, "lossy", value)
            assert proxy.cuts > 10
            assert await read(proxy.address, "lossy") == everywhere(*committed)


async def test_a_broker_killed_inside_transactions_keeps_them_open(tmp_path: Path) -> None:
    with start_daemon(tmp_path, *SMALL) as running:
        await fill(running.bootstrap, "inputs", 6)
        async with (
            transactional(running.bootstrap, "committed") as committing,
            transactional(running.bootstrap, "aborted") as aborting,
            consuming(running.bootstrap, "copies") as consumer,
        ):
            await consumer.assign([("inputs", 0)])
            await consumer.poll(3, timeout_ms=20_000)
            for producer in (committing, aborting):
                await producer.begin_transaction()
                await send_everywhere(producer, "killed", b"before")
                await producer.flush()
            await committing.send_offsets_to_transaction(consumer)

            await asyncio.to_thread(running.restart, clean=False)
            assert await committed_offset(running.bootstrap, "copies", "inputs") is None
            for producer in (committing, aborting):
                await send_everywhere(producer, "killed", b"after")
            await aborting.abort_transaction()
            await committing.commit_transaction()
        assert await read(running.bootstrap, "killed") == everywhere(b"before", b"after")
        assert await committed_offset(running.bootstrap, "copies", "inputs") == 3


async def test_a_commit_survives_a_broker_killed_while_it_is_sent(tmp_path: Path) -> None:
    async with CuttingProxy(random.Random(12), cut_rate=0.0, apis={ApiKey.END_TXN}) as proxy:
        running = await asyncio.to_thread(start_daemon, tmp_path, f"advertised.listeners={proxy.address}", *SMALL)
        with running:
            proxy.upstream = (running.host, running.port)
            async with transactional(proxy.address, "killed") as producer:
                await producer.begin_transaction()
                await send_everywhere(producer, "killed", b"a")
                await producer.flush()
                proxy.cut_rate = 1.0  # the commit is carried out, and its answer never arrives
                commit = asyncio.create_task(producer.commit_transaction())
                await until(lambda: proxy.cuts > 0)
                await asyncio.to_thread(running.restart, clean=False)
                proxy.cut_rate = 0.0
                await commit
                async with producer.transaction():
                    await send_everywhere(producer, "killed", b"b")
            assert await read(proxy.address, "killed") == everywhere(b"a", b"b")


# offsets of groups


def consuming(bootstrap: str, group: str, **settings: Any) -> Consumer:
    return Consumer(
        ConsumerConfig(
            bootstrap=bootstrap,
            group=group,
            auto_commit=False,
            isolation="read_committed",
            offset_reset="earliest",
            heartbeat_interval_ms=50,
            **{**QUICK, **settings},
        )
    )


async def fill(bootstrap: str, topic: str, count: int) -> None:
    async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
        await admin.create_topic(topic, partitions=1)
    async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
        for number in range(count):
            await producer.send(topic, b"%d" % number)


async def committed_offset(bootstrap: str, group: str, topic: str) -> int | None:
    async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
        found = await admin.group_offsets(group)
    at = found.get(TopicPartition(topic, 0))
    return None if at is None else at.offset


async def test_offsets_take_effect_with_the_records(daemon: Daemon) -> None:
    await fill(daemon.bootstrap, "inputs", 10)
    async with transactional(daemon.bootstrap, "copy") as producer, consuming(daemon.bootstrap, "copies") as consumer:
        await consumer.subscribe(["inputs"])
        records = await consumer.poll(4, timeout_ms=20_000)
        async with producer.transaction():
            for record in records:
                await producer.send("copies", record.value)
            assert await producer.send_offsets_to_transaction(consumer) == {TopicPartition("inputs", 0): 4}
            assert await committed_offset(daemon.bootstrap, "copies", "inputs") is None
        assert await committed_offset(daemon.bootstrap, "copies", "inputs") == 4

        records = await consumer.poll(4)
        await producer.begin_transaction()
        for record in records:
            await producer.send("copies", record.value)
        await producer.send_offsets_to_transaction(consumer)
        await producer.abort_transaction()
        assert await committed_offset(daemon.bootstrap, "copies", "inputs") == 4

        await consumer.seek_to_committed()
        again = await consumer.poll(4)
        assert [record.value for record in again] == [record.value for record in records] == [b"4", b"5", b"6", b"7"]
    assert await read(daemon.bootstrap, "copies") == [b"0", b"1", b"2", b"3"]


async def test_a_consumer_fetches_no_offset_that_an_open_transaction_may_change(daemon: Daemon) -> None:
    await fill(daemon.bootstrap, "unstable", 4)
    partition = TopicPartition("unstable", 0)
    async with (
        transactional(daemon.bootstrap, "unstable") as producer,
        consuming(daemon.bootstrap, "unstable") as consumer,
        Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin,
    ):
        await consumer.commit({partition: 1})
        await producer.begin_transaction()
        await producer.send_offsets_to_transaction(consumer, {partition: 3})
        assert (await admin.group_offsets("unstable"))[partition].offset == 1
        config = ConsumerConfig(bootstrap=daemon.bootstrap, group="unstable", api_timeout_ms=200, **QUICK)
        async with Consumer(config) as other:
            with pytest.raises(
                RefusedError, match="a transaction that commits the group's offset has not ended"
            ) as found:
                await other.assign([partition])
            assert (found.value.code, found.value.retriable) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, True)
        waiting = asyncio.create_task(consumer.assign([partition]))
        watching = asyncio.create_task(admin.group_offsets("unstable", require_stable=True))
        await asyncio.wait([waiting, watching], timeout=0.2)
        assert not watching.done()
        await producer.commit_transaction()
        await waiting
        assert await consumer.position(partition) == 3
        assert (await watching)[partition].offset == 3


async def test_a_consumer_that_its_group_has_replaced_cannot_commit_in_a_transaction(daemon: Daemon) -> None:
    await fill(daemon.bootstrap, "zombie-inputs", 4)
    async with transactional(daemon.bootstrap, "zombie") as producer:
        async with consuming(daemon.bootstrap, "zombies") as zombie:
            await zombie.subscribe(["zombie-inputs"])
            records = await zombie.poll(2, timeout_ms=20_000)
            metadata = zombie.group_metadata()
            positions = zombie.positions
        assert (metadata.group, metadata.generation) == ("zombies", 1)

        class Zombie:
            """The consumer as it was: it has not noticed that it is no longer a member."""

            config = zombie.config
            revoked_at = float("-inf")

            def __init__(self) -> None:
                self.positions = positions

            def group_metadata(self) -> Any:
                return metadata

        async def copy() -> None:
            async with producer.transaction():
                for record in records:
                    await producer.send("zombie-outputs", record.value)
                await producer.send_offsets_to_transaction(Zombie())  # type: ignore[arg-type]

        with pytest.raises(CommitFailedError):
            await copy()
        async with producer.transaction():
            await producer.send("zombie-outputs", b"of a later transaction")
    assert await read(daemon.bootstrap, "zombie-outputs") == [b"of a later transaction"]
    assert await committed_offset(daemon.bootstrap, "zombies", "zombie-inputs") is None


async def test_partitions_that_move_away_inside_a_transaction_make_it_abort_only(daemon: Daemon) -> None:
    """The moved partition's records would be in the transaction without their offset, and be processed twice."""
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        await admin.create_topic("moving", partitions=2)
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as filler:
        for partition in range(2):
            await filler.send("moving", b"%d" % partition, partition=partition)

    async with (
        transactional(daemon.bootstrap, "movers") as producer,
        consuming(daemon.bootstrap, "movers") as first,
        consuming(daemon.bootstrap, "movers") as second,
        asyncio.timeout(60),
    ):
        await first.subscribe(["moving"])
        records = await first.poll(timeout_ms=20_000)
        await producer.begin_transaction()
        for record in records:
            await producer.send("moved", record.value)
        await second.subscribe(["moving"])
        reading = asyncio.create_task(second.poll(timeout_ms=20_000))
        while len(first.assignment) != 1:
            await first.poll(timeout_ms=20)
        with pytest.raises(TransactionAbortableError, match="gave partitions up after the transaction began"):
            await producer.send_offsets_to_transaction(first)
        await producer.abort_transaction()

        await first.seek_to_committed()
        again = [*await first.poll(timeout_ms=20_000), *await reading]
        assert sorted(record.value or b"" for record in again) == [b"0", b"1"]
        async with producer.transaction():
            assert len(await producer.send_offsets_to_transaction(first)) == 1

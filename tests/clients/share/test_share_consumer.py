"""ShareConsumer against a real daemon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from barnabas import (
    ClosedError,
    ErrorCode,
    LockLostError,
    Producer,
    ProducerConfig,
    RefusedError,
    ShareConsumer,
    ShareConsumerConfig,
    ShareRecord,
    UnknownTopicError,
)
from barnabas.clients.share import subscribed_topics
from tests.support.daemon import Daemon, start_daemon, with_fault
from tests.support.groups.share_groups import describe, heartbeat, offsets
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.share.group_settings import set_group_configs

BOUND_S = 30.0
LOCK_MS = 1000

SETTINGS = (
    "auto.create.topics.enable=false",
    "share.coordinator.state.topic.num.partitions=1",
    "offsets.topic.num.partitions=1",
    "group.share.min.record.lock.duration.ms=1000",
)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One broker for the tests that leave it running; each has its own topic and group."""
    with start_daemon(tmp_path_factory.mktemp("daemon"), *SETTINGS) as running:
        yield running


@pytest.fixture
def own_daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A broker that the test may kill."""
    with start_daemon(tmp_path, *SETTINGS) as running:
        yield running


@pytest.fixture
def wire(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


async def create(daemon: Daemon, name: str, *values: str, partitions: int = 1, **configs: str) -> None:
    """Create a topic with records, and the configs of the group of the same name."""
    await asyncio.to_thread(daemon.create_topic, name, partitions=partitions)
    given = {"share.auto.offset.reset": "earliest", **{key.replace("_", "."): value for key, value in configs.items()}}
    await asyncio.to_thread(set_group_configs, daemon, name, given)
    await produce(daemon, name, *values)


async def produce(daemon: Daemon, topic: str, *values: str, partition: int | None = None) -> None:
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
        for value in values:
            await producer.send_and_wait(topic, value.encode(), partition=partition)


@asynccontextmanager
async def queue(daemon: Daemon, topic: str, **settings: Any) -> AsyncIterator[ShareConsumer]:
    """A consumer of a topic, in the group of the same name."""
    config = ShareConsumerConfig(bootstrap=daemon.bootstrap, **{"group": topic, "retry_backoff_ms": 20, **settings})
    async with asyncio.timeout(BOUND_S), ShareConsumer(config) as consumer:
        await consumer.subscribe([topic])
        yield consumer


def explicit(daemon: Daemon, topic: str, **settings: Any) -> Any:
    return queue(daemon, topic, acknowledgement="explicit", **settings)


async def read(consumer: ShareConsumer, count: int) -> list[ShareRecord]:
    return [await anext(consumer) for _ in range(count)]


def seen(records: list[ShareRecord]) -> list[tuple[str, int]]:
    return [((record.value or b"").decode(), record.delivery_count) for record in records]


def left(wire: KafkaWire, group: str) -> int:
    """The number of records of partition 0 that are not done; -1 before anything was."""
    return int(offsets(wire, group).topics[0].partitions[0].lag)


async def until_left(wire: KafkaWire, group: str, count: int) -> None:
    async with asyncio.timeout(BOUND_S):
        while left(wire, group) != count:
            await asyncio.sleep(0.02)


async def test_moving_on_accepts_the_records_before(daemon: Daemon, wire: KafkaWire) -> None:
    await create(daemon, "implicit", "a", "b", "c")
    async with queue(daemon, "implicit") as consumer:
        assert seen(await read(consumer, 3)) == [("a", 1), ("b", 1), ("c", 1)]
        await until_left(wire, "implicit", 1)  # the last one is still being processed
    assert left(wire, "implicit") == 0  # a consumer that ends without an error has processed it


async def test_an_exception_releases_what_was_not_accepted(daemon: Daemon, wire: KafkaWire) -> None:
    await create(daemon, "raising", "a", "b", "c")

    async def work() -> None:
        async with queue(daemon, "raising") as consumer:
            async for record in consumer:
                if record.value == b"b":
                    raise RuntimeError("of b")

    with pytest.raises(RuntimeError, match="of b"):
        await work()
    assert left(wire, "raising") == 2
    async with queue(daemon, "raising") as consumer:
        assert seen(await read(consumer, 2)) == [("b", 2), ("c", 2)]


async def test_poll_accepts_the_records_of_the_poll_before(daemon: Daemon, wire: KafkaWire) -> None:
    await create(daemon, "polled", "a", "b", "c")
    async with queue(daemon, "polled") as consumer:
        found = await consumer.poll(2, timeout_ms=BOUND_S * 1000)
        assert seen(found) == [("a", 1), ("b", 1)]
        await consumer.release(found[0])
        assert seen(await consumer.poll(timeout_ms=BOUND_S * 1000)) == [("c", 1)]
        assert seen(await consumer.poll(timeout_ms=BOUND_S * 1000)) == [("a", 2)]
        assert await consumer.poll(timeout_ms=1) == []
        await until_left(wire, "polled", 0)


async def test_records_are_acknowledged_one_by_one(daemon: Daemon, wire: KafkaWire) -> None:
    await create(daemon, "explicit", "a", "b", "c", "d")
    async with explicit(daemon, "explicit") as consumer:
        a, b, c, d = await read(consumer, 4)
        assert len(consumer._held) == 4
        await consumer.ack(b)
        assert left(wire, "explicit") == 3
        await consumer.ack(a)
        assert left(wire, "explicit") == 2
        await consumer.reject(c)
        assert left(wire, "explicit") == 1
        await consumer.release(d)
        (again,) = await read(consumer, 1)
        assert seen([again]) == [("d", 2)]
        with pytest.raises(LockLostError, match="explicit-0: the record at offset 3 is not this consumer's"):
            await consumer.ack(d)  # an earlier delivery
        await consumer.ack(again)
        assert left(wire, "explicit") == 0
        with pytest.raises(LockLostError):
            await consumer.ack(again)
        assert len(consumer._held) == 0


async def test_acknowledgements_of_several_tasks_are_all_answered(daemon: Daemon, wire: KafkaWire) -> None:
    values = [str(number) for number in range(60)]
    await create(daemon, "workers", *values)
    got: list[str] = []

    async def work(consumer: ShareConsumer) -> None:
        async for record in consumer:
            got.append((record.value or b"").decode())
            await consumer.ack(record)
            if len(got) == len(values):
                await consumer.close()

    async with explicit(daemon, "workers", acquire_mode="record_limit", max_poll_records=7) as consumer:
        done = await asyncio.gather(*(work(consumer) for _ in range(4)), return_exceptions=True)
        assert [type(each) for each in done] == [ClosedError] * 4 or None in done, done
    assert sorted(got, key=int) == values
    assert left(wire, "workers") == 0


async def test_a_record_whose_lock_ran_out_is_delivered_again(daemon: Daemon) -> None:
    await create(daemon, "slow", "a", share_record_lock_duration_ms=str(LOCK_MS))
    async with explicit(daemon, "slow") as consumer:
        (first,) = await read(consumer, 1)
        (again,) = await read(consumer, 1)
        assert seen([first, again]) == [("a", 1), ("a", 2)]
        with pytest.raises(LockLostError):
            await consumer.ack(first)


async def test_a_renewed_lock_outlasts_its_duration(daemon: Daemon, wire: KafkaWire) -> None:
    await create(daemon, "renewed", "a", "b", share_record_lock_duration_ms=str(2 * LOCK_MS + 500))
    async with explicit(daemon, "renewed") as consumer:
        a, _ = await read(consumer, 2)
        while len(again := await consumer.poll(timeout_ms=100)) == 0:
            await consumer.renew(a)
        assert seen(again) == [("b", 2)]  # its lock ran out, that of a did not
        await consumer.ack(a)
        assert left(wire, "renewed") == 1


async def test_a_lock_cannot_be_renewed_where_the_group_forbids_it(daemon: Daemon) -> None:
    await create(daemon, "fixed", "a", share_renew_acknowledge_enable="false")
    async with explicit(daemon, "fixed") as consumer:
        (record,) = await read(consumer, 1)
        with pytest.raises(RefusedError):
            await consumer.renew(record)
        await consumer.ack(record)


async def test_members_share_the_records_of_one_partition(daemon: Daemon, wire: KafkaWire) -> None:
    await create(daemon, "shared")
    got: list[int] = []
    by_member: dict[int, int] = {0: 0, 1: 0}
    total = 60
    both = asyncio.Barrier(2)

    async def work(number: int, consumer: ShareConsumer) -> None:
        while len(got) < total:
            records = await consumer.poll(timeout_ms=100)
            got.extend(record.offset for record in records)
            if records and not by_member[number]:
                await both.wait()  # so that one of them does not read all of it
            by_member[number] += len(records)

    settings = {"acquire_mode": "record_limit", "max_poll_records": 5}
    async with queue(daemon, "shared", **settings) as first, queue(daemon, "shared", **settings) as second:
        while not (first.assignment and second.assignment):
            await asyncio.sleep(0.01)
        await produce(daemon, "shared", *map(str, range(total)))
        await asyncio.gather(work(0, first), work(1, second))
        assert sorted(got) == list(range(total))
        assert all(by_member.values()), by_member
        assert len(describe(wire, "shared").members) == 2
    assert describe(wire, "shared").group_state == "Empty"
    assert left(wire, "shared") == 0


async def test_a_member_that_leaves_releases_its_records_at_once(daemon: Daemon) -> None:
    await create(daemon, "left", "a", "b")
    async with explicit(daemon, "left") as consumer:
        a, _ = await read(consumer, 2)
        await consumer.ack(a)
    async with explicit(daemon, "left") as consumer:
        assert seen(await read(consumer, 1)) == [("b", 2)]


async def test_a_killed_broker_loses_no_record_and_repeats_no_acknowledged_one(own_daemon: Daemon) -> None:
    total = 40
    await create(own_daemon, "killed", *map(str, range(total)))
    acknowledged: set[int] = set()
    deliveries: dict[int, int] = {}
    async with explicit(own_daemon, "killed", acquire_mode="record_limit", max_poll_records=10) as consumer:
        while len(acknowledged) < total:
            record = await anext(consumer)
            assert record.offset not in acknowledged
            deliveries[record.offset] = deliveries.get(record.offset, 0) + 1
            if record.offset == 15 and deliveries[15] == 1:
                own_daemon.kill()
                await asyncio.to_thread(own_daemon.start)
            try:
                await consumer.ack(record)
            except (LockLostError, ConnectionError):
                continue  # the daemon that had given the lock is dead
            acknowledged.add(record.offset)
    assert deliveries[15] == 2
    assert sorted(deliveries) == list(range(total))


async def test_an_implicit_reader_goes_on_after_the_broker_was_killed(own_daemon: Daemon) -> None:
    await create(own_daemon, "restarted", "a", "b")
    async with queue(own_daemon, "restarted") as consumer:
        assert seen(await read(consumer, 1)) == [("a", 1)]
        own_daemon.kill()
        await asyncio.to_thread(own_daemon.start)
        await asyncio.to_thread(lambda: asyncio.run(produce(own_daemon, "restarted", "c")))
        found: set[bytes | None] = set()
        while found != {b"a", b"b", b"c"}:
            found.add((await anext(consumer)).value)
    with KafkaWire(own_daemon.host, own_daemon.port) as wire:
        assert left(wire, "restarted") == 0


async def test_a_removed_member_joins_again(daemon: Daemon, wire: KafkaWire) -> None:
    await create(daemon, "removed", "a")
    async with queue(daemon, "removed") as consumer:
        assert seen(await read(consumer, 1)) == [("a", 1)]
        assert heartbeat(wire, "removed", consumer.member_id, -1).error_code == ErrorCode.NONE
        assert describe(wire, "removed").group_state == "Empty"
        consumer._membership._soon.set()  # the next heartbeat, in 5 s otherwise
        await produce(daemon, "removed", "b")
        assert seen(await read(consumer, 1)) == [("b", 1)]
        assert [each.member_id for each in describe(wire, "removed").members] == [consumer.member_id]


@pytest.mark.parametrize("code", [ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH])
async def test_a_lost_session_is_opened_again(daemon: Daemon, code: ErrorCode) -> None:
    topic = f"session-{code.value}"
    await create(daemon, topic, "a")
    async with explicit(daemon, topic) as consumer:
        (a,) = await read(consumer, 1)
        (leader,) = consumer._leaders.values()
        if code is ErrorCode.SHARE_SESSION_NOT_FOUND:
            assert leader._connection is not None
            await leader._release_all(leader._connection)  # so the broker has no session any more
        else:
            leader._session.epoch += 1
        with pytest.raises(LockLostError, match="share session"):
            await consumer.ack(a)
        (again,) = await read(consumer, 1)
        assert seen([again]) == [("a", 2)]
        await consumer.ack(again)


async def test_an_acknowledgement_that_could_not_be_stored_is_sent_again(tmp_path: Path) -> None:
    fault = """
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.share.coordinator import ShareCoordinator
from barnabas.protocol.errors import BrokerError, ErrorCode

write = ShareCoordinator.write
failures = [BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no space")] * 2

def failing(self, key, change):
    if not failures:
        return write(self, key, change)
    answer = Deferred()
    answer.resolve(failures.pop())
    return answer

ShareCoordinator.write = failing
"""
    with start_daemon(tmp_path, *SETTINGS, environ=with_fault(tmp_path, fault)) as daemon:
        await create(daemon, "again", "a", "b")
        async with explicit(daemon, "again") as consumer:
            a, b = await read(consumer, 2)
            await consumer.ack(a)
            await consumer.ack(b)
        with KafkaWire(daemon.host, daemon.port) as wire:
            assert left(wire, "again") == 0


async def test_an_unknown_topic_is_named(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribed_topics, "UNKNOWN_TOPIC_WAIT_S", 0.1)
    async with ShareConsumer(ShareConsumerConfig(bootstrap=daemon.bootstrap, group="none")) as consumer:
        with pytest.raises(UnknownTopicError, match="there is no topic 'nowhere'"):
            await consumer.subscribe(["nowhere"])
        assert consumer.subscription == ()


async def test_a_group_of_another_protocol_is_refused(daemon: Daemon, wire: KafkaWire) -> None:
    await create(daemon, "taken", "a")
    joined = wire.call(
        "consumer_group_heartbeat",
        1,
        group_id="taken",
        member_id="m",
        member_epoch=0,
        instance_id=None,
        rack_id=None,
        rebalance_timeout=timedelta(seconds=60),
        subscribed_topic_names=("taken",),
        subscribed_topic_regex=None,
        server_assignor=None,
        topic_partitions=(),
    )
    assert joined.error_code == ErrorCode.NONE, joined.error_message
    async with queue(daemon, "taken") as consumer:
        with pytest.raises(RefusedError, match="share group 'taken'") as caught:
            await anext(consumer)
    assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_closed_consumer_ends_its_reader(daemon: Daemon) -> None:
    await create(daemon, "closed")
    async with queue(daemon, "closed") as consumer:
        reading = asyncio.ensure_future(anext(consumer))
        while not consumer.wants_records:
            await asyncio.sleep(0.01)
        await consumer.close()
        with pytest.raises(ClosedError):
            await reading
        with pytest.raises(ClosedError):
            await consumer.poll()

"""A standby of a daemon: the same bytes, planned and unplanned takeovers, kills of both sides, the way back."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig
from barnabas.broker.metadata.directories.standby_state import Role, read_state, write_state
from barnabas.clients.testing import BrokerProcessError
from barnabas.commands.failures import CommandFailure
from barnabas.commands.standby.control_client import ask
from barnabas.protocol.messages.data.list_offsets import LATEST_TIMESTAMP
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import Daemon, start_daemon, with_fault
from tests.support.eventually import eventually
from tests.support.free_ports import free_port
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.standby import Standby


@pytest.fixture
def active(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(tmp_path / "active") as daemon:
        yield daemon


@pytest.fixture
def standby(tmp_path: Path, active: Daemon) -> Iterator[Standby]:
    with Standby(tmp_path / "standby", active.bootstrap) as daemon:
        yield daemon


def files(daemon: Daemon) -> dict[str, bytes]:
    """Return the segments of all partitions and of the metadata log that have records."""
    found = {
        f"{path.parent.name}/{path.name}": path.read_bytes().rstrip(b"\0")
        for path in sorted(daemon.data_directory.glob("*/*.log"))
    }
    return {name: content for name, content in found.items() if content}


def until_equal(standby: Standby, active: Daemon) -> dict[str, bytes]:
    """Wait until both sides have the same bytes, and return them."""

    def equal() -> dict[str, bytes] | None:
        found = files(active)
        return found if files(standby) == found else None

    return eventually(equal, what="equal files", timeout_s=30)


def new_producer_id(daemon: Daemon) -> int:
    with KafkaWire(daemon.host, daemon.port) as wire:
        answer = wire.call("init_producer_id", 4, transactional_id=None, transaction_timeout=timedelta(seconds=60))
    assert answer.error_code == 0
    return int(answer.producer_id)


async def produce(bootstrap: str, topic: str, values: range, partitions: int = 2) -> None:
    async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
        for number in values:
            await producer.send_and_wait(topic, b"%d" % number, partition=number % partitions)


async def transact(bootstrap: str, topic: str, *values: bytes, aborts: bool = False) -> None:
    async with Producer(ProducerConfig(bootstrap=bootstrap, transactional_id="x")) as producer:
        with contextlib.suppress(ZeroDivisionError):
            async with producer.transaction():
                for number, value in enumerate(values):
                    await producer.send_and_wait(topic, value, partition=number % 2)
                if aborts:
                    raise ZeroDivisionError


async def consume(bootstrap: str, topic: str, count: int, group: str = "g") -> list[bytes]:
    """Read and commit `count` records as a member of a group."""
    found: list[bytes] = []
    config = ConsumerConfig(
        bootstrap=bootstrap, group=group, offset_reset="earliest", isolation="read_committed", auto_commit=False
    )
    async with Consumer(config) as consumer, asyncio.timeout(30):
        await consumer.subscribe([topic])
        while len(found) < count:
            found += [each.value or b"" for each in await consumer.poll(timeout_ms=100)]
        await consumer.commit()
    return found


async def test_everything_is_copied_and_a_planned_switch_loses_nothing(active: Daemon, standby: Standby) -> None:
    active.create_topic("t", partitions=2, configs={"retention.ms": "1234567890"})
    await produce(active.bootstrap, "t", range(40))
    await transact(active.bootstrap, "t", b"a", b"b", aborts=True)
    await transact(active.bootstrap, "t", b"c", b"d")
    assert len(await consume(active.bootstrap, "t", 42)) == 42
    await produce(active.bootstrap, "t", range(100, 110))
    names = until_equal(standby, active).keys()
    assert {each.rpartition("-")[0].partition("/")[0] for each in names} >= {"t", "__consumer_offsets"}
    assert standby.until()["lag_records"] == 0
    answer = standby.promote(planned=True)
    assert (answer["number"], answer["lag_records"], standby.status()["state"]) == (1, 0, "active")
    assert eventually(lambda: None if active.running else True, what="the stop of the old broker", timeout_s=30)
    assert sorted(await consume(standby.bootstrap, "t", 10)) == [b"%d" % each for each in range(100, 110)]
    await transact(standby.bootstrap, "t", b"e", b"f")
    assert len(await consume(standby.bootstrap, "t", 2)) == 2
    async with Admin(AdminConfig(bootstrap=standby.bootstrap)) as admin:
        configs = {each.name: each.value for each in await admin.describe_configs(topic="t")}
    assert configs["retention.ms"] == "1234567890"
    assert active.stop() == 0
    with pytest.raises(BrokerProcessError, match="was handed over to the standby in switch 1"):
        active.start()


async def test_a_producer_goes_on_through_a_planned_switch_without_a_lost_or_doubled_record(
    active: Daemon, standby: Standby
) -> None:
    active.create_topic("t", partitions=1)
    standby.until()
    port = free_port()
    standby.stop()
    standby.port = port
    standby.start()
    standby.until()
    bootstrap = f"{active.bootstrap},127.0.0.1:{port}"
    acknowledged: list[int] = []

    async def send_all() -> None:
        async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
            for number in itertools.count():
                await producer.send_and_wait("t", b"%d" % number)
                acknowledged.append(number)
                if switched.is_set() and len(acknowledged) > at_switch + 50:
                    return

    switched, at_switch = asyncio.Event(), 0
    sending = asyncio.create_task(send_all())
    while len(acknowledged) < 200:
        assert not sending.done(), sending.result()
        await asyncio.sleep(0.01)
    await asyncio.to_thread(standby.promote, planned=True)
    at_switch = len(acknowledged)
    switched.set()
    async with asyncio.timeout(30):
        await sending
    found = await consume(standby.bootstrap, "t", len(acknowledged))
    assert found == [b"%d" % each for each in acknowledged]
    assert active.stop() == 0


async def test_a_planned_switch_waits_until_a_standby_that_is_behind_has_everything(
    active: Daemon, standby: Standby
) -> None:
    active.create_topic("t", partitions=2)
    standby.until()
    standby.stop()
    async with Producer(ProducerConfig(bootstrap=active.bootstrap, linger_ms=5)) as producer:
        sent = [await producer.send("t", bytes(60_000), partition=each % 2) for each in range(1000)]
        await asyncio.gather(*sent)
    standby.start()
    eventually(lambda: None if standby.status()["state"] == "connecting" else True, what="a start", timeout_s=30)
    standby.promote(planned=True)
    async with Admin(AdminConfig(bootstrap=standby.bootstrap)) as admin:
        ends = await admin.list_offsets({TopicPartition("t", each): LATEST_TIMESTAMP for each in range(2)})
    assert [each.offset for each in ends.values()] == [500, 500]
    eventually(lambda: None if active.running else True, what="the stop of the old broker", timeout_s=30)
    assert active.stop() == 0


async def test_kills_of_both_sides_an_unplanned_takeover_and_the_way_back(active: Daemon, standby: Standby) -> None:
    active.create_topic("t", partitions=2)
    await produce(active.bootstrap, "t", range(20))
    standby.until()
    until_equal(standby, active)
    await asyncio.to_thread(standby.restart, clean=False)
    await produce(active.bootstrap, "t", range(20, 30))
    until_equal(standby, active)
    await asyncio.to_thread(active.restart, clean=False)
    await produce(active.bootstrap, "t", range(30, 40))
    before = until_equal(standby, active)
    await asyncio.to_thread(standby.stop)
    await asyncio.to_thread(active.restart, clean=False)
    await produce(active.bootstrap, "t", range(1000, 1010))
    handed_out = new_producer_id(active)  # of a block that the standby does not know
    active.create_topic("only-here", partitions=1)
    active.kill()
    await asyncio.to_thread(standby.start)
    standby.until("failed")
    with pytest.raises(CommandFailure, match="planned switch"):
        standby.promote(planned=True)
    assert standby.promote()["number"] == 1
    assert new_producer_id(standby) > handed_out
    assert files(standby)["t-0/00000000000000000000.log"] == before["t-0/00000000000000000000.log"]
    assert len(await consume(standby.bootstrap, "t", 40)) == 40
    active.port = free_port()  # where the new broker does not find it
    active.start()  # the mistake: now both sides append
    await produce(active.bootstrap, "t", range(2000, 2007))
    await produce(standby.bootstrap, "t", range(40, 60))
    await asyncio.to_thread(active.stop)
    back = Standby(active.directory, standby.bootstrap, settings=active.settings)
    with back:
        back.until()
        until_equal(back, standby)
        assert list(back.data_directory.glob("t-*.cut-*.log"))
        assert list(back.data_directory.glob("only-here-0*-stray"))
        assert back.promote(planned=True)["number"] == 2
        assert sorted(await consume(back.bootstrap, "t", 20)) == sorted(b"%d" % each for each in range(40, 60))
        assert standby.stop() == 0


async def test_metadata_that_cannot_be_trusted_is_kept_until_the_active_broker_answers(
    active: Daemon, standby: Standby
) -> None:
    active.create_topic("t", partitions=1)
    standby.until()
    until_equal(standby, active)
    await asyncio.to_thread(standby.stop)
    await asyncio.to_thread(active.stop)
    state = read_state(standby.data_directory)
    write_state(standby.data_directory, state._replace(is_verified=False))
    log = standby.data_directory / "__cluster_metadata-0" / f"{0:020d}.log"
    before = log.read_bytes()
    await asyncio.to_thread(standby.start)
    eventually(lambda: standby.status()["error"], what="an error of the metadata", timeout_s=30)
    assert log.read_bytes() == before
    with pytest.raises(CommandFailure, match="not yet"):
        standby.promote()
    await asyncio.to_thread(active.start)
    standby.until()
    until_equal(standby, active)


async def test_a_replaced_broker_that_comes_back_is_stopped_and_never_serves_again(
    active: Daemon, standby: Standby
) -> None:
    active.create_topic("t", partitions=2)
    standby.until()
    active.kill()
    assert standby.promote()["number"] == 1
    active.start()
    eventually(lambda: None if active.running else True, what="the stop of the replaced broker", timeout_s=30)
    assert active.stop() == 0
    assert "a standby has taken over from this broker, stopping: number=1" in active.log
    with pytest.raises(BrokerProcessError, match="was handed over to the standby in switch 1"):
        active.start()
    await asyncio.to_thread(standby.restart, clean=False)
    eventually(lambda: True if standby.status()["state"] == "active" else None, what="serving again", timeout_s=30)
    await produce(standby.bootstrap, "t", range(10))


async def test_a_replaced_broker_asks_its_standby_before_it_serves(tmp_path: Path) -> None:
    first, second = free_port(), free_port()
    settings = {"listeners": f"127.0.0.1:{first}", "standby.bootstrap.servers": f"127.0.0.1:{second}"}
    with Daemon(tmp_path / "active", settings) as active:
        active.create_topic("t", partitions=1)
        replacing = Standby(tmp_path / "standby", active.bootstrap, settings={"listeners": f"127.0.0.1:{second}"})
        with replacing as standby:
            standby.until()
            await asyncio.to_thread(active.restart, clean=False)
            assert "the standby does not say whether it has taken over" in active.log
            standby.until()
            active.kill()
            standby.promote()
            await produce(standby.bootstrap, "t", range(10), partitions=1)
            with pytest.raises(BrokerProcessError, match=r"has taken over .* is 1, that of .* 0\): run this one as"):
                active.start()
            assert "a standby has taken over from this broker, stopping" not in active.log


async def test_the_arbiter_decides_whether_the_standby_of_a_lost_broker_takes_over(
    tmp_path: Path, active: Daemon
) -> None:
    script = tmp_path / "arbiter"
    asked = tmp_path / "asked"
    script.write_text(f'#!/bin/sh\necho "$BARNABAS_ARBITER_SWITCH_NUMBER $1" >> {asked}\ntest -e {asked}.yes\n')
    script.chmod(0o755)
    settings = {"standby.arbiter.command": f"{script} 'an argument'", "standby.arbiter.after.ms": 300}
    with Standby(tmp_path / "standby", active.bootstrap, settings=settings) as standby:
        active.create_topic("t", partitions=1)
        standby.until()
        active.kill()
        eventually(lambda: True if "the arbiter refuses, code=1" in standby.log else None, what="a refusal")
        assert standby.status()["active"] == active.bootstrap
        (tmp_path / "asked.yes").touch()
        standby.await_serving()
        assert standby.status()["state"] == "active"
        await produce(standby.bootstrap, "t", range(10), partitions=1)
    assert set(asked.read_text().splitlines()) == {"1 an argument"}


FULL_DISK = """
from barnabas.broker.metadata.directories.standby_state import Role
from barnabas.broker.standby import process
write = process.write_state

def write_if_there_is_room(directory, state):
    if state.role is Role.PROMOTING and (directory / "full").exists():
        (directory / "refused").touch()
        raise OSError(28, "No space left on device")
    write(directory, state)

process.write_state = write_if_there_is_room
"""


async def test_a_takeover_that_cannot_be_recorded_is_tried_again_when_the_disk_has_room(
    active: Daemon, tmp_path: Path
) -> None:
    settings = {"standby.arbiter.command": "/bin/true", "standby.arbiter.after.ms": 100}
    environ = with_fault(tmp_path, FULL_DISK)
    standby = Standby(tmp_path / "standby", active.bootstrap, settings=settings, environ=environ)
    with standby:
        active.create_topic("t", partitions=1)
        standby.until()
        full, refused = (standby.data_directory / each for each in ("full", "refused"))
        full.touch()
        with pytest.raises(CommandFailure, match=r"has handed over and stopped.*promote without --planned"):
            ask(standby.data_directory, {"command": "promote", "planned": True})
        refused.unlink()
        eventually(lambda: refused.exists() or None, what="the arbiter's first try")
        full.unlink()
        standby.await_serving()  # asked again, the arbiter agrees again
        await produce(standby.bootstrap, "t", range(10), partitions=1)
    assert active.stop() == 0


SLOW_STATE = """
import time
from barnabas.broker.standby import replica
write = replica.write_state

def write_slowly(directory, state):
    (directory / "writing").touch()
    time.sleep(1)
    write(directory, state)

replica.write_state = write_slowly
"""


async def test_a_promotion_waits_for_the_state_that_the_copy_is_writing(active: Daemon, tmp_path: Path) -> None:
    active.create_topic("t", partitions=1)
    standby = Standby(tmp_path / "standby", active.bootstrap, environ=with_fault(tmp_path, SLOW_STATE))
    with standby:
        eventually(lambda: (standby.data_directory / "writing").exists() or None, what="the copy's state")
        active.kill()
        assert standby.promote()["number"] == 1
        state = read_state(standby.data_directory)
        assert (state.role, state.number) == (Role.ACTIVE, 1)

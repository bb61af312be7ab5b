"""What read_committed readers see of transactions of the real coordinator, compared with a model."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.consumer import Consumer
from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.data.describe_producers import DescribeProducersRequest, DescribeProducersTopic
from barnabas.protocol.messages.data.fetch import READ_COMMITTED
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.transactions.committed_reads import end_offset, fetch_committed
from tests.support.transactions.desk import Desk
from tests.support.wire import WireClient, fetch_requests

TOPIC = "ledger"
SEGMENT_BYTES = "1500"
LONG_POLL_MS = 20_000


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("daemon"), "transaction.state.log.num.partitions=3") as running:
        yield running


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


def act(desk: Desk, draw: random.Random, batch: object) -> None:
    """Do one random step: write, end, or a batch outside of transactions."""
    number = draw.randrange(len(desk.producers))
    value = b"%d-" % desk.model.end_offset + bytes(draw.randrange(200))
    kind = draw.random()
    if kind < 0.15:
        desk.plain(batch(value), value)  # type: ignore[operator]
    elif number in desk.open and kind < 0.45:
        desk.end(number, is_commit=draw.random() < 0.5)
    else:
        desk.write(number, *[value] * draw.randint(1, 3))


@pytest.mark.parametrize("seed", range(2))
def test_both_isolation_levels_show_what_the_model_shows_before_and_after_a_kill(
    tmp_path: Path, batch: object, seed: int
) -> None:
    draw = random.Random(seed)
    with start_daemon(tmp_path, "transaction.state.log.num.partitions=3") as daemon:
        with WireClient(daemon.host, daemon.port) as wire, KafkaWire(daemon.host, daemon.port) as kafka:
            wire.create_topic(TOPIC, segment_bytes=SEGMENT_BYTES)
            desk = Desk(wire, kafka, TOPIC)
            for step in range(120):
                act(desk, draw, batch)
                if step % 30 == 29:
                    desk.check(0, draw.randrange(desk.model.end_offset), draw.randrange(desk.model.end_offset))
            desk.write(0, b"open when the broker is killed")
        daemon.restart(clean=False)
        with WireClient(daemon.host, daemon.port) as wire, KafkaWire(daemon.host, daemon.port) as kafka:
            desk.move_to(wire, kafka)
            desk.check(0, *[draw.randrange(desk.model.end_offset) for _ in range(5)])
            for number in list(desk.open):
                desk.end(number, is_commit=number == 0)
            for _ in range(20):
                act(desk, draw, batch)
            desk.check(*range(0, desk.model.end_offset, 17))


def test_our_consumer_skips_aborted_records_and_stops_at_open_ones(
    daemon: Daemon, wire: WireClient, kafka: KafkaWire, batch: object
) -> None:
    wire.create_topic("consumed", segment_bytes=SEGMENT_BYTES)
    desk = Desk(wire, kafka, "consumed")
    draw = random.Random(7)
    for _ in range(80):
        act(desk, draw, batch)

    expected = len(desk.model.committed())

    async def read() -> list[tuple[int, bytes | None]]:
        found: list[tuple[int, bytes | None]] = []
        config = ConsumerConfig(bootstrap=f"{daemon.host}:{daemon.port}", isolation="read_committed")
        async with Consumer(config) as consumer:
            await consumer.assign([("consumed", 0)])
            await consumer.seek_to_beginning()
            while records := await consumer.poll(timeout_ms=5_000 if len(found) < expected else 0):
                found += [(record.offset, record.value) for record in records]
        return found

    assert asyncio.run(read()) == desk.model.committed()


def test_a_waiting_fetch_is_answered_by_the_commit(daemon: Daemon, wire: WireClient, kafka: KafkaWire) -> None:
    wire.create_topic("awaited")
    desk = Desk(wire, kafka, "awaited", levels=(2,))
    with WireClient(daemon.host, daemon.port) as reader:
        reader.send(fetch_requests("awaited", [(0, 0, 1 << 20)], max_wait_ms=LONG_POLL_MS, isolation=READ_COMMITTED))
        desk.write(0, b"one")
        desk.write(0, b"two")
        desk.end(0, is_commit=True)
        (result,) = reader.receive().topics[0].partitions
    assert result.last_stable_offset == 3
    assert result.records


def test_describe_producers_shows_where_an_open_transaction_began(
    daemon: Daemon, wire: WireClient, kafka: KafkaWire
) -> None:
    wire.create_topic("described")
    desk = Desk(wire, kafka, "described", levels=(2,))

    def described() -> tuple[int, int, int]:
        request = DescribeProducersRequest(topics=[DescribeProducersTopic(name="described", partitions=[0])])
        (found,) = wire.call(request).topics[0].partitions[0].producers
        return found.epoch, found.coordinator_epoch, found.transaction_start_offset

    desk.write(0, b"one")
    epoch = desk.producers[0].epoch
    assert described() == (epoch, -1, 0)
    desk.end(0, is_commit=True)
    assert described() == (epoch + 1, 0, -1)
    desk.write(0, b"two")
    assert described() == (epoch + 1, 0, 2)


def test_records_of_an_open_transaction_can_be_deleted_and_its_marker_still_ends_it(
    daemon: Daemon, wire: WireClient, kafka: KafkaWire
) -> None:
    wire.create_topic("deleted")
    desk = Desk(wire, kafka, "deleted", levels=(2, 2))
    desk.write(0, b"a", b"b", b"c")
    desk.write(1, b"d")
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name="deleted", partitions=[DeleteRecordsPartition(partition=0, offset=2)])],
        timeout_ms=10_000,
    )
    assert wire.call(request).topics[0].partitions[0].error == 0
    assert end_offset(kafka, "deleted", 0, committed=True) == 2
    desk.end(0, is_commit=False)
    assert end_offset(kafka, "deleted", 0, committed=True) == 3
    desk.end(1, is_commit=True)
    assert fetch_committed(kafka, "deleted", 0, 2).values == [(3, b"d")]

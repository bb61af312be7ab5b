"""A mirror of Apache Kafka: the same batches, markers and epochs at the same offsets, through a kill of Kafka."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from barnabas.protocol.compression import Codec
from barnabas.protocol.messages.cluster.mirrors import MirrorDescription
from tests.support.daemon import start_daemon
from tests.support.groups.committed import commit, create_topic
from tests.support.kafka.apache_kafka import Broker, Kafka, need_kafka
from tests.support.kafka.combinations import NEWEST, OLDEST
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.wire_producer import WireProducer
from tests.support.mirrors.copies import MIRROR, admin_of, segments, until
from tests.support.storage.records import plain

pytestmark = pytest.mark.timeout(300)  # several JVM starts, on machines of any speed
VERSIONS = (NEWEST, OLDEST)
PARTITIONS = 2


def write(broker: Broker, transactional_id: str) -> int:
    """Write batches of all codecs, a committed and an aborted transaction, and an open one; return the end offset."""
    with KafkaWire("127.0.0.1", broker.port) as wire:
        end = 0
        for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
            for partition in range(PARTITIONS):
                end = wire.produce(9, "t", plain(5, codec), partition=partition, acks=-1).base_offset + 5
        producer = WireProducer(wire, transactional_id, level=0)
        assert producer.init() == 0
        for is_commit in (True, False):
            for partition in range(PARTITIONS):
                assert producer.write("t", partition, b"a", b"b") == 0
            assert producer.end(is_commit=is_commit) == 0
        assert producer.write("t", 0, b"open") == 0
    return end


def commit_offsets(broker: Broker, offsets: dict[int, int]) -> None:
    """Commit once Kafka has created and loaded its internal topic."""
    with KafkaWire("127.0.0.1", broker.port) as wire:
        deadline = time.monotonic() + 60
        while any(codes := [find_group(wire), *commit(wire, "readers", "t", offsets)]):
            assert time.monotonic() < deadline, codes
            time.sleep(0.1)  # polling another process with a deadline


def find_group(wire: KafkaWire) -> int:
    (found,) = wire.call("find_coordinator", 4, key_type=0, coordinator_keys=("readers",)).coordinators
    return int(found.error_code)


def is_equal(source: Path, copy: Path) -> bool:
    """Return whether the stored batches and the leader epochs are the same."""
    names = [f"t-{number}/leader-epoch-checkpoint" for number in range(PARTITIONS)]
    return segments(copy, "t") == segments(source, "t") and all(
        (copy / name).read_text() == (source / name).read_text() for name in names
    )


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_mirror_has_kafkas_batches_and_epochs_before_and_after_a_kill(tmp_path: Path, version: str) -> None:
    need_kafka(version)
    data = tmp_path / "kafka-data"
    kafka = Kafka(version, data, tmp_path / "kafka")
    kafka.format()
    with start_daemon(tmp_path / "barnabas") as copy:

        def has_all(found: MirrorDescription) -> bool:
            return (
                len(found.partitions) == PARTITIONS
                and all(each.state == "caught_up" for each in found.partitions)
                and is_equal(data, tmp_path / "barnabas" / "data")
            )

        broker = await asyncio.to_thread(kafka.start)
        try:
            with KafkaWire("127.0.0.1", broker.port) as wire:
                create_topic(wire, "t", PARTITIONS)
            end = await asyncio.to_thread(write, broker, "x")
            await asyncio.to_thread(commit_offsets, broker, {0: 7, 1: end})
            async with admin_of(copy) as admin:
                await admin.mirrors.create(MIRROR, bootstrap=[broker.bootstrap], topics=["t"], groups=["readers"])
            await until(copy, has_all)
        finally:
            broker.kill()
        broker = await asyncio.to_thread(kafka.start)
        try:
            async with admin_of(copy) as admin:
                await admin.mirrors.alter(MIRROR, bootstrap=[broker.bootstrap])
            await asyncio.to_thread(write, broker, "y")
            await until(copy, has_all)
            async with admin_of(copy) as admin, asyncio.timeout(30):
                while len(found := await admin.group_offsets("readers")) < PARTITIONS:
                    await asyncio.sleep(0.1)
            assert {key.partition: each.offset for key, each in found.items()} == {0: 7, 1: end}
        finally:
            broker.kill()

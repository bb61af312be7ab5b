"""Fetch from segments of old brokers: the consumer gets format version 2, whatever version is on disk."""

from __future__ import annotations

from pathlib import Path

from barnabas import Consumer, ConsumerConfig, ConsumerRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import iter_batches, read_records
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import Daemon, start_daemon
from tests.support.storage.legacy import message_sets
from tests.support.storage.records import plain, plain_records
from tests.support.wire import WireClient, fetch_request, fetch_requests

SETS = message_sets()
OLD = b"".join(each.data for each in SETS.values())
RECORDS = [record for each in SETS.values() for record in each.records] + plain_records(5, 30)
LOG_NAME = f"{0:020d}.log"


def serve_old_log(tmp_path: Path, partitions: int = 1) -> Daemon:
    """Start a daemon with a topic `old`, whose logs have all format versions."""
    daemon = start_daemon(tmp_path)
    with WireClient(daemon.host, daemon.port) as wire:
        wire.create_topic("old", partitions=partitions)
    daemon.stop()
    for number in range(partitions):
        directory = daemon.data_directory / f"old-{number}"
        for path in directory.glob("0*"):
            path.unlink()
        (directory / LOG_NAME).write_bytes(OLD + plain(5, base_offset=30))
    daemon.restart()
    return daemon


async def test_a_consumer_gets_everything_from_a_log_of_all_formats(tmp_path: Path) -> None:
    with serve_old_log(tmp_path) as daemon:
        config = ConsumerConfig(bootstrap=daemon.bootstrap, offset_reset="earliest")
        async with Consumer(config) as consumer:
            await consumer.assign([TopicPartition("old", 0)])
            got: list[ConsumerRecord] = []
            while len(got) < len(RECORDS):
                got += await consumer.poll(timeout_ms=10_000)
    assert [(each.offset, each.timestamp, each.key, each.value, each.headers) for each in got] == [
        tuple(record) for record in RECORDS
    ]
    assert [each.offset for each in got if each.timestamp_type == 1] == list(range(24, 30))
    assert (daemon.data_directory / "old-0" / LOG_NAME).read_bytes().startswith(OLD)


def test_the_limit_of_a_request_holds_over_all_partitions_but_for_the_first_batch(tmp_path: Path) -> None:
    with serve_old_log(tmp_path, partitions=3) as daemon, WireClient(daemon.host, daemon.port) as wire:
        for max_bytes in (1, 600, 3000):
            request = fetch_requests("old", [(number, 0, 2000) for number in range(3)], max_bytes)
            results = wire.call(request).topics[0].partitions
            sizes = [len(each.data) for each in results]
            batches = list(iter_batches(results[0].data))
            assert read_records(batches[0])[0] == RECORDS[0]
            assert sum(sizes) <= max_bytes or (len(batches) == 1 and sizes[1:] == [0, 0])
            assert all(size <= 2000 for size in sizes)
            assert (max_bytes == 3000) == (sizes[1] > 0)


def test_a_fetch_of_old_messages_is_answered_at_once_however_little_there_is(tmp_path: Path) -> None:
    with serve_old_log(tmp_path) as daemon, WireClient(daemon.host, daemon.port) as wire:
        request = fetch_request("old", 0, max_wait_ms=60_000, min_bytes=1_000_000)
        (result,) = wire.call(request).topics[0].partitions
        offsets = [record.offset for each in iter_batches(result.data) for record in read_records(each)]
        assert offsets == list(range(35))


def test_damage_is_an_error_of_that_partition_alone(tmp_path: Path) -> None:
    with serve_old_log(tmp_path, partitions=2) as daemon, WireClient(daemon.host, daemon.port) as wire:
        damaged = bytearray(OLD)
        damaged[30] ^= 1
        with (daemon.data_directory / "old-0" / LOG_NAME).open("r+b") as file:
            file.write(damaged)
        request = fetch_requests("old", [(number, 0, 1 << 20) for number in (0, 1)])
        bad, good = wire.call(request).topics[0].partitions
        assert bad.error is ErrorCode.CORRUPT_MESSAGE
        assert not bad.data
        assert good.error is ErrorCode.NONE
        assert good.data

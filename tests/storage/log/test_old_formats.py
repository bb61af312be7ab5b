"""Segments that brokers before Kafka 0.11 wrote: loaded, recovered, searched, read as version 2; never rewritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.producers.snapshot import encode_snapshot
from barnabas.broker.storage.segment.old_format_slice import OldFormatSlice
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.layout import TimestampType
from barnabas.protocol.records.reader import read_records as records_of
from barnabas.protocol.records.record import Record
from tests.support.storage.bench import START_MS, LogBench, append, batch, log_config, read_records
from tests.support.storage.legacy import message, message_sets
from tests.support.storage.records import plain, plain_records

SETS = message_sets()
OLD = b"".join(each.data for each in SETS.values())
OLD_RECORDS = [record for each in SETS.values() for record in each.records]
NEW = bytes(plain(5, base_offset=30))
RECORDS = [*OLD_RECORDS, *plain_records(5, 30)]
APPEND_TIME = 1_700_000_005_000
"""The first LogAppendTime timestamp in the data; see LegacyMessages.java."""


@pytest.fixture
def bench(tmp_path: Path) -> LogBench:
    """All of Java's message sets, then a batch of version 2, in one segment without indexes."""
    bench = LogBench(tmp_path)
    bench.log_path().write_bytes(OLD + NEW)
    return bench


@pytest.mark.parametrize("clean", [True, False], ids=["clean stop", "crash"])
def test_a_log_of_all_formats_is_loaded_and_read_whole(bench: LogBench, *, clean: bool) -> None:
    log = bench.open(clean=clean)
    assert log.log_end_offset == 35
    assert read_records(log) == RECORDS
    assert bench.log_path().read_bytes() == OLD + NEW


def test_a_log_of_all_formats_is_read_from_every_offset_in_small_pieces(bench: LogBench) -> None:
    log = bench.open()
    for offset in range(35):
        assert read_records(log, offset, max_bytes=1) == RECORDS[offset:]


def test_appends_to_a_log_of_old_formats_are_version_2(bench: LogBench) -> None:
    log = bench.open()
    assert append(log, batch((START_MS, b"k", b"new"))) == 35
    bench.close(log)
    log = bench.open()
    assert read_records(log) == [*RECORDS, Record(35, START_MS, b"k", b"new")]
    bench.crash(log)
    assert read_records(bench.open(clean=False))[-1].offset == 35


def test_batches_after_the_last_old_message_are_served_as_stored(bench: LogBench) -> None:
    log = bench.open()
    part = log.read(30, 1 << 20, upper_bound=35, at_least_one_batch=True)
    assert part is not None
    assert not isinstance(part, OldFormatSlice)
    assert part.read() == NEW
    assert isinstance(log.read(29, 1 << 20, upper_bound=35, at_least_one_batch=True), OldFormatSlice)


def test_old_messages_after_newer_batches_are_converted_by_a_read_that_begins_with_them(tmp_path: Path) -> None:
    """A topic's message.format.version could be lowered."""
    bench = LogBench(tmp_path)
    bench.log_path().write_bytes(bytes(plain(5)) + message(5, b"old", timestamp=START_MS))
    log = bench.open()
    assert [record.value for record in read_records(log, 5)] == [b"old"]


def test_a_read_keeps_to_its_limit_except_for_the_first_batch(bench: LogBench) -> None:
    log = bench.open()
    for max_bytes in (1, 200, 1000):
        part = log.read(0, max_bytes, upper_bound=35, at_least_one_batch=True)
        assert isinstance(part, OldFormatSlice)
        batches = list(iter_batches(part.read()))
        assert len(batches) == 1 or sum(each.size_bytes for each in batches) <= max_bytes
    assert log.read(0, 10, upper_bound=35, at_least_one_batch=False) is None
    part = log.read(0, 60, upper_bound=35, at_least_one_batch=False)
    assert isinstance(part, OldFormatSlice)
    assert part.read() == b""  # 44 bytes in the file, more as a batch


def test_a_record_is_found_by_its_timestamp_in_every_format_that_has_one(bench: LogBench) -> None:
    log = bench.open()
    for record in OLD_RECORDS:
        if record.timestamp >= 0:
            found = log.offset_for_timestamp(record.timestamp)
            assert found is not None
            first = next(each for each in RECORDS if each.timestamp >= record.timestamp)
            assert (found.offset, found.timestamp, found.leader_epoch) == (first.offset, first.timestamp, -1)
    newest = log.offset_for_max_timestamp()
    assert newest is not None
    assert (newest.offset, newest.timestamp) == (26, APPEND_TIME + 2)


def test_messages_without_timestamps_are_never_found_by_timestamp(tmp_path: Path) -> None:
    bench = LogBench(tmp_path)
    bench.log_path().write_bytes(b"".join(each.data for name, each in SETS.items() if name.startswith("v0")))
    log = bench.open()
    assert log.log_end_offset == 12
    assert log.offset_for_timestamp(0) is None
    assert log.offset_for_max_timestamp() is None


def test_the_timestamp_type_log_append_time_is_kept(bench: LogBench) -> None:
    log = bench.open()
    part = log.read(24, 1 << 20, upper_bound=30, at_least_one_batch=True)
    assert part is not None
    batches = list(iter_batches(part.read()))
    assert {each.timestamp_type for each in batches} == {TimestampType.LOG_APPEND_TIME}
    assert [(each.base_offset, each.max_timestamp - APPEND_TIME) for each in batches] == [
        (24, 0),
        (25, 1),
        (26, 2),
        (27, 0),
    ]


def test_recovery_writes_the_indexes_that_kafka_writes_for_old_messages(tmp_path: Path) -> None:
    bench = LogBench(tmp_path)
    messages = [message(offset, bytes(66), timestamp=1000 + offset) for offset in range(100)]  # 100 bytes each
    bench.log_path().write_bytes(b"".join(messages))
    bench.close(bench.open(log_config(index_interval_bytes=950)))
    assert bench.offset_entries() == [(offset, offset * 100) for offset in range(10, 100, 10)]
    assert bench.time_entries() == [(1000 + offset, offset) for offset in (*range(10, 100, 10), 99)]


@pytest.mark.parametrize("position", [-1, -400, 700])
def test_recovery_cuts_at_the_first_damaged_message(bench: LogBench, position: int) -> None:
    damaged = bytearray(OLD)
    damaged[position] ^= 1
    bench.log_path().write_bytes(damaged)
    log = bench.open(clean=False)
    end = log.log_end_offset
    assert 0 < end < 30
    assert read_records(log) == RECORDS[:end]
    kept = bench.log_path().read_bytes()
    assert OLD.startswith(kept)
    assert len(kept) <= position % len(OLD)


def test_recovery_cuts_a_torn_message_and_zeros(bench: LogBench) -> None:
    for tail in (OLD[:40], bytes(5000), bytes(20)):
        bench.log_path().write_bytes(OLD + tail)
        log = bench.open(clean=False)
        assert log.log_end_offset == 30
        assert bench.log_path().read_bytes() == OLD
        bench.crash(log)


def test_a_message_larger_than_one_read_of_recovery_is_recovered(tmp_path: Path) -> None:
    bench = LogBench(tmp_path)
    large = message(0, bytes(1_000_000), timestamp=5) + message(1, b"small", timestamp=6)
    bench.log_path().write_bytes(large)
    log = bench.open(clean=False)
    assert log.log_end_offset == 2
    assert [len(record.value or b"") for record in read_records(log)] == [1_000_000, 5]


def test_segments_of_different_formats_are_one_log(tmp_path: Path) -> None:
    bench = LogBench(tmp_path)
    for each in SETS.values():
        bench.log_path(each.records[0].offset).write_bytes(each.data)
    bench.log_path(30).write_bytes(NEW)
    log = bench.open(clean=False)
    assert log.segment_count == 11
    assert read_records(log) == RECORDS
    bench.close(log)
    assert read_records(bench.open()) == RECORDS


def test_a_segment_of_old_messages_that_is_recovered_alone_gets_no_producer_snapshot_at_its_end(tmp_path: Path) -> None:
    bench = LogBench(tmp_path)
    for base, data in ((0, OLD), (30, NEW), (35, plain(5, base_offset=35)), (40, plain(5, base_offset=40))):
        bench.log_path(base).write_bytes(data)
        if base:
            for suffix in (".index", ".timeindex"):
                bench.path(base, suffix).touch()
    bench.path(45, ".snapshot").write_bytes(encode_snapshot([]))
    bench.close(bench.open())
    kafkas = [f"{offset:020d}.snapshot" for offset in (35, 40, 45)]  # of the last two segments, and of the end
    assert [name for name in bench.names() if name.endswith(".snapshot")] == kafkas


def test_a_damaged_message_is_corrupt_message_for_reads_of_it_only(bench: LogBench) -> None:
    bench.close(bench.open())
    damaged = bytearray(OLD + NEW)
    damaged[-len(NEW) - 1] ^= 1  # the last old message
    bench.log_path().write_bytes(damaged)
    log = bench.open()
    part = log.read(27, 1000, upper_bound=35, at_least_one_batch=True)
    assert isinstance(part, OldFormatSlice)
    with pytest.raises(BrokerError) as refused:
        log.convert_old_format(27, part, 1000)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert read_records(log, 30) == plain_records(5, 30)


def test_a_produce_in_an_old_format_is_refused(bench: LogBench) -> None:
    log = bench.open()
    for name in ("v0-none", "v1-gzip"):
        with pytest.raises(BrokerError) as refused:
            append(log, memoryview(bytearray(SETS[name].data)))
        assert refused.value.code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)
    assert log.log_end_offset == 35


def everything(log: PartitionLog) -> list[Record]:
    part = log.read(0, 1 << 20, upper_bound=log.high_watermark, at_least_one_batch=True)
    assert part is not None
    return [record for each in iter_batches(part.read()) for record in records_of(each)]


def test_one_large_read_returns_all_formats_in_order(bench: LogBench) -> None:
    assert everything(bench.open()) == RECORDS

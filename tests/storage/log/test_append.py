"""Appends: accepted batches, stamped fields, and the error code of each refusal."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from barnabas.broker.storage.log.append import AppendOrigin, AppendResult
from barnabas.protocol.compression import Codec
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.layout import TimestampType
from barnabas.protocol.records.reader import check_records
from tests.support.kafka.bodies import Verdict, bodies, listed
from tests.support.storage.bench import (
    NEVER,
    START_MS,
    LogBench,
    append,
    batch,
    log_config,
    read_batches,
    read_records,
    sized_batch,
)
from tests.support.storage.records import reseal


def _two(timestamp: int = START_MS, **header: object) -> memoryview:
    return batch((timestamp, b"a", b"1"), (timestamp + 1, b"b", None), **header)


def _patched(data: memoryview, position: int, new: bytes, *, sealed: bool = True) -> memoryview:
    changed = bytearray(data)
    changed[position : position + len(new)] = new
    return memoryview(reseal(changed) if sealed else changed)


def test_an_append_returns_the_offsets_of_the_records(bench: LogBench) -> None:
    log = bench.open()
    append(log, _two())
    data = _two()
    assert log.append_as_leader(data, leader_epoch=3) == AppendResult(2, 3, -1, 0, len(data), 2, False, False)
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (4, 4, 4)


def test_offset_and_leader_epoch_are_stamped_and_nothing_else_changes(bench: LogBench) -> None:
    log = bench.open()
    append(log, _two())
    sent = bytes(_two())
    append(log, memoryview(bytearray(sent)), leader_epoch=7)
    stored = bench.log_path().read_bytes()[len(sent) :]
    assert stored[:8] == struct.pack(">q", 2)
    assert stored[12:16] == struct.pack(">i", 7)
    assert stored[8:12] + stored[16:] == sent[8:12] + sent[16:]


def test_a_new_leader_epoch_is_on_disk_before_its_first_batch(bench: LogBench) -> None:
    log = bench.open()
    append(log, _two(), leader_epoch=0)
    append(log, _two(), leader_epoch=5)
    assert (bench.directory / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n5 2\n"
    assert [log.leader_epoch_for(offset) for offset in range(4)] == [0, 0, 5, 5]


@pytest.mark.parametrize("codec", list(Codec))
def test_compressed_batches_are_stored_unchanged(bench: LogBench, codec: Codec) -> None:
    log = bench.open()
    sent = bytes(_two(codec=codec))
    append(log, memoryview(bytearray(sent)))
    assert bench.log_path().read_bytes()[16:] == sent[16:]
    assert [record.key for record in read_records(log)] == [b"a", b"b"]


def test_a_wrong_maximum_timestamp_in_the_header_is_corrected(bench: LogBench) -> None:
    log = bench.open()
    append(log, _patched(_two(), 35, struct.pack(">q", START_MS + 99)))
    [stored] = read_batches(log)
    assert stored.max_timestamp == START_MS + 1


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_log_append_time_is_written_into_the_header(bench: LogBench, codec: Codec) -> None:
    log = bench.open(log_config(timestamp_type="LogAppendTime"))
    bench.clock.now_ms = START_MS + 12345
    result = log.append_as_leader(_two(5, codec=codec), leader_epoch=0)
    assert result.log_append_time_ms == START_MS + 12345
    [stored] = read_batches(log)
    assert (stored.timestamp_type, stored.max_timestamp) == (TimestampType.LOG_APPEND_TIME, START_MS + 12345)
    assert {record.timestamp for record in read_records(log)} == {START_MS + 12345}


@pytest.mark.parametrize(("name", "codec"), [("zstd", Codec.ZSTD), ("uncompressed", Codec.NONE), ("gzip", Codec.GZIP)])
@pytest.mark.parametrize("source", [Codec.NONE, Codec.SNAPPY])
def test_a_topic_with_its_own_compression_recompresses_batches(
    bench: LogBench, name: str, codec: Codec, source: Codec
) -> None:
    log = bench.open(log_config(compression_type=name))
    append(log, _two(codec=source))
    [stored] = read_batches(log)
    assert stored.codec is codec
    assert [(record.key, record.value) for record in read_records(log)] == [(b"a", b"1"), (b"b", None)]


def _refused(bench: LogBench, data: memoryview, config: object = None, **kwargs: object) -> ErrorCode:
    log = bench.open(config)  # type: ignore[arg-type]
    append(log, _two())
    before = bench.log_path().read_bytes()
    with pytest.raises(BrokerError) as caught:
        log.append_as_leader(data, leader_epoch=0, **kwargs)  # type: ignore[arg-type]
    assert bench.log_path().read_bytes() == before
    assert log.log_end_offset == 2
    append(log, _two())  # the next good batch is accepted
    assert [record.offset for record in read_records(log)] == [0, 1, 2, 3]
    return caught.value.code


_LENGTH = 8
_MAGIC = 16
_CRC = 17
_ATTRIBUTES = 21
_LAST_DELTA = 23
_PRODUCER = 43
_COUNT = 57


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: _two()[:40], ErrorCode.INVALID_RECORD),
        (lambda: _two()[:-1], ErrorCode.INVALID_RECORD),
        (lambda: memoryview(bytearray()), ErrorCode.INVALID_RECORD),
        (lambda: _patched(_two(), _LENGTH, struct.pack(">i", 2**31 - 13), sealed=False), ErrorCode.INVALID_RECORD),
        (lambda: _patched(_two(), _LENGTH, struct.pack(">i", -1), sealed=False), ErrorCode.CORRUPT_MESSAGE),
        (lambda: _patched(_two(), _LENGTH, struct.pack(">i", 20), sealed=False), ErrorCode.CORRUPT_MESSAGE),
        (lambda: _patched(_two(), _CRC, b"\0\0\0\0", sealed=False), ErrorCode.CORRUPT_MESSAGE),
        (lambda: _patched(_two(), 70, b"\xff", sealed=False), ErrorCode.CORRUPT_MESSAGE),
        (lambda: _patched(_two(), _MAGIC, b"\1", sealed=False), ErrorCode.INVALID_RECORD),
        (lambda: _patched(_two(), _MAGIC, b"\3", sealed=False), ErrorCode.CORRUPT_MESSAGE),
        (lambda: memoryview(bytearray(bytes(_two()) * 2)), ErrorCode.INVALID_RECORD),
        (lambda: memoryview(bytearray(bytes(_two()) + b"x")), ErrorCode.INVALID_RECORD),
        (lambda: _patched(_two(), 0, struct.pack(">q", 1)), ErrorCode.INVALID_RECORD),
        (lambda: _patched(_two(), _ATTRIBUTES, b"\0\x20"), ErrorCode.INVALID_RECORD),
        (lambda: _patched(_two(), _ATTRIBUTES, b"\0\x40"), ErrorCode.INVALID_RECORD),
        (lambda: _patched(_two(), _ATTRIBUTES, b"\0\x10"), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (lambda: _patched(_two(), _ATTRIBUTES, b"\0\x07"), ErrorCode.INVALID_RECORD),
        (lambda: _patched(_two(), _ATTRIBUTES, b"\0\x04"), ErrorCode.INVALID_RECORD),
        (lambda: _patched(_two(), _COUNT, struct.pack(">i", 0)), ErrorCode.INVALID_RECORD),
        (lambda: _patched(_two(), _COUNT, struct.pack(">i", -2)), ErrorCode.INVALID_RECORD),
        (lambda: _patched(_two(), _COUNT, struct.pack(">i", 3)), ErrorCode.INVALID_RECORD),
        (lambda: _patched(_two(), _LAST_DELTA, struct.pack(">i", 7)), ErrorCode.INVALID_RECORD),
        (lambda: _patched(_two(), _LAST_DELTA, struct.pack(">i", -1)), ErrorCode.INVALID_RECORD),
        (lambda: _patched(_two(), 61, b"\x7f"), ErrorCode.INVALID_RECORD),
        (lambda: _patched(_two(), _PRODUCER, struct.pack(">q", 9)), ErrorCode.INVALID_RECORD),
    ],
)
def test_a_bad_batch_is_refused_and_nothing_is_written(
    bench: LogBench, make: Callable[[], memoryview], code: ErrorCode
) -> None:
    assert _refused(bench, make()) is code


@pytest.mark.parametrize("compression_type", ["producer", "lz4", "zstd", "uncompressed"])
def test_records_that_kafkas_decoders_do_not_read_are_refused_and_all_others_are_taken(
    bench: LogBench, compression_type: str
) -> None:
    log = bench.open(log_config(compression_type=compression_type, compact=True, max_message_bytes=1 << 20))
    for body in bodies():
        end = log.log_end_offset
        data = memoryview(body.batch())
        if body.verdict is Verdict.READ:
            append(log, data)
            assert log.log_end_offset == end + body.records, body.name
            [stored] = read_batches(log, end)
            check_records(stored, as_kafka=True)
            found = [(record.key, record.value) for record in read_records(log, end)]
            assert found == [(record.key, record.value) for record in listed(body.records)], body.name
        else:
            with pytest.raises(BrokerError) as caught:
                log.append_as_leader(data, leader_epoch=0)
            assert caught.value.code is ErrorCode.INVALID_RECORD, body.name
            assert log.log_end_offset == end


def test_a_batch_larger_than_max_message_bytes_is_too_large(bench: LogBench) -> None:
    assert _refused(bench, sized_batch(501), log_config(max_message_bytes=500)) is ErrorCode.MESSAGE_TOO_LARGE


def test_a_batch_that_grows_beyond_max_message_bytes_when_recompressed_is_too_large(bench: LogBench) -> None:
    data = batch((START_MS, None, b"x" * 2000), codec=Codec.ZSTD)
    config = log_config(max_message_bytes=500, compression_type="uncompressed")
    assert _refused(bench, data, config) is ErrorCode.MESSAGE_TOO_LARGE


def test_a_batch_larger_than_a_segment_is_refused(bench: LogBench) -> None:
    assert _refused(bench, sized_batch(1025), log_config(segment_bytes=1024)) is ErrorCode.RECORD_LIST_TOO_LARGE


def test_a_batch_as_large_as_a_segment_is_accepted(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=1024))
    assert [append(log, sized_batch(1024)) for _ in range(2)] == [0, 1]
    assert log.segment_count == 2


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_compacted_topic_refuses_records_without_a_key(bench: LogBench, codec: Codec) -> None:
    data = batch((START_MS, b"k", b"v"), (START_MS, None, b"v"), codec=codec)
    assert _refused(bench, data, log_config(compact=True)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("shift", [-1001, 2001])
def test_records_outside_of_the_timestamp_limits_are_refused(bench: LogBench, codec: Codec, shift: int) -> None:
    config = log_config(timestamp_before_max_ms=1000, timestamp_after_max_ms=2000)
    data = batch((START_MS, b"k", b"v"), (START_MS + shift, b"k", b"v"), codec=codec)
    assert _refused(bench, data, config) is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("shift", [-1000, 0, 2000])
def test_records_at_the_timestamp_limits_and_without_timestamps_are_accepted(bench: LogBench, shift: int) -> None:
    log = bench.open(log_config(timestamp_before_max_ms=1000, timestamp_after_max_ms=2000))
    append(log, batch((START_MS + shift, b"k", b"v"), (-1, b"k", b"v")))
    append(log, batch((-1, b"k", b"v")))


def test_timestamp_limits_do_not_apply_under_log_append_time(bench: LogBench) -> None:
    log = bench.open(
        log_config(timestamp_type="LogAppendTime", timestamp_before_max_ms=1000, timestamp_after_max_ms=2000)
    )
    append(log, batch((5, b"k", b"v")))


def test_a_producer_must_not_set_log_append_time(bench: LogBench) -> None:
    data = batch((START_MS, b"k", b"v"), timestamp_type=TimestampType.LOG_APPEND_TIME, append_timestamp=START_MS)
    assert _refused(bench, data, log_config(timestamp_type="LogAppendTime")) is ErrorCode.INVALID_TIMESTAMP


def test_an_error_names_the_partition(bench: LogBench) -> None:
    with pytest.raises(BrokerError, match=r"orders-0: .*crc"):
        append(bench.open(), _patched(_two(), _CRC, b"\0\0\0\0", sealed=False))


def test_flush_is_due_once_flush_messages_records_are_unsynced(bench: LogBench) -> None:
    log = bench.open(log_config(flush_messages=3))
    assert [log.append_as_leader(_two(), leader_epoch=0).flush_due for _ in range(2)] == [False, True]
    log.flush()
    assert log.recovery_point == 4
    assert log.append_as_leader(_two(), leader_epoch=0).flush_due is False


def test_a_trusted_origin_may_append_several_batches_and_control_batches(bench: LogBench) -> None:
    log = bench.open(log_config(index_interval_bytes=0))
    append(log, _two())
    data = memoryview(bytearray(bytes(_two()) + bytes(_two(is_control=True)) + bytes(_two())))
    result = log.append_as_leader(data, leader_epoch=4, origin=AppendOrigin.RAFT)
    assert (result.base_offset, result.last_offset, result.record_count) == (2, 7, 6)
    assert [(found.base_offset, found.is_control) for found in read_batches(log)] == [
        (0, False),
        (2, False),
        (4, True),
        (6, False),
    ]
    assert [found.partition_leader_epoch for found in read_batches(log, 2)] == [4, 4, 4]
    size = len(_two())
    assert bench.offset_entries() == [(3, size), (5, 2 * size), (7, 3 * size)]


def test_a_trusted_origin_may_append_whole_batches_only(bench: LogBench) -> None:
    damaged = _patched(_two(), 70, b"\xff", sealed=False)
    assert _refused(bench, damaged, origin=AppendOrigin.RAFT) is ErrorCode.CORRUPT_MESSAGE


def test_the_size_limit_applies_to_a_coordinators_batch_and_not_to_the_metadata_logs(bench: LogBench) -> None:
    config = log_config(max_message_bytes=500, flush_messages=NEVER)
    assert _refused(bench, sized_batch(501), config, origin=AppendOrigin.COORDINATOR) is ErrorCode.MESSAGE_TOO_LARGE
    log = bench.open(config)
    assert log.append_as_leader(sized_batch(501), leader_epoch=0, origin=AppendOrigin.RAFT).record_count == 1


def test_the_receive_buffer_may_be_reused_after_the_append(bench: LogBench) -> None:
    log = bench.open()
    buffer = bytearray(_two())
    append(log, memoryview(buffer))
    buffer[:] = bytes(len(buffer))
    [stored] = read_batches(log)
    assert isinstance(stored, RecordBatch)
    assert stored.record_count == 2

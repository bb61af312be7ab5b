"""Transactions in stored data: open ones bound the last stable offset, aborted ones are in the transaction index."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.file_names import TRANSACTION_INDEX_SUFFIX
from barnabas.broker.storage.files.file_records import FileRecords
from barnabas.broker.storage.index.transaction_index import ROW_BYTES, AbortedTxn, TransactionIndex
from barnabas.broker.storage.log.append import AppendOrigin, TransactionEnd
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.producers.snapshot import decode_snapshot
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.records.end_marker import EndMarker, decode_end_marker, encode_end_marker, encode_marker_batch
from barnabas.protocol.records.errors import InvalidRecordError
from barnabas.protocol.records.layout import CRC_POSITION, TimestampType
from tests.support.storage.bench import START_MS, LogBench, append, batch, log_config, read_batches
from tests.support.storage.transactions import end, send


@pytest.fixture
def bench(tmp_path: Path) -> LogBench:
    return LogBench(tmp_path)


def rows(log: PartitionLog) -> list[tuple[int, ...]]:
    """The index rows of all segments: producer id, first offset, last offset, last stable offset."""
    return [tuple(row[1:]) for segment in log.segments for row in segment.transaction_index.rows()]


def ranges(log: PartitionLog, start: int, upper: int) -> list[tuple[int, int]]:
    return [(row.producer_id, row.first_offset) for row in log.aborted_transactions(start, upper)]


def two_interleaved(log: PartitionLog) -> None:
    """Producer 1 aborts at 4 while producer 2's transaction of offset 1 is open; that one commits at 5."""
    send(log, 1, 0, b"a0")
    send(log, 2, 0, b"b0")
    send(log, 1, 1, b"a1")
    append(log, batch((1, b"k", b"plain")))
    end(log, 1, is_commit=False)
    end(log, 2, is_commit=True)


def test_the_last_stable_offset_is_where_the_oldest_open_transaction_began(bench: LogBench) -> None:
    log = bench.open()
    append(log, batch((1, b"k", b"v")))
    assert log.last_stable_offset == 1
    send(log, 7, 0, b"x")
    send(log, 8, 0, b"y")
    assert log.last_stable_offset == 1
    end(log, 7, is_commit=True)
    assert log.last_stable_offset == 2
    end(log, 8, is_commit=False)
    assert log.last_stable_offset == log.log_end_offset == 5


def test_an_aborted_transaction_gets_a_row_with_the_last_stable_offset_of_its_marker(bench: LogBench) -> None:
    log = bench.open()
    two_interleaved(log)
    send(log, 1, 2, b"again")
    end(log, 1, is_commit=False)
    assert rows(log) == [(1, 0, 4, 1), (1, 6, 7, 8)]


def test_a_committed_transaction_and_an_empty_one_get_no_row_and_no_file(bench: LogBench) -> None:
    log = bench.open()
    send(log, 1, 0, b"x")
    end(log, 1, is_commit=True)
    end(log, 1, is_commit=False)
    assert rows(log) == []
    bench.close(log)
    assert not bench.path(0, TRANSACTION_INDEX_SUFFIX).exists()


def test_a_row_is_34_bytes_as_kafka_writes_them(bench: LogBench) -> None:
    log = bench.open()
    two_interleaved(log)
    assert bench.path(0, TRANSACTION_INDEX_SUFFIX).read_bytes().hex() == (
        "0000" + "0000000000000001" + "0000000000000000" + "0000000000000004" + "0000000000000001"
    )


def test_a_read_gets_exactly_the_aborted_transactions_that_overlap_it(bench: LogBench) -> None:
    log = bench.open()
    two_interleaved(log)
    send(log, 3, 0, b"z")
    end(log, 3, is_commit=False)
    assert ranges(log, 0, 8) == [(1, 0), (3, 6)]
    assert ranges(log, 0, 6) == [(1, 0)]
    assert ranges(log, 4, 6) == [(1, 0)]
    assert ranges(log, 5, 6) == []
    assert ranges(log, 7, 8) == [(3, 6)]
    assert ranges(log, 3, 3) == [(1, 0)]


def test_a_marker_segments_after_its_data_is_found(bench: LogBench) -> None:
    config = log_config(segment_bytes=1024)
    log = bench.open(config)
    send(log, 1, 0, b"doomed")
    while log.segment_count < 4:
        append(log, batch((1, b"k", bytes(300))))
    last = end(log, 1, is_commit=False)
    assert ranges(log, 0, 1) == [(1, 0)]
    found = log.read(0, 1, upper_bound=log.last_stable_offset, at_least_one_batch=True)
    assert found is not None
    assert [row.last_offset for row in log.aborted_transactions_of(0, found)] == [last]
    assert rows(log)[0][1:3] == (0, last)


def test_the_range_of_a_read_ends_near_the_end_of_its_slice(bench: LogBench) -> None:
    log = bench.open(log_config(index_interval_bytes=200))
    for number in range(30):
        send(log, 1, number, b"x", size=100)
        end(log, 1, is_commit=False)
    found = log.read(0, 1, upper_bound=log.last_stable_offset, at_least_one_batch=True)
    assert found is not None
    seen = [row.first_offset for row in log.aborted_transactions_of(0, found)]
    assert seen[0] == 0
    assert len(seen) < 5
    everything = log.read(0, 1 << 20, upper_bound=log.last_stable_offset, at_least_one_batch=True)
    assert everything is not None
    assert len(log.aborted_transactions_of(0, everything)) == 30


@pytest.mark.parametrize("clean", [True, False], ids=["clean stop", "crash"])
def test_open_transactions_and_rows_survive_a_restart(bench: LogBench, *, clean: bool) -> None:
    log = bench.open()
    two_interleaved(log)
    send(log, 9, 0, b"open")
    before = rows(log)
    content = bench.path(0, TRANSACTION_INDEX_SUFFIX).read_bytes()
    if clean:
        bench.close(log)
    else:
        bench.crash(log)
        bench.path(0, TRANSACTION_INDEX_SUFFIX).write_bytes(b"what a crash left")
    log = bench.open(clean=clean)
    assert log.last_stable_offset == 6
    assert log.log_end_offset == 7
    assert rows(log) == before
    assert bench.path(0, TRANSACTION_INDEX_SUFFIX).read_bytes() == content
    end(log, 9, is_commit=False, coordinator_epoch=3)
    assert rows(log) == [*before, (9, 6, 7, 8)]


def test_open_transactions_of_a_snapshot_are_ordered_by_their_offsets_not_their_producers(bench: LogBench) -> None:
    log = bench.open()
    for producer_id in (9, 5, 1, 7):
        send(log, producer_id, 0, b"open")
    bench.close(log)
    log = bench.open()
    stable = [log.last_stable_offset]
    for producer_id in (9, 1, 5, 7):
        end(log, producer_id, is_commit=False)
        stable.append(log.last_stable_offset)
    assert stable == [0, 1, 1, 3, 8]
    assert [row[3] for row in rows(log)] == [1, 1, 3, 8]


def test_a_snapshot_keeps_the_open_transaction_and_the_coordinators_epoch(bench: LogBench) -> None:
    log = bench.open()
    send(log, 9, 0, b"x")
    end(log, 9, is_commit=True, epoch=1, coordinator_epoch=5)
    send(log, 9, 0, b"y", epoch=1)
    bench.close(log)
    path = bench.path(log.log_end_offset, ".snapshot")
    (row,) = decode_snapshot(path.read_bytes(), path)
    assert (row.producer_epoch, row.coordinator_epoch, row.txn_first_offset, row.last_sequence) == (1, 5, 2, 0)


def test_a_recovery_that_cuts_the_marker_off_opens_the_transaction_again(bench: LogBench) -> None:
    log = bench.open()
    send(log, 1, 0, b"x")
    end(log, 1, is_commit=False)
    size = log.size_bytes
    bench.crash(log)
    os.truncate(bench.log_path(), size - 1)
    log = bench.open(clean=False)
    assert (log.log_end_offset, log.last_stable_offset) == (1, 0)
    assert rows(log) == []


def test_a_bad_transaction_index_is_rebuilt_even_after_a_clean_stop(bench: LogBench) -> None:
    log = bench.open()
    two_interleaved(log)
    expected = rows(log)
    bench.close(log)
    path = bench.path(0, TRANSACTION_INDEX_SUFFIX)
    good = path.read_bytes()
    for bad in (good[:-1], b"\0\1" + good[2:], good + good):
        path.write_bytes(bad)
        log = bench.open()
        assert rows(log) == expected
        bench.close(log)
        assert path.read_bytes() == good


def test_the_transaction_index_is_deleted_with_its_segment(bench: LogBench) -> None:
    config = log_config(segment_bytes=1024)
    log = bench.open(config)
    send(log, 1, 0, b"x")
    end(log, 1, is_commit=False)
    while log.segment_count < 2:
        append(log, batch((1, b"k", bytes(300))))
    log.delete_records(log.segments[-1].base_offset)
    log.delete_old_segments()
    assert [name for name in bench.names() if "txnindex" in name] == [f"{0:020d}.txnindex.deleted"]
    bench.scheduler.advance(config.file_delete_delay_ms)
    assert [name for name in bench.names() if "txnindex" in name] == []
    with pytest.raises(BrokerError) as refused:
        log.aborted_transactions(0, 5)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_full_disk_leaves_neither_the_marker_nor_its_row(bench: LogBench, monkeypatch: pytest.MonkeyPatch) -> None:
    log = bench.open()
    send(log, 1, 0, b"x")

    def refuse(_: object, __: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(FileRecords, "append", refuse)
        with pytest.raises(BrokerError) as refused:
            end(log, 1, is_commit=False)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert rows(log) == []
    assert log.last_stable_offset == 0
    end(log, 1, is_commit=False)
    assert rows(log) == [(1, 0, 1, 2)]


def test_a_marker_of_an_old_producer_or_coordinator_epoch_is_refused(bench: LogBench) -> None:
    log = bench.open()
    send(log, 1, 0, b"x", epoch=4)
    end(log, 1, is_commit=True, epoch=5, coordinator_epoch=2)
    with pytest.raises(BrokerError) as refused:
        end(log, 1, is_commit=True, epoch=4, coordinator_epoch=2)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    with pytest.raises(BrokerError) as refused:
        end(log, 1, is_commit=True, epoch=5, coordinator_epoch=1)
    assert refused.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_plain_batch_of_a_producer_in_a_transaction_is_refused(bench: LogBench) -> None:
    log = bench.open()
    send(log, 1, 0, b"x")
    with pytest.raises(BrokerError) as refused:
        append(log, batch((1, b"k", b"v"), producer_id=1, producer_epoch=0, base_sequence=1))
    assert refused.value.code is ErrorCode.INVALID_TXN_STATE
    end(log, 1, is_commit=True)
    append(log, batch((1, b"k", b"v"), producer_id=1, producer_epoch=0, base_sequence=1))


def test_a_marker_among_a_coordinators_batches_is_refused(bench: LogBench) -> None:
    log = bench.open()
    marker = memoryview(encode_marker_batch(1, 0, EndMarker(True, 0), START_MS))
    with pytest.raises(BrokerError) as refused:
        log.append_as_leader(marker, leader_epoch=0, origin=AppendOrigin.COORDINATOR)
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert log.log_end_offset == 0


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_batch_has_the_bytes_that_the_builder_gives(is_commit: bool) -> None:
    marker = EndMarker(is_commit, 7)
    builder = RecordBatchBuilder(
        max_bytes=1 << 10, producer_id=1 << 40, producer_epoch=12, is_transactional=True, is_control=True
    )
    builder.append(START_MS, *encode_end_marker(marker))
    assert encode_marker_batch(1 << 40, 12, marker, START_MS) == builder.build()


def test_one_end_is_stored_with_the_offset_and_the_timestamp_of_each_append(bench: LogBench) -> None:
    log = bench.open()
    ended = TransactionEnd(1, 5, EndMarker(is_commit=True, coordinator_epoch=0), transaction_version=2)
    for timestamp in (START_MS, START_MS, START_MS + 1):
        log.append_marker(ended, leader_epoch=0, timestamp_ms=timestamp)
    assert [(each.base_offset, each.max_timestamp) for each in read_batches(log)] == [
        (0, START_MS),
        (1, START_MS),
        (2, START_MS + 1),
    ]
    by_append = encode_marker_batch(1, 5, ended.marker, START_MS + 1, log_append_time=True)
    assert ended.batch(START_MS + 1, log_append_time=True)[CRC_POSITION:] == by_append[CRC_POSITION:]


def test_from_transaction_version_2_a_late_marker_does_not_end_the_next_transaction(bench: LogBench) -> None:
    log = bench.open()
    send(log, 1, 0, b"x", epoch=4)
    end(log, 1, is_commit=True, epoch=5, transaction_version=2)
    end(log, 1, is_commit=True, epoch=5, transaction_version=2)  # repeated: the answer to the first one was lost
    send(log, 1, 0, b"y", epoch=5)
    with pytest.raises(BrokerError) as refused:
        end(log, 1, is_commit=True, epoch=5, transaction_version=2)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert (log.log_end_offset, log.last_stable_offset) == (4, 3)
    end(log, 1, is_commit=True, epoch=6, transaction_version=2)
    assert log.last_stable_offset == 5


def test_a_coordinators_batch_of_a_fenced_producer_opens_no_transaction(bench: LogBench) -> None:
    log = bench.open()
    send(log, 1, 0, b"x", epoch=4)
    end(log, 1, is_commit=False, epoch=5)
    with pytest.raises(BrokerError) as refused:
        send(log, 1, 0, b"late", epoch=4)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.last_stable_offset == log.log_end_offset == 2


def test_before_transaction_version_2_a_marker_has_the_epoch_of_its_data(bench: LogBench) -> None:
    log = bench.open()
    send(log, 1, 0, b"x", epoch=4)
    end(log, 1, is_commit=True, epoch=4, transaction_version=1)
    assert log.last_stable_offset == 2


def test_a_marker_has_the_append_time_where_the_topic_stores_append_times(bench: LogBench) -> None:
    log = bench.open(log_config(timestamp_type="LogAppendTime"))
    bench.clock.now_ms += 5
    send(log, 1, 0, b"x")
    end(log, 1, is_commit=False)
    (_, marker) = read_batches(log)
    assert (marker.timestamp_type, marker.max_timestamp) == (TimestampType.LOG_APPEND_TIME, START_MS + 5)
    marker.ensure_valid()


def test_the_log_start_bounds_the_last_stable_offset_from_below(bench: LogBench) -> None:
    log = bench.open()
    send(log, 1, 0, b"x", b"y", b"z")
    log.delete_records(2)
    assert log.last_stable_offset == 2


def test_rows_are_truncated_with_the_log(tmp_path: Path) -> None:
    (tmp_path / f"{10:020d}.log").touch()  # without it the whole segment would count as renamed
    index = TransactionIndex(str(tmp_path / f"{10:020d}.txnindex"), 10)
    assert index.rows() == []
    index.reset()
    assert not Path(index.path).exists()
    for last in (12, 15, 20):
        index.append(AbortedTxn(0, 1, last - 1, last, last + 1))
    index.check()
    index.truncate_to(16)
    assert [row.last_offset for row in index.rows()] == [12, 15]
    index.truncate_to(15)
    assert [row.last_offset for row in index.rows()] == [12]
    index.append(AbortedTxn(0, 1, 13, 14, 15))
    assert Path(index.path).stat().st_size == 2 * ROW_BYTES
    index.reset()
    assert Path(index.path).read_bytes() == b""


def test_a_row_below_the_segments_base_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / f"{10:020d}.txnindex"
    (tmp_path / f"{10:020d}.log").touch()
    TransactionIndex(str(path), 10).append(AbortedTxn(0, 1, 3, 9, 10))
    with pytest.raises(CorruptFileError):
        TransactionIndex(str(path), 10).check()


def test_an_end_marker_decodes_to_what_was_encoded_and_other_bytes_are_refused() -> None:
    for expected in (EndMarker(is_commit=True, coordinator_epoch=7), EndMarker(is_commit=False, coordinator_epoch=0)):
        assert decode_end_marker(*encode_end_marker(expected)) == expected
    key, value = encode_end_marker(EndMarker(is_commit=True, coordinator_epoch=7))
    assert decode_end_marker(key, b"\0\1" + value[2:] + b"more").coordinator_epoch == 7  # a later version adds fields
    for bad in ((None, value), (b"\0\0", value), (b"\0\0\0\2", value), (key, None), (key, b"\0\0"), (key, b"\xff" * 6)):
        with pytest.raises(InvalidRecordError):
            decode_end_marker(*bad)

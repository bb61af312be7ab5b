"""Idempotent producers: repeats, gaps, epochs; and the snapshots that let them survive a restart."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.producers.entry import MAX_SEQUENCE
from barnabas.broker.storage.producers.expiration import ProducerExpiration
from barnabas.broker.storage.producers.snapshot import SnapshotRow, decode_snapshot, encode_snapshot
from barnabas.broker.storage.producers.state import ProducerState
from barnabas.protocol.errors import BrokerError, ErrorCode
from tests.support.storage.bench import START_MS, TP, LogBench, append, batch, log_config, sized_batch
from tests.support.storage.transactions import end, send

_DAY_MS = 86_400_000


def _batch(sequence: int, count: int = 1, *, producer_id: int = 7, epoch: int = 0) -> memoryview:
    return batch(
        *[(START_MS, b"k", b"v")] * count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )


def _code(log: PartitionLog, data: memoryview) -> ErrorCode:
    end = log.log_end_offset
    with pytest.raises(BrokerError) as caught:
        append(log, data)
    assert log.log_end_offset == end
    return caught.value.code


def test_a_repeat_of_one_of_the_last_five_batches_gets_the_old_offsets(bench: LogBench) -> None:
    log = bench.open()
    for sequence in range(0, 12, 2):
        append(log, _batch(sequence, 2))
    for sequence in range(2, 12, 2):
        result = log.append_as_leader(_batch(sequence, 2), leader_epoch=0)
        assert (result.base_offset, result.last_offset, result.is_duplicate) == (sequence, sequence + 1, True)
    assert log.log_end_offset == 12
    assert _code(log, _batch(0, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # only the last five are remembered


def test_a_repeat_with_other_bounds_is_out_of_order(bench: LogBench) -> None:
    log = bench.open()
    append(log, _batch(0, 3))
    assert _code(log, _batch(0, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert _code(log, _batch(1, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_out_of_order(bench: LogBench) -> None:
    log = bench.open()
    append(log, _batch(0))
    assert _code(log, _batch(2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, _batch(1)) == 1


def test_a_new_epoch_begins_at_0_and_fences_the_old_one(bench: LogBench) -> None:
    log = bench.open()
    append(log, _batch(0, 3))
    assert _code(log, _batch(3, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, _batch(0, epoch=1)) == 3
    assert _code(log, _batch(3, epoch=0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert append(log, _batch(1, epoch=1)) == 4


def test_a_producer_without_state_may_begin_anywhere(bench: LogBench) -> None:
    log = bench.open()
    assert append(log, _batch(41)) == 0
    assert append(log, _batch(42)) == 1


def test_after_batches_without_an_epoch_any_sequence_is_accepted(bench: LogBench) -> None:
    log = bench.open()
    append(log, _batch(5, epoch=-1))
    append(log, _batch(9, epoch=-1))
    assert log.append_as_leader(_batch(9, epoch=-1), leader_epoch=0).is_duplicate
    append(log, _batch(3, epoch=0))
    assert _code(log, _batch(3, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_epoch_below_that_of_no_epoch_is_refused(bench: LogBench) -> None:
    assert _code(bench.open(), _batch(0, epoch=-2)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequences_wrap_to_0(bench: LogBench) -> None:
    log = bench.open()
    append(log, _batch(MAX_SEQUENCE - 1, 3))  # ..., 2^31 - 1, 0
    result = log.append_as_leader(_batch(MAX_SEQUENCE - 1, 3), leader_epoch=0)
    assert (result.base_offset, result.is_duplicate) == (0, True)
    assert append(log, _batch(1)) == 3
    append(log, _batch(MAX_SEQUENCE - 1, 2, producer_id=8))
    assert append(log, _batch(0, producer_id=8)) == 6


def test_a_repeated_batch_does_not_roll_the_segment(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=1024))
    append(log, _batch(0))
    append(log, sized_batch(1000 - log.size_bytes))
    assert log.append_as_leader(_batch(0), leader_epoch=0).is_duplicate
    assert log.segment_count == 1


@pytest.mark.parametrize("clean", [True, False])
def test_sequences_are_known_after_a_restart(bench: LogBench, clean: bool) -> None:
    config = log_config(segment_bytes=1024)
    log = bench.open(config)
    for sequence in range(30):
        append(log, _batch(sequence))
    append(log, _batch(0, producer_id=8, epoch=3))
    bench.close(log) if clean else bench.crash(log)
    log = bench.open(config, clean=clean)
    assert log.producer_count == 2
    assert log.append_as_leader(_batch(29), leader_epoch=0).is_duplicate
    assert _code(log, _batch(31)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, _batch(30)) == 31
    assert _code(log, _batch(1, producer_id=8, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_state_is_rebuilt_from_the_batches_when_every_snapshot_is_corrupt(bench: LogBench) -> None:
    config = log_config(segment_bytes=1024)
    log = bench.open(config)
    for sequence in range(30):
        append(log, _batch(sequence))
    bench.crash(log)
    snapshots = [path for path in bench.directory.iterdir() if path.suffix == ".snapshot"]
    assert snapshots
    for path in snapshots:
        path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    log = bench.open(config, clean=False)
    assert log.append_as_leader(_batch(29), leader_epoch=0).is_duplicate
    for path in snapshots:
        decode_snapshot(path.read_bytes(), path)


def test_producers_that_are_silent_for_too_long_expire(bench: LogBench) -> None:
    log = bench.open()
    append(log, _batch(5))
    bench.clock.now_ms = START_MS + _DAY_MS - 1
    assert log.remove_expired_producers() == 0
    bench.clock.now_ms += 1
    assert log.remove_expired_producers() == 1
    assert append(log, _batch(9)) == 1


def _written_at(bench: LogBench, ms: int, base_offset: int = 0) -> None:
    os.utime(bench.log_path(base_offset), ns=(ms * 1_000_000, ms * 1_000_000))


def test_expired_producers_are_not_loaded_from_a_snapshot(bench: LogBench) -> None:
    log = bench.open()
    append(log, _batch(5))
    bench.close(log)
    _written_at(bench, START_MS + 1)
    bench.clock.now_ms = START_MS + _DAY_MS
    log = bench.open()
    assert log.producer_count == 1
    bench.crash(log)
    _written_at(bench, START_MS)
    assert bench.open().producer_count == 0


def test_a_producer_of_old_records_expires_after_a_day_of_silence(bench: LogBench) -> None:
    bench.clock.now_ms = START_MS + 400 * _DAY_MS
    log = bench.open()
    append(log, _batch(0, 3))
    bench.clock.now_ms += _DAY_MS - 1
    assert log.remove_expired_producers() == 0
    assert log.append_as_leader(_batch(0, 3), leader_epoch=0).is_duplicate
    append(log, _batch(3))
    bench.clock.now_ms += _DAY_MS - 1
    assert log.remove_expired_producers() == 0
    bench.clock.now_ms += 1
    assert log.remove_expired_producers() == 1


@pytest.mark.parametrize("clean", [True, False])
def test_a_producer_of_old_records_is_known_after_a_restart(bench: LogBench, clean: bool) -> None:
    config = log_config(segment_bytes=1024)
    bench.clock.now_ms = START_MS + 400 * _DAY_MS
    log = bench.open(config)
    append(log, _batch(0, 3))
    while log.segment_count < 3:
        append(log, sized_batch(400))
    append(log, _batch(0, producer_id=8))
    bench.close(log) if clean else bench.crash(log)
    log = bench.open(config, clean=clean)
    assert log.remove_expired_producers() == 0
    assert log.append_as_leader(_batch(0, 3), leader_epoch=0).is_duplicate
    assert log.append_as_leader(_batch(0, producer_id=8), leader_epoch=0).is_duplicate
    bench.close(log)
    _written_at(bench, bench.clock.now_ms - _DAY_MS)  # the segment of producer 7; producer 8 is in a younger one
    log = bench.open(config)
    assert log.producer_count == 1
    assert log.append_as_leader(_batch(0, producer_id=8), leader_epoch=0).is_duplicate


def test_append_time_only_producers_are_left_out_of_snapshots_until_their_next_append(bench: LogBench) -> None:
    """Kafka has forgotten these producers: tests/interop compares its snapshots with ours byte for byte."""
    bench.clock.now_ms = START_MS + 400 * _DAY_MS
    log = bench.open()
    append(log, _batch(0, 3))
    assert log.remove_expired_producers() == 0
    append(log, sized_batch(100))
    log.roll()
    assert log.append_as_leader(_batch(0, 3), leader_epoch=0).is_duplicate
    assert _code(log, _batch(5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(log, _batch(3))
    log.roll()
    bench.close(log)
    snapshots = sorted(path for path in bench.directory.iterdir() if path.suffix == ".snapshot")
    assert [[row.producer_id for row in decode_snapshot(path.read_bytes(), path)] for path in snapshots] == [[], [7]]


def test_the_time_of_an_append_is_stored_in_no_file(bench: LogBench, tmp_path: Path) -> None:
    files = []
    for name, later_ms in (("a", 0), ("b", 400 * _DAY_MS)):
        other = LogBench(tmp_path / name)
        other.clock.now_ms += later_ms
        log = other.open()
        append(log, _batch(0, 3))
        log.roll()
        other.close(log)
        files.append({path.name: path.read_bytes() for path in other.directory.iterdir()})
    assert files[0] == files[1]
    assert any(name.endswith(".snapshot") for name in files[0])


def test_an_open_transaction_of_another_broker_bounds_the_last_stable_offset(bench: LogBench) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    bench.close(log)
    open_txn = batch(
        (START_MS, b"k", b"v"),
        producer_id=9,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
        base_offset=1,
        partition_leader_epoch=0,
    )
    with bench.log_path().open("ab") as file:
        file.write(open_txn)
    log = bench.open(clean=False)
    append(log, sized_batch(100))
    assert (log.log_end_offset, log.last_stable_offset) == (3, 1)
    assert log.read(1, 1000, upper_bound=log.last_stable_offset, at_least_one_batch=True) is None


def test_a_snapshot_has_kafkas_bytes() -> None:
    rows = [SnapshotRow(1000, 2, 41, 99, 3, START_MS, -1, -1), SnapshotRow(3000, 0, -1, -1, 0, -1, 5, 77)]
    content = encode_snapshot(rows)
    assert content[:2] == b"\0\1"
    assert content[6:10] == b"\0\0\0\2"
    assert content[10:56] == struct.pack(">qhiqiqiq", 1000, 2, 41, 99, 3, START_MS, -1, -1)
    assert len(content) == 10 + 2 * 46
    assert decode_snapshot(content, Path("x")) == rows
    assert encode_snapshot([]).hex() == "000148674bc700000000"


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:9],
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: b"\0\2" + content[2:],
        lambda content: content[:30] + b"\xff" + content[31:],
        lambda content: b"",
    ],
)
def test_a_damaged_snapshot_is_reported(change: object) -> None:
    content = encode_snapshot([SnapshotRow(1, 0, 0, 0, 0, 0, -1, -1)])
    with pytest.raises(CorruptFileError):
        decode_snapshot(change(content), Path("x"))  # type: ignore[operator]


def test_snapshot_entries_are_in_the_order_of_a_java_hash_map(tmp_path: Path) -> None:
    state = ProducerState(TP, tmp_path, ProducerExpiration(_DAY_MS))
    for offset, producer_id in enumerate((0, 1, 4, 1000, 2000, 16, 3000)):
        state.note_batch(producer_id, 0, 0, offset, 0, START_MS)
    state.map_end_offset = 7
    path = state.take_snapshot(durably=True)
    assert path is not None
    assert [row.producer_id for row in decode_snapshot(path.read_bytes(), path)] == [0, 2000, 16, 1, 4, 1000, 3000]


def test_a_snapshot_is_written_only_past_the_last_one(tmp_path: Path) -> None:
    state = ProducerState(TP, tmp_path, ProducerExpiration(_DAY_MS))
    assert state.take_snapshot(durably=True) is None
    state.map_end_offset = 5
    assert state.take_snapshot(durably=True) == tmp_path / f"{5:020d}.snapshot"
    assert state.take_snapshot(durably=True) is None


def test_after_a_marker_of_a_new_epoch_the_producer_continues_with_sequence_0(bench: LogBench) -> None:
    """KIP-890: the coordinator raises the epoch with each transaction; the new epoch has no batch yet."""
    log = bench.open()
    send(log, 7, 0, b"x", b"y")
    end(log, 7, is_commit=True, epoch=1)
    with pytest.raises(BrokerError) as refused:
        append(log, batch((START_MS, b"k", b"v"), producer_id=7, producer_epoch=1, base_sequence=2))
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    with pytest.raises(BrokerError) as refused:
        append(log, batch((START_MS, b"k", b"v"), producer_id=7, producer_epoch=0, base_sequence=2))
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert append(log, batch((START_MS, b"k", b"v"), producer_id=7, producer_epoch=1, base_sequence=0)) == 3


def test_a_producer_whose_transaction_is_open_does_not_expire(bench: LogBench) -> None:
    log = bench.open()
    send(log, 7, 0, b"x")
    bench.clock.now_ms += 10 * bench.services.producer_expiration.ms
    assert log.remove_expired_producers() == 0
    bench.close(log)
    log = bench.open()
    assert (log.producer_count, log.last_stable_offset) == (1, 0)
    end(log, 7, is_commit=True)
    bench.clock.now_ms += (
        bench.services.producer_expiration.ms
    )  # counted from the load, which cannot know when the batch was stored
    assert log.remove_expired_producers() == 1  # the marker's timestamp is START_MS


def test_producers_of_segments_that_retention_deleted_are_known_until_a_reload_without_snapshots(
    bench: LogBench,
) -> None:
    config = log_config(segment_bytes=1024)
    log = bench.open(config)
    append(log, batch((START_MS, b"k", bytes(100)), producer_id=7, producer_epoch=0, base_sequence=41))
    while log.segment_count < 3:
        append(log, batch((START_MS, b"k", bytes(300))))
    log.delete_records(log.log_end_offset)
    log.delete_old_segments()
    with pytest.raises(BrokerError) as refused:
        append(log, batch((START_MS, b"k", b"v"), producer_id=7, producer_epoch=0, base_sequence=50))
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    bench.crash(log)
    bench.log_start_offset = log.log_start_offset
    for path in bench.directory.glob("*.snapshot"):
        path.unlink()
    log = bench.open(config, clean=False)
    assert log.producer_count == 0
    append(log, batch((START_MS, b"k", b"v"), producer_id=7, producer_epoch=0, base_sequence=50))


def test_a_first_segment_without_index_after_retention_is_recovered_with_its_snapshot(
    bench: LogBench,
) -> None:
    config = log_config(segment_bytes=1024)
    log = bench.open(config)
    append(log, _batch(0, 3))
    while log.segment_count < 3:
        append(log, sized_batch(400))
    log.delete_records(log.segments[1].base_offset)
    log.delete_old_segments()
    first = log.segments[0].base_offset
    bench.close(log)
    bench.log_start_offset = 0  # the checkpoint has no entry, as the start offset is a segment's base
    bench.path(first, ".index").unlink()
    read_only = bench.open_read_only(config)
    assert (read_only.log_start_offset, read_only.producer_count) == (first, 1)
    reopened = bench.open(config)
    assert (reopened.log_start_offset, reopened.producer_count) == (first, 1)
    assert reopened.append_as_leader(_batch(0, 3), leader_epoch=0).is_duplicate


def test_of_the_snapshots_without_a_segment_only_the_last_one_above_all_segments_stays(tmp_path: Path) -> None:
    state = ProducerState(TP, tmp_path, ProducerExpiration(1000))
    for offset in (5, 10, 15, 20, 25):
        state.map_end_offset = offset
        state.take_snapshot(durably=False)
    state.remove_stray_snapshots({0, 10, 18})
    assert sorted(state.snapshot_offsets) == [10, 25]
    state.remove_stray_snapshots({0, 10, 30})
    assert sorted(state.snapshot_offsets) == [10]

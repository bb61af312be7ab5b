"""A read-only log serves what a recovery would leave, and does not change the directory.

Each directory is opened read-only first and then as a broker opens it; both must serve the same.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.log.state import LogState
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.record import Record
from tests.support.storage.bench import START_MS, LogBench, append, batch, log_config, read_records
from tests.support.storage.files import snapshot_of
from tests.support.storage.transactions import end, send

CONFIG = log_config(segment_bytes=600, index_interval_bytes=60)
Shown = tuple[int, int, int, list[Record], list[int], object]


def filled(bench: LogBench, batches: int = 20) -> PartitionLog:
    log = bench.open(CONFIG)
    for number in range(batches):
        append(log, batch((START_MS + number, b"k%d" % number, bytes(number * 5))), leader_epoch=number // 8)
    return log


def shown_by(log: ReadableLog) -> Shown:
    by_time = [
        -1 if (found := log.offset_for_timestamp(START_MS + number)) is None else found.offset for number in range(25)
    ]
    return (
        log.log_start_offset,
        log.log_end_offset,
        log.last_stable_offset,
        read_records(log),
        by_time,
        [log.leader_epoch_for(offset) for offset in range(log.log_end_offset)],
    )


def assert_same_and_untouched(bench: LogBench, *, clean: bool) -> PartitionLog:
    before = snapshot_of(bench.directory)
    read_only = bench.open_read_only(CONFIG, clean=clean)
    shown = shown_by(read_only)
    read_only.close()
    assert snapshot_of(bench.directory) == before
    log = bench.open(CONFIG, clean=clean)
    assert shown == shown_by(log)
    return log


def test_a_closed_log_is_served_unchanged(bench: LogBench) -> None:
    log = filled(bench)
    bench.close(log)
    assert len(assert_same_and_untouched(bench, clean=True).segments) > 2


def test_a_log_that_was_not_closed_is_served_as_recovery_would_leave_it(bench: LogBench) -> None:
    log = filled(bench)
    log.flush(8)
    bench.crash(log)
    assert 0 < bench.recovery_point < 20
    assert assert_same_and_untouched(bench, clean=False).log_end_offset == 20


@pytest.mark.parametrize("damage", ["torn", "flipped"])
def test_damage_at_each_byte_of_the_last_batch_hides_that_batch_only(tmp_path: Path, damage: str) -> None:
    bench = LogBench(tmp_path)
    log = filled(bench, 3)
    bench.crash(log)
    path = bench.log_path()
    whole = path.read_bytes()
    last_position = len(whole) - log.segments[-1].find_batch(2, len(whole)).size_bytes  # type: ignore[union-attr]
    for position in range(last_position + 1, len(whole)):
        if damage == "torn":
            path.write_bytes(whole[:position])
        else:
            path.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        shown = bench.open_read_only(CONFIG, clean=False)
        # bytes 0 to 7 are the base offset, 12 to 15 the leader epoch: neither is covered by the CRC
        expected = 3 if damage == "flipped" and position - last_position in range(12, 16) else 2
        if not (damage == "flipped" and position - last_position < 8):
            assert shown.log_end_offset == expected, position
        shown.close()
    bench.crash(assert_same_and_untouched(bench, clean=False))


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot"])
@pytest.mark.parametrize("content", [None, b"", b"\x01", b"\xff" * 68])
def test_missing_and_wrong_derived_files_are_rebuilt_in_memory(
    bench: LogBench, suffix: str, content: bytes | None
) -> None:
    log = filled(bench)
    bench.close(log)
    for path in list(bench.directory.glob(f"*{suffix}")):
        path.unlink() if content is None else path.write_bytes(content)
    before = snapshot_of(bench.directory)
    shown = bench.open_read_only(CONFIG)
    assert [record.offset for record in read_records(shown)] == list(range(20))
    if (suffix, content) != (".timeindex", b""):  # a time index without entries is legal, as in Kafka
        found = shown.offset_for_timestamp(START_MS + 13)
        assert found is not None
        assert found.offset == 13
    assert snapshot_of(bench.directory) == before


@pytest.mark.parametrize(
    ("suffix", "sizes"),
    # A time index of whole entries is legal whatever its length, as in Kafka: its last entry is the largest timestamp.
    [(".index", (8, 40, 43, 120)), (".timeindex", (63, 119))],
)
def test_records_after_the_end_of_a_truncated_index_are_found(
    bench: LogBench, suffix: str, sizes: tuple[int, ...]
) -> None:
    log = bench.open(log_config(index_interval_bytes=60))
    for number in range(20):
        append(log, batch((START_MS + number, b"k%d" % number, bytes(number * 5))))
    bench.close(log)
    (path,) = bench.directory.glob(f"*{suffix}")
    whole = path.read_bytes()
    assert len(whole) > max(sizes)
    for size in sizes:
        path.write_bytes(whole[:size])
        before = snapshot_of(bench.directory)
        for clean in (True, False):
            shown = bench.open_read_only(CONFIG, clean=clean)
            for offset in range(20):
                assert read_records(shown, offset)[0].offset == offset
                found = shown.offset_for_timestamp(START_MS + offset)
                assert found is not None
                assert found.offset == offset
            shown.close()
        assert snapshot_of(bench.directory) == before


@pytest.mark.parametrize("clean", [True, False])
def test_aborted_and_open_transactions_are_the_same_as_after_a_recovery(bench: LogBench, clean: bool) -> None:
    log = bench.open(CONFIG)
    send(log, 7, 0, b"gone", b"gone")
    end(log, 7, is_commit=False)
    log.roll()
    send(log, 8, 0, b"kept")
    end(log, 8, is_commit=True)
    send(log, 9, 0, b"open")
    append(log, batch((START_MS, None, b"behind it")))
    bench.close(log) if clean else bench.crash(log)
    read_only = bench.open_read_only(CONFIG, clean=clean)
    assert read_only.last_stable_offset == 5
    assert [(row.producer_id, row.first_offset) for row in read_only.aborted_transactions(0, 7)] == [(7, 0)]
    assert_same_and_untouched(bench, clean=clean)


def test_a_log_below_its_start_offset_and_a_log_without_files_are_empty_at_that_offset(bench: LogBench) -> None:
    log = filled(bench, 3)
    bench.crash(log)
    bench.log_start_offset = 10
    assert_same_and_untouched(bench, clean=False)
    for path in bench.directory.iterdir():
        os.unlink(path)
    read_only = bench.open_read_only(CONFIG, clean=False)
    assert (read_only.log_start_offset, read_only.log_end_offset, read_records(read_only)) == (10, 10, [])
    assert read_only.offset_for_timestamp(START_MS) is None
    assert not list(bench.directory.iterdir())


def test_a_read_only_log_has_none_of_the_methods_that_change_a_log(bench: LogBench) -> None:
    bench.close(filled(bench))
    log = bench.open_read_only(CONFIG)
    changes = {name for name in dir(PartitionLog) if not name.startswith("_")} - set(dir(ReadableLog))
    assert {"append_as_leader", "roll", "truncate_to", "replace_segments", "delete_directory", "flush"} <= changes
    assert [name for name in sorted(changes - {"close"}) if hasattr(log, name)] == []


def test_a_read_that_fails_leaves_the_rest_of_the_directory_in_service(bench: LogBench) -> None:
    bench.close(filled(bench))
    log = bench.open_read_only(CONFIG)
    bench.log_path(0).unlink()
    with pytest.raises(BrokerError) as failed:
        log.read(0, 1 << 20, upper_bound=20, at_least_one_batch=True)
    assert failed.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert [record.offset for record in read_records(log, 15)] == [15, 16, 17, 18, 19]
    assert log.state is LogState.ONLINE
    assert not bench.failed_directories

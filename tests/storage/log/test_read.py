"""Reads by offset: the bounds of a slice, and slices of deleted files."""

from __future__ import annotations

import errno
import os
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.broker.storage.files.file_records import FileSlice
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.read import read_slice
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.batch import iter_batches
from tests.support.storage.bench import (
    START_MS,
    LogBench,
    append,
    as_stored,
    batch,
    log_config,
    read_batches,
    sized_batch,
)


def _read(log: PartitionLog, offset: int, max_bytes: int = 1 << 20, *, first: bool = True) -> FileSlice | None:
    return as_stored(log.read(offset, max_bytes, upper_bound=log.high_watermark, at_least_one_batch=first))


def _offsets(part: FileSlice | None) -> list[tuple[int, int]]:
    assert part is not None
    return [(found.base_offset, found.last_offset) for found in iter_batches(part.read())]


def _three(count: int) -> memoryview:
    return batch(*[(START_MS, b"k", b"v" * 10)] * count)


def test_a_read_begins_with_the_batch_that_contains_the_offset(bench: LogBench) -> None:
    log = bench.open()
    for _ in range(4):
        append(log, _three(3))
    assert _offsets(_read(log, 4)) == [(3, 5), (6, 8), (9, 11)]
    assert _offsets(_read(log, 3)) == [(3, 5), (6, 8), (9, 11)]
    assert _offsets(_read(log, 11)) == [(9, 11)]


def test_a_read_at_the_end_is_empty_and_beyond_it_out_of_range(bench: LogBench) -> None:
    log = bench.open()
    assert _read(log, 0) is None
    append(log, _three(3))
    assert _read(log, 3) is None
    for offset in (4, -1):
        with pytest.raises(BrokerError) as caught:
            _read(log, offset)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_read_below_the_log_start_is_out_of_range(bench: LogBench) -> None:
    log = bench.open()
    for _ in range(3):
        append(log, _three(3))
    log.delete_records(4)
    assert _offsets(_read(log, 4))[0] == (3, 5)
    with pytest.raises(BrokerError, match="offset 3 is outside of"):
        _read(log, 3)


def test_the_tail_is_cut_at_the_limit_and_the_head_never(bench: LogBench) -> None:
    log = bench.open()
    for _ in range(3):
        append(log, sized_batch(100))
    part = _read(log, 0, 250)
    assert part is not None
    assert (part.position, part.size) == (0, 250)
    assert len(_offsets(part)) == 2


def test_a_first_batch_above_the_limit_is_returned_whole_or_not_at_all(bench: LogBench) -> None:
    log = bench.open()
    append(log, sized_batch(300))
    append(log, sized_batch(300))
    for offset in (0, 1):
        part = _read(log, offset, 100)
        assert part is not None
        assert part.size == 300
        assert _read(log, offset, 299, first=False) is None
        assert _offsets(_read(log, offset, 300, first=False)) == [(offset, offset)]


def test_nothing_at_or_above_the_upper_bound_is_read(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=1024))
    for _ in range(20):
        append(log, sized_batch(100))
    assert _offsets(as_stored(log.read(0, 10**6, upper_bound=3, at_least_one_batch=True))) == [(0, 0), (1, 1), (2, 2)]
    assert _offsets(as_stored(log.read(8, 10**6, upper_bound=12, at_least_one_batch=True))) == [(8, 8), (9, 9)]
    assert _offsets(as_stored(log.read(10, 10**6, upper_bound=12, at_least_one_batch=True))) == [(10, 10), (11, 11)]
    assert log.read(12, 10**6, upper_bound=12, at_least_one_batch=True) is None


def test_a_read_goes_on_in_the_next_segment(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=1024))
    for _ in range(25):
        append(log, sized_batch(100))
    assert [found.base_offset for found in read_batches(log)] == list(range(25))
    assert _offsets(_read(log, 9)) == [(9, 9)]


def test_a_read_in_a_hole_of_the_offsets_begins_with_the_next_batch(bench: LogBench) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    log.core.log_end_offset = 10  # as compaction leaves it
    append(log, sized_batch(100))
    log.roll()
    log.core.log_end_offset = 20
    append(log, sized_batch(100))
    log.roll()
    log.core.log_end_offset = 30
    append(log, sized_batch(100))
    assert [found.base_offset for found in read_batches(log)] == [0, 10, 20, 30]
    assert _offsets(_read(log, 5)) == [(10, 10)]
    assert _offsets(_read(log, 11)) == [(20, 20)]
    assert _offsets(_read(log, 29)) == [(30, 30)]


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 200)), min_size=1, max_size=60),
    interval=st.sampled_from([0, 300, 4096]),
    data=st.data(),
)
def test_every_offset_is_found_whatever_the_index_interval(
    bench: LogBench, batches: list[tuple[int, int]], interval: int, data: st.DataObject
) -> None:
    for path in bench.directory.iterdir():
        path.unlink()
    log = bench.open(log_config(segment_bytes=2048, index_interval_bytes=interval))
    spans = []
    for count, size in batches:
        base = append(log, batch(*[(START_MS, None, bytes(size))] * count))
        spans.append((base, base + count - 1))
    if data.draw(st.booleans(), label="reload"):
        log.close()
        log = bench.open(log_config(segment_bytes=2048, index_interval_bytes=interval))
    for offset in range(log.log_end_offset):
        assert _offsets(_read(log, offset, 1))[0] == next(span for span in spans if span[0] <= offset <= span[1])


def test_a_slice_can_be_sent_after_its_segment_was_deleted(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=1024, file_delete_delay_ms=0, retention_ms=1000))
    for number in range(12):
        append(log, sized_batch(100, START_MS + number))
    part = _read(log, 2)
    assert part is not None
    bench.clock.now_ms += 10_000
    assert log.delete_old_segments() == 2
    bench.scheduler.run_due()
    assert not bench.log_path(0).exists()
    assert _offsets(part)[0] == (2, 2)
    assert len(os.pread(part.fd, part.size, part.position)) == part.size


def test_the_file_is_closed_with_the_last_slice(bench: LogBench) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    part = _read(log, 0)
    assert part is not None
    fd = part.fd
    log.close()
    os.fstat(fd)
    del part
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def _is_open(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


def test_sealed_segments_keep_at_most_a_fixed_number_of_files_open(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=1024))
    for _ in range(400):
        append(log, sized_batch(100))
    assert log.segment_count == 40
    for _ in range(2):
        assert [found.base_offset for found in read_batches(log)] == list(range(400))
    targets = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if int(fd) > 2 if _is_open(fd)]
    ours = [target for target in targets if target.startswith(str(bench.directory))]
    active = 3
    assert len(ours) <= bench.services.open_files.limit + active
    assert bench.services.open_files.evictions > 0


def test_a_slice_just_written_is_warm(bench: LogBench) -> None:
    log = bench.open()
    append(log, sized_batch(5000))
    part = _read(log, 0)
    assert part is not None
    assert part.is_warm()


@pytest.mark.parametrize(
    ("error", "warm"), [(BlockingIOError(errno.EAGAIN, ""), False), (OSError(errno.EOPNOTSUPP, ""), True)]
)
def test_a_slice_is_cold_if_a_page_is_not_in_the_cache(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch, error: OSError, warm: bool
) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    part = _read(log, 0)
    assert part is not None

    def preadv(*_: object) -> int:
        raise error

    monkeypatch.setattr(os, "preadv", preadv)
    assert part.is_warm() is warm


def test_a_damaged_batch_header_is_corrupt_message_for_reads_of_it_only(bench: LogBench) -> None:
    log = bench.open()
    for _ in range(3):
        append(log, sized_batch(100))
    with bench.log_path().open("r+b") as file:
        file.seek(100 + 16)
        file.write(b"\x63")
    with pytest.raises(BrokerError) as caught:
        _read(log, 1)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert _offsets(_read(log, 2)) == [(2, 2)]
    assert bench.failed_directories == []


def test_reads_take_no_lock(bench: LogBench) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    append(log, sized_batch(100))
    with log.core.lock:
        assert _offsets(_read(log, 0)) == [(0, 0), (1, 1)]
        found = log.offset_for_timestamp(START_MS)
    assert found is not None


def test_readers_see_whole_batches_only_while_appends_go_on(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=8192, index_interval_bytes=200))
    failures: list[BaseException] = []
    done = threading.Event()

    def follow() -> None:
        offset = 0
        try:
            while not (done.is_set() and offset == log.log_end_offset):
                part = _read(log, offset)
                if part is None:
                    continue
                found = list(iter_batches(part.read()))
                assert sum(each.size_bytes for each in found) == part.size
                assert found[0].base_offset == offset
                offset = found[-1].next_offset
        except BaseException as error:  # noqa: BLE001 - the thread's failure is the test's
            failures.append(error)

    readers = [threading.Thread(target=follow) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(3000):
        append(log, sized_batch(100 + number % 7))
    done.set()
    for reader in readers:
        reader.join(30)
    assert failures == []
    assert not any(reader.is_alive() for reader in readers)


def test_a_read_in_a_hole_at_the_end_of_a_preallocated_segment_is_empty(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=8192, preallocate=True))
    append(log, sized_batch(100))
    log.core.log_end_offset = 10
    append(log, sized_batch(100))
    assert log.segments[0].find_batch(11, 200) is None
    assert _offsets(_read(log, 5)) == [(10, 10)]


def test_a_read_ends_where_the_log_ended_when_it_began(bench: LogBench) -> None:
    log = bench.open()
    for _ in range(3):
        append(log, sized_batch(100))
    end = log.core.end
    append(log, sized_batch(100))
    part = as_stored(read_slice(log.core.segments.view, end, 0, 1000, upper_bound=3, at_least_one_batch=True))
    assert _offsets(part) == [(0, 0), (1, 1), (2, 2)]


def test_a_file_that_is_evicted_while_it_is_read_stays_open_until_then(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evict the file, as a read of another log on another thread does: the next open would reuse the descriptor."""
    log = bench.open()
    append(log, sized_batch(100))
    log.roll()
    bench.close(log)
    log = bench.open()
    [sealed, _] = log.segments
    real, reads = os.pread, []

    def pread(fd: int, size: int, position: int) -> bytes:
        for segment in log.segments:
            segment.log.evict()
        reads.append(position)
        return real(fd, size, position)

    monkeypatch.setattr(os, "pread", pread)
    part = log.read(0, 1 << 20, upper_bound=1, at_least_one_batch=True)
    assert part is not None
    assert part.size == sealed.size_bytes
    assert reads

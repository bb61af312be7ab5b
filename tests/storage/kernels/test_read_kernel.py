"""The compiled read against LogReader: the same slice of the same file, or left to it."""

from __future__ import annotations

import mmap
import os
import random
import sys
from types import ModuleType
from typing import Any

import pytest

from barnabas.broker.storage.files.file_records import FileSlice
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.segment.old_format_slice import OldFormatSlice
from barnabas.protocol.errors import BrokerError
from tests.support.storage.bench import START_MS, LogBench, append, batch, log_config, sized_batch
from tests.support.storage.kernels import load_kernel


@pytest.fixture(scope="module")
def kernel() -> ModuleType:
    return load_kernel("compiled", {"compiled": "barnabas.broker.storage.kernels._read"})


def _place(part: object) -> Any:
    """Return which bytes a slice has; other results as they are."""
    if not isinstance(part, FileSlice):
        return part
    return os.fstat(part.fd).st_ino, part.position, part.size


def _python(log: PartitionLog, offset: int, max_bytes: int, upper_bound: int, first: bool) -> Any:
    try:
        found = log.read(offset, max_bytes, upper_bound=upper_bound, at_least_one_batch=first)
    except BrokerError as error:
        return error.code
    assert not isinstance(found, OldFormatSlice)
    return _place(found)


def _segments_of_random_batches(bench: LogBench, chosen: random.Random) -> PartitionLog:
    log = bench.open(log_config(segment_bytes=3_000, index_interval_bytes=200))
    for _ in range(60):
        records = [(START_MS, b"k", b"v" * chosen.randrange(120))] * chosen.randrange(1, 5)
        append(log, batch(*records))
    return log


@pytest.mark.parametrize("seed", range(4))
def test_random_reads_are_those_of_the_python_reader(bench: LogBench, kernel: ModuleType, seed: int) -> None:
    chosen = random.Random(seed)
    log = _segments_of_random_batches(bench, chosen)
    assert log.segment_count > 2
    log.delete_records(5)
    end = log.log_end_offset
    common = 0
    for _ in range(600):
        offset = chosen.randrange(-1, end + 2)
        max_bytes = chosen.choice([0, 1, 61, 200, 1_000, 10_000])
        upper_bound = chosen.choice([end, end, chosen.randrange(end + 1)])
        first = chosen.random() < 0.5
        expected = _python(log, offset, max_bytes, upper_bound, first)
        found = _place(kernel.read(log.core, offset, max_bytes, upper_bound, first, False))
        if found is not NotImplemented:
            common += 1
            assert found == expected, (offset, max_bytes, upper_bound, first)
    assert common > 500


def test_files_that_are_not_open_are_left_to_python(bench: LogBench, kernel: ModuleType) -> None:
    log = _segments_of_random_batches(bench, random.Random(1))
    bench.close(log)
    log = bench.open(log_config(segment_bytes=3_000, index_interval_bytes=200))
    arguments = (log.core, 0, 1 << 20, log.log_end_offset, True, False)
    assert kernel.read(*arguments) is NotImplemented
    expected = _python(log, 0, 1 << 20, log.log_end_offset, True)
    assert _place(kernel.read(*arguments)) == expected


def test_a_log_that_is_offline_is_left_to_python_also_at_its_end(bench: LogBench, kernel: ModuleType) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    log.go_offline()
    for offset in (0, 1):
        assert kernel.read(log.core, offset, 1000, 1, True, False) is NotImplemented


def test_under_read_committed_an_aborted_transaction_is_left_to_python(bench: LogBench, kernel: ModuleType) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    arguments = (log.core, 0, 1000, 1, True, True)
    assert kernel.read(*arguments) is NotImplemented  # the transaction index was not looked for yet
    assert log.segments[0].transaction_index.size_bytes == 0
    assert isinstance(kernel.read(*arguments), FileSlice)
    log.segments[0].transaction_index._size_bytes = 34
    assert kernel.read(*arguments) is NotImplemented


def test_damaged_headers_are_left_to_python(bench: LogBench, kernel: ModuleType) -> None:
    log = bench.open()
    for _ in range(3):
        append(log, sized_batch(100))
    arguments = (log.core, 1, 1000, 3, True, False)
    assert isinstance(kernel.read(*arguments), FileSlice)
    for position, damage in ((116, b"\x01"), (108, b"\xff\xff\xff\xff"), (100, b"\x80"), (123, b"\xff")):
        with open(bench.log_path(), "r+b") as file:
            sound = os.pread(file.fileno(), len(damage), position)
            os.pwrite(file.fileno(), damage, position)
            assert kernel.read(*arguments) is NotImplemented, position
            os.pwrite(file.fileno(), sound, position)
    assert isinstance(kernel.read(*arguments), FileSlice)


def _drop_from_page_cache(log: PartitionLog, position: int) -> None:
    """Drop the file's pages from `position` on; skips the test where the system keeps them."""
    fd = log.segments[-1].log.fd
    os.fsync(fd)
    os.posix_fadvise(fd, position, 0, os.POSIX_FADV_DONTNEED)
    try:
        os.preadv(fd, (bytearray(1),), position, os.RWF_NOWAIT)
    except BlockingIOError:
        return
    except OSError as error:
        pytest.skip(f"this file system cannot read without waiting: {error}")
    pytest.skip("the page cache keeps these pages")


@pytest.mark.parametrize("upper_bound", [2, 3])
def test_a_header_of_which_the_page_cache_has_only_a_part_is_left_to_python(
    bench: LogBench, kernel: ModuleType, upper_bound: int
) -> None:
    log = bench.open()
    for size in (100, mmap.PAGESIZE - 100 - 10, 100):
        append(log, sized_batch(size))
    arguments = (1 if upper_bound == 2 else 2, 1 << 20, upper_bound, True, False)
    append(log, sized_batch(100))
    assert isinstance(kernel.read(log.core, *arguments), FileSlice)
    found = None
    for _ in range(20):  # the check that the page has left the cache may have it read ahead
        _drop_from_page_cache(log, mmap.PAGESIZE)
        found = kernel.read(log.core, *arguments)
        if found is NotImplemented:
            break
    assert found is NotImplemented
    expected = _python(log, *arguments[:4])
    assert _place(kernel.read(log.core, *arguments)) == expected


def test_an_index_with_fewer_bytes_than_entries_is_left_to_python(bench: LogBench, kernel: ModuleType) -> None:
    log = bench.open(log_config(index_interval_bytes=100, segment_index_bytes=80))
    for _ in range(8):
        append(log, sized_batch(100))
    arguments = (log.core, 5, 1000, 8, True, False)
    assert isinstance(kernel.read(*arguments), FileSlice)
    log.segments[0].offset_index.entries = 11
    assert kernel.read(*arguments) is NotImplemented


def test_a_slice_keeps_its_file_open_and_no_other_reference_remains(bench: LogBench, kernel: ModuleType) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    handle = log.segments[0].log.handle()
    found = kernel.read(log.core, 0, 1000, 1, True, False)
    assert found._handle is handle
    for offset, max_bytes in ((0, 1000), (0, 1), (1, 1000), (7, 1000)):
        count = sys.getrefcount(handle)
        for _ in range(1000):
            kernel.read(log.core, offset, max_bytes, 1, False, False)
        assert sys.getrefcount(handle) == count

"""Offset and time index of one segment: files and lookups."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.open_files import OpenFiles
from barnabas.broker.storage.index.offset_index import OffsetIndex, OffsetPosition
from barnabas.broker.storage.index.time_index import TimeIndex, TimestampOffset

_BASE = 100


def _offset_index(path: Path, size: int = 80) -> OffsetIndex:
    index = OffsetIndex(str(path), _BASE, OpenFiles(4))
    index.open_writable(size)
    return index


def _time_index(path: Path, size: int = 120) -> TimeIndex:
    index = TimeIndex(str(path), _BASE, OpenFiles(4))
    index.open_writable(size)
    return index


def _add(index: OffsetIndex, *entries: tuple[int, int]) -> None:
    for offset, position in entries:
        index.prepare_append()
        index.append(offset, position)


def test_an_open_index_has_its_maximum_size_rounded_down_to_whole_entries(tmp_path: Path) -> None:
    _offset_index(tmp_path / "a.index", 10485760)
    _time_index(tmp_path / "a.timeindex", 10485760)
    assert os.path.getsize(tmp_path / "a.index") == 10485760
    assert os.path.getsize(tmp_path / "a.timeindex") == 10485756


def test_a_new_index_uses_no_disk_blocks(tmp_path: Path) -> None:
    _offset_index(tmp_path / "a.index", 10485760)
    assert os.stat(tmp_path / "a.index").st_blocks == 0


def test_an_entry_reads_no_more_of_the_sparse_file_than_its_page(tmp_path: Path) -> None:
    """The kernel's read-ahead over the zeros cost 45 ms of CPU at the first append to a partition."""
    path = tmp_path / "a.index"
    index = _offset_index(path, 10485760)
    _add(index, (128, 4198))
    flags = Path("/proc/self/smaps").read_text().split(str(path))[1].split("VmFlags:")[1].splitlines()[0].split()
    assert "rr" in flags  # MADV_RANDOM


def test_trim_leaves_exactly_the_entries_in_big_endian(tmp_path: Path) -> None:
    index = _offset_index(tmp_path / "a.index")
    _add(index, (128, 4198), (156, 8398))
    index.trim()
    assert (tmp_path / "a.index").read_bytes() == bytes.fromhex("0000001c 00001066 00000038 000020ce".replace(" ", ""))


def test_lookup_returns_the_last_entry_at_or_below_the_target(tmp_path: Path) -> None:
    index = _offset_index(tmp_path / "a.index")
    _add(index, (128, 4198), (156, 8398))
    assert index.lookup(128) == OffsetPosition(128, 4198)
    assert index.lookup(155) == OffsetPosition(128, 4198)
    assert index.lookup(10**12) == OffsetPosition(156, 8398)


def test_lookup_below_the_first_entry_returns_the_base_offset_and_position_0(tmp_path: Path) -> None:
    index = _offset_index(tmp_path / "a.index")
    assert index.lookup(127) == OffsetPosition(_BASE, 0)
    _add(index, (128, 4198))
    assert index.lookup(127) == OffsetPosition(_BASE, 0)


@given(st.sets(st.integers(1, 2**31 - 1), min_size=1, max_size=3000), st.integers(-5, 2**31 + 5))
def test_lookup_equals_a_linear_search(offsets: set[int], target: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        index = _offset_index(Path(directory) / "a.index", 8 * len(offsets))
        ordered = sorted(offsets)
        index.prepare_append(len(ordered))
        for position, offset in enumerate(ordered, 1):
            index.append(_BASE + offset, position)
        expected = max(
            (entry for entry in zip(ordered, range(1, 4000), strict=False) if entry[0] <= target), default=None
        )
        found = index.lookup(_BASE + target)
        assert found == (
            OffsetPosition(_BASE, 0) if expected is None else OffsetPosition(_BASE + expected[0], expected[1])
        )


def test_a_reopened_index_appends_after_its_last_entry(tmp_path: Path) -> None:
    index = _offset_index(tmp_path / "a.index")
    _add(index, (128, 4198))
    index.trim()
    again = _offset_index(tmp_path / "a.index")
    assert (again.entries, again.last_offset, again.max_entries) == (1, 128, 10)
    _add(again, (156, 8398))
    assert again.lookup(156) == OffsetPosition(156, 8398)


def test_a_reopened_index_never_becomes_too_short_for_its_entries(tmp_path: Path) -> None:
    index = _offset_index(tmp_path / "a.index")
    _add(index, (128, 4198), (156, 8398), (184, 12598))
    index.trim()
    again = _offset_index(tmp_path / "a.index", 8)
    assert again.entries == 3
    assert again.is_full


def test_the_offset_index_is_full_when_no_entry_fits(tmp_path: Path) -> None:
    index = _offset_index(tmp_path / "a.index", 23)
    fullness = []
    for entry in ((128, 4198), (156, 8398)):
        _add(index, entry)
        fullness.append(index.is_full)
    assert fullness == [False, True]


def test_the_time_index_is_full_one_entry_early(tmp_path: Path) -> None:
    index = _time_index(tmp_path / "a.timeindex", 36)
    fullness = []
    for number in (1, 2, 3):  # the third is the entry at roll, which still fits
        index.maybe_append(number, _BASE + number)
        fullness.append(index.is_full)
    assert fullness == [False, True, True]
    assert index.entries == 3


def test_a_time_entry_is_added_only_for_a_greater_timestamp(tmp_path: Path) -> None:
    index = _time_index(tmp_path / "a.timeindex")
    for timestamp, offset in ((5, 101), (5, 102), (4, 103), (6, 104)):
        index.maybe_append(timestamp, offset)
    index.trim()
    assert (tmp_path / "a.timeindex").read_bytes() == struct.pack(">qiqi", 5, 1, 6, 4)


def test_time_lookup_returns_the_last_entry_at_or_below_the_target(tmp_path: Path) -> None:
    index = _time_index(tmp_path / "a.timeindex")
    index.maybe_append(10, 110)
    index.maybe_append(20, 120)
    assert index.lookup(9) == TimestampOffset(-1, _BASE)
    assert index.lookup(10) == TimestampOffset(10, 110)
    assert index.lookup(19) == TimestampOffset(10, 110)
    assert index.lookup(99) == TimestampOffset(20, 120)


def test_the_entries_below_an_offset_are_those_that_a_truncation_keeps(tmp_path: Path) -> None:
    index = _offset_index(tmp_path / "a.index")
    _add(index, (128, 4198), (156, 8398), (184, 12598))
    assert index.entries_below(156) == struct.pack(">ii", 28, 4198)
    assert index.entries_below(128) == b""
    times = _time_index(tmp_path / "a.timeindex")
    for timestamp, offset in ((1, 128), (2, 156), (3, 184)):
        times.maybe_append(timestamp, offset)
    kept = times.entries_below(157)
    assert kept == struct.pack(">qiqi", 1, 28, 2, 56)
    assert times.last_entry_of(kept) == TimestampOffset(2, 156)
    assert times.last_entry_of(b"") == TimestampOffset(-1, _BASE)


def test_a_lookup_in_flight_survives_a_trim(tmp_path: Path) -> None:
    index = _offset_index(tmp_path / "a.index")
    _add(index, (128, 4198))
    held = index._buffer()
    index.trim()
    assert struct.unpack_from(">ii", held, 0) == (28, 4198)


def test_an_evicted_index_opens_again(tmp_path: Path) -> None:
    index = _offset_index(tmp_path / "a.index")
    _add(index, (128, 4198))
    index.trim()
    index.evict()
    assert index.lookup(130) == OffsetPosition(128, 4198)


def test_a_page_is_allocated_before_its_first_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "posix_fallocate", lambda _, start, length: asked.append((start, length)))
    index = _offset_index(tmp_path / "a.index", 4096 * 3)
    for offset in range(101, 101 + 1024):
        _add(index, (offset, offset))
    assert asked == [(0, 4096), (4096, 4096)]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\0" * 7, "not a multiple of 8"),
        (b"\0" * 8, "last entry"),
        (struct.pack(">ii", 5, 5000), "last entry"),
        (struct.pack(">ii", -5, 50), "last entry"),
        (struct.pack(">iiii", 9, 300, 5, 400), "first entry"),
    ],
)
def test_a_wrong_offset_index_is_detected_by_its_first_and_last_entries(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "a.index").write_bytes(content)
    index = OffsetIndex(str(tmp_path / "a.index"), _BASE, OpenFiles(4))
    with pytest.raises(CorruptFileError, match=reason):
        index.check(log_size_bytes=1000)


@pytest.mark.parametrize(
    "content",
    [b"\0" * 13, struct.pack(">qi", 5, -1), struct.pack(">qiqi", 9, 1, 5, 2), struct.pack(">qiqi", 5, 3, 9, 2)],
)
def test_a_wrong_time_index_is_detected_by_its_first_and_last_entries(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.timeindex").write_bytes(content)
    index = TimeIndex(str(tmp_path / "a.timeindex"), _BASE, OpenFiles(4))
    with pytest.raises(CorruptFileError):
        index.check(log_size_bytes=1000)


def test_a_replaced_index_has_no_entries_of_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.index"
    path.write_bytes(struct.pack(">iiii", 1, 10, 2, 20))
    index = OffsetIndex(str(path), _BASE, OpenFiles(4))
    assert index.lookup(_BASE + 9) == (_BASE + 2, 20)
    index.replace(struct.pack(">ii", 7, 70))
    assert (index.lookup(_BASE + 9), index.entries) == ((_BASE + 7, 70), 1)
    assert path.read_bytes() == struct.pack(">ii", 7, 70)

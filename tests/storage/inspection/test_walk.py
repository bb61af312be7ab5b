"""LogWalk over whole and damaged files, and the readers of index files."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from barnabas.broker.storage.inspection.file_types import FileType, identify
from barnabas.broker.storage.inspection.index_entries import (
    read_offset_index,
    read_time_index,
    read_transaction_index,
)
from barnabas.broker.storage.inspection.log_walk import LogWalk, StoredBatch, StoredMessage, is_zeros
from barnabas.broker.storage.inspection.positions import position_of_offset
from barnabas.protocol.records import Record
from tests.support.storage.records import build, plain


def write_log(directory: Path, *batches: bytes | bytearray) -> Path:
    path = directory / f"{0:020d}.log"
    path.write_bytes(b"".join(batches))
    return path


def offsets(walk: LogWalk) -> list[tuple[int, int, bool]]:
    return [
        (step.position, step.batch.base_offset, step.fault is None) for step in walk if isinstance(step, StoredBatch)
    ]


def old_message(offset: int, magic: int, value: bytes) -> bytes:
    head = struct.pack(">bb", magic, 0) + (struct.pack(">q", 1234) if magic else b"")
    body = head + struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def test_a_walk_continues_after_a_wrong_crc(tmp_path: Path) -> None:
    first, second, third = (plain(3, base_offset=base) for base in (0, 3, 6))
    second[-1] ^= 1
    walk = LogWalk(write_log(tmp_path, first, second, third))

    assert offsets(walk) == [(0, 0, True), (len(first), 3, False), (len(first) + len(second), 6, True)]
    assert walk.end_fault is None
    assert walk.left_bytes == 0


@pytest.mark.parametrize("tail", [b"\0" * 100, b"\0" * 5, b"\xff" * 100, bytes(plain(3, base_offset=3)[:-1])])
def test_a_walk_ends_at_an_implausible_size_and_reports_its_position(tmp_path: Path, tail: bytes) -> None:
    whole = plain(3)
    path = write_log(tmp_path, whole, tail)
    walk = LogWalk(path)

    assert offsets(walk) == [(0, 0, True)]
    assert walk.end_fault is not None
    assert (walk.position, walk.left_bytes) == (len(whole), len(tail))
    assert is_zeros(path, walk.position) == (not any(tail))


def test_a_batch_larger_than_the_buffer_is_read_whole(tmp_path: Path) -> None:
    large = build([Record(0, 5, None, bytes(5 * 1024 * 1024))])
    walk = LogWalk(write_log(tmp_path, large, plain(1, base_offset=1)))
    assert offsets(walk) == [(0, 0, True), (len(large), 1, True)]


@pytest.mark.parametrize("magic", [0, 1])
def test_entries_of_old_message_sets_are_walked_with_their_crc(tmp_path: Path, magic: int) -> None:
    good, bad = old_message(7, magic, b"value"), bytearray(old_message(8, magic, b"value"))
    bad[-1] ^= 1
    steps = list(LogWalk(write_log(tmp_path, good, bad, plain(1, base_offset=9))))

    assert [type(step) for step in steps] == [StoredMessage, StoredMessage, StoredBatch]
    assert isinstance(steps[0], StoredMessage)
    message = steps[0].message
    assert (message.offset, message.magic, message.timestamp) == (7, magic, 1234 if magic else -1)
    assert [step.fault is None for step in steps] == [True, False, True]


def test_the_unused_space_of_an_index_is_separated_from_its_entries(tmp_path: Path) -> None:
    path = tmp_path / f"{100:020d}.index"
    # The last entry's bytes end with zeros: its position is 65536.
    path.write_bytes(struct.pack(">iiii", 5, 4200, 256, 65536) + bytes(64) + b"\1\2\3")
    content = read_offset_index(path, 100)
    assert [tuple(entry) for entry in content.entries] == [(105, 4200), (356, 65536)]
    # Bytes of an incomplete entry follow the zeros here, so the zeros count as unused space.
    assert (content.used_bytes, content.unused_bytes, content.odd_bytes) == (16, 64, 3)


def test_the_single_entry_of_a_time_index_is_never_taken_for_unused_space(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.timeindex"
    path.write_bytes(bytes(12))
    assert read_time_index(path, 0).entries == [(0, 0)]
    path.write_bytes(bytes(24))
    assert read_time_index(path, 0).entries == []


def test_rows_of_a_transaction_index(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.txnindex"
    path.write_bytes(struct.pack(">hqqqq", 0, 7, 10, 20, 10) + b"\0")
    content = read_transaction_index(path)
    assert [tuple(row) for row in content.entries] == [(0, 7, 10, 20, 10)]
    assert content.odd_bytes == 1


@pytest.mark.parametrize("entry", [(5, 0), (5, 17), (4, 999_999), (5, -3)])
def test_a_wrong_index_does_not_mislead_a_lookup(tmp_path: Path, entry: tuple[int, int]) -> None:
    first = plain(3)
    path = write_log(tmp_path, first, plain(3, base_offset=3))
    index = path.with_suffix(".index")
    index.write_bytes(struct.pack(">ii", 5, len(first)))
    assert position_of_offset(path, 0, 5) == len(first)
    assert position_of_offset(path, 0, 4) == 0
    index.write_bytes(struct.pack(">ii", 4, len(first)))  # a batch begins there, but with another last offset
    assert position_of_offset(path, 0, 5) == 0
    index.write_bytes(struct.pack(">ii", *entry))
    assert position_of_offset(path, 0, 5) == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{5:020d}.log", FileType.LOG),
        (f"{5:020d}.timeindex.deleted", FileType.TIME_INDEX),
        (f"{5:020d}-0000000003.checkpoint", FileType.METADATA_SNAPSHOT),
        ("bootstrap.checkpoint", FileType.METADATA_SNAPSHOT),
        ("leader-epoch-checkpoint", FileType.EPOCH_CHECKPOINT),
        ("replication-offset-checkpoint", FileType.OFFSET_CHECKPOINT),
        ("5.log", None),
        ("notes.txt", None),
    ],
)
def test_a_files_type_follows_from_its_name(name: str, expected: FileType | None) -> None:
    known = identify(Path("/somewhere") / name)
    assert (None if known is None else known.type) is expected

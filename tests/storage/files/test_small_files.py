"""The small files: checkpoints, leader epochs, partition.metadata, the clean-shutdown marker; and names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.broker.storage.files.checkpoint_file import OffsetCheckpointFile
from barnabas.broker.storage.files.checkpoint_order import DEFAULT_BUCKETS, PRESIZED_BUCKETS, in_kafkas_order
from barnabas.broker.storage.files.clean_shutdown import CleanShutdownMarker
from barnabas.broker.storage.files.durable_files import write_durably
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.file_names import FileKind, ParsedFileName, file_name, parse_file_name
from barnabas.broker.storage.files.leader_epoch import EpochEntry, LeaderEpochFile
from barnabas.broker.storage.files.partition_directory import (
    DirectoryKind,
    delete_directory_name,
    directory_name,
    future_directory_name,
    parse_directory_name,
    stray_directory_name,
)
from barnabas.broker.storage.files.partition_metadata_file import read_partition_metadata, write_partition_metadata
from barnabas.protocol.topic_partition import TopicPartition

_TOPIC_ID = bytes.fromhex("0123456789abcdef0123456789abcdef")


def test_a_checkpoint_is_version_count_and_one_line_per_partition(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    checkpoint = OffsetCheckpointFile(path)
    offsets = {TopicPartition("b", 0): 5, TopicPartition("a", 10): 0, TopicPartition("a", 2): 2**40}
    assert checkpoint.write(offsets)
    assert path.read_text() == "0\n3\na 2 1099511627776\na 10 0\nb 0 5\n"
    assert OffsetCheckpointFile(path).read() == offsets
    assert os.listdir(tmp_path) == [path.name]


def test_an_unchanged_checkpoint_is_not_written_again(tmp_path: Path) -> None:
    checkpoint = OffsetCheckpointFile(tmp_path / "c")
    assert checkpoint.write({TopicPartition("a", 0): 1})
    assert not checkpoint.write({TopicPartition("a", 0): 1})
    assert checkpoint.write({TopicPartition("a", 0): 2})


@pytest.mark.parametrize("content", [None, b""])
def test_a_missing_or_empty_checkpoint_has_no_entries(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "c").write_bytes(content)
    assert OffsetCheckpointFile(tmp_path / "c").read() == {}


@pytest.mark.parametrize(
    "content",
    [
        b"1\n0\n",
        b"x\n0\n",
        b"0\n2\na 0 1\n",
        b"0\n0\na 0 1\n",
        b"0\n1\na 0\n",
        b"0\n1\na b 1\n",
        b"0\n1\na 0 z\n",
        b"\xff\xfe",
    ],
)
def test_a_bad_checkpoint_is_reported_and_can_be_set_aside(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(CorruptFileError, match="path="):
        OffsetCheckpointFile(tmp_path / "c").read()
    assert OffsetCheckpointFile(tmp_path / "c").read_or_set_aside("all is read again") == {}
    assert (tmp_path / "c.corrupt").read_bytes() == content


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_durably(tmp_path / "c", b"old")

    def fail(_: int) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        write_durably(tmp_path / "c", b"new")
    assert (tmp_path / "c").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["c"]


def _epochs(tmp_path: Path, *entries: tuple[int, int]) -> LeaderEpochFile:
    epochs = LeaderEpochFile(tmp_path)
    for epoch, start in entries:
        epochs.assign(epoch, start)
    return epochs


def test_a_checkpoint_is_synced_before_it_is_renamed_and_its_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    real_sync, real_rename = os.fsync, os.rename

    def fsync(fd: int) -> None:
        steps.append(f"sync {os.path.basename(os.readlink(f'/proc/self/fd/{fd}'))}")
        real_sync(fd)

    def rename(source: Path, target: Path) -> None:
        steps.append(f"rename {target.name}")
        real_rename(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    OffsetCheckpointFile(tmp_path / "c").write({TopicPartition("orders", 0): 7})
    assert steps == ["sync c.tmp", "rename c", f"sync {tmp_path.name}"]


def test_an_epoch_is_recorded_once_with_its_first_offset(tmp_path: Path) -> None:
    epochs = _epochs(tmp_path, (0, 0))
    assert not epochs.assign(0, 10)
    assert epochs.assign(2, 10)
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n2 10\n"
    assert LeaderEpochFile.load(tmp_path).entries == ((0, 0), (2, 10))


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        ((5, 30), [(1, 0), (2, 10), (3, 20), (5, 30)]),
        ((5, 20), [(1, 0), (2, 10), (5, 20)]),
        ((2, 30), [(1, 0), (2, 30)]),
        ((3, 15), [(1, 0), (2, 10), (3, 15)]),
        ((1, 0), [(1, 0)]),
    ],
)
def test_a_new_epoch_drops_entries_not_below_its_own(
    tmp_path: Path, entry: tuple[int, int], left: list[tuple[int, int]]
) -> None:
    epochs = _epochs(tmp_path, (1, 0), (2, 10), (3, 20))
    epochs.assign(*entry)
    assert list(epochs.entries) == left


def test_epochs_are_looked_up_by_offset_and_their_ends_by_epoch(tmp_path: Path) -> None:
    epochs = _epochs(tmp_path, (1, 5), (3, 10), (7, 20))
    assert [epochs.epoch_for(offset) for offset in (4, 5, 9, 10, 19, 20, 99)] == [-1, 1, 1, 3, 3, 7, 7]
    assert epochs.end_offset_for(0, 50) == EpochEntry(0, 5)
    assert epochs.end_offset_for(1, 50) == EpochEntry(1, 10)
    assert epochs.end_offset_for(2, 50) == EpochEntry(1, 10)
    assert epochs.end_offset_for(7, 50) == EpochEntry(7, 50)
    assert epochs.end_offset_for(8, 50) is None
    assert epochs.end_offset_for(-1, 50) is None
    assert epochs.end_offset_for(-2, 50) == EpochEntry(-2, 5)  # as Kafka: only -1 is no epoch


def test_epochs_are_trimmed_at_both_ends(tmp_path: Path) -> None:
    epochs = _epochs(tmp_path, (1, 5), (3, 10), (7, 20))
    epochs.truncate_from_end(20)
    assert epochs.entries == ((1, 5), (3, 10))
    epochs.truncate_from_start(7)
    assert epochs.entries == ((1, 7), (3, 10))
    epochs.truncate_from_start(10)
    assert list(epochs.entries) == [(3, 10)]


def test_an_epoch_that_cannot_be_written_is_not_added(tmp_path: Path) -> None:
    epochs = LeaderEpochFile(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        epochs.assign(1, 0)
    assert epochs.entries == ()


def test_a_bad_leader_epoch_file_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n1\nzero 0\n")
    assert LeaderEpochFile.load(tmp_path).entries == ()
    assert (tmp_path / "leader-epoch-checkpoint.corrupt").exists()


def test_partition_metadata_has_43_bytes_without_a_newline_at_the_end(tmp_path: Path) -> None:
    write_partition_metadata(tmp_path, _TOPIC_ID)
    assert (tmp_path / "partition.metadata").read_bytes() == b"version: 0\ntopic_id: ASNFZ4mrze8BI0VniavN7w"
    assert read_partition_metadata(tmp_path) == _TOPIC_ID
    assert read_partition_metadata(tmp_path / "elsewhere") is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "version: 1\ntopic_id: ASNFZ4mrze8BI0VniavN7w",
        "version: 0\ntopic_id: short",
        "version: 0\ntopic_id: " + "A" * 22,
    ],
)
def test_bad_partition_metadata_is_reported(tmp_path: Path, content: str) -> None:
    (tmp_path / "partition.metadata").write_text(content)
    with pytest.raises(CorruptFileError):
        read_partition_metadata(tmp_path)


def test_the_clean_shutdown_marker_equals_kafkas_and_can_be_taken_once(tmp_path: Path) -> None:
    marker = CleanShutdownMarker(tmp_path)
    assert not marker.take()
    marker.write(12)
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":12}'
    assert marker.take()
    assert not marker.take()


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("00000000000000000109.log", ParsedFileName(109, FileKind.LOG, "")),
        ("00000000000000000109.timeindex.swap", ParsedFileName(109, FileKind.TIME_INDEX, ".swap")),
        ("00000000000000000000.snapshot.deleted", ParsedFileName(0, FileKind.SNAPSHOT, ".deleted")),
        ("0000000000000000109.log", None),
        ("00000000000000000109.log.tmp", None),
        ("00000000000000000109-0000000001.checkpoint", None),
        ("leader-epoch-checkpoint", None),
    ],
)
def test_segment_file_names(name: str, parsed: ParsedFileName | None) -> None:
    assert parse_file_name(name) == parsed
    if parsed is not None:
        assert file_name(parsed.offset, parsed.kind.value, parsed.stage) == name


@pytest.mark.parametrize(
    ("name", "topic", "partition", "kind"),
    [
        ("orders-0", "orders", 0, DirectoryKind.CURRENT),
        ("a-b-12", "a-b", 12, DirectoryKind.CURRENT),
        ("with.dots-3", "with.dots", 3, DirectoryKind.CURRENT),
        (f"t-1.{'0a' * 16}-delete", "t", 1, DirectoryKind.DELETE),
        (f"with.dots-1.{'0a' * 16}-stray", "with.dots", 1, DirectoryKind.STRAY),
        (f"t-1.{'0a' * 16}-future", "t", 1, DirectoryKind.FUTURE),
    ],
)
def test_partition_directory_names(name: str, topic: str, partition: int, kind: DirectoryKind) -> None:
    assert parse_directory_name(name) == (TopicPartition(topic, partition), kind)


@pytest.mark.parametrize(
    "name",
    [
        *("orders", "-0", "orders-", "orders-x", "t-delete", "t-99999999999", "a b-0", "t-1.x-delet"),
        *("photos-2024.old-delete", f"t-1.{'0a' * 15}-delete", f"t-1.{'0A' * 16}-delete", f"t-1.x{'0a' * 16}-stray"),
    ],
)
def test_other_directory_names_are_not_partitions(name: str) -> None:
    assert parse_directory_name(name) is None


@pytest.mark.parametrize("make", [delete_directory_name, stray_directory_name])
def test_delete_and_stray_names_are_cut_to_255_bytes(make: object) -> None:
    long = TopicPartition("x" * 249, 2**31 - 1)
    name = make(long)  # type: ignore[operator]
    assert len(name) == 255
    assert parse_directory_name(name) is not None
    assert make(long) != name  # type: ignore[operator]


def test_a_future_name_keeps_the_whole_topic() -> None:
    partition = TopicPartition("x" * 200, 3)
    parsed = parse_directory_name(future_directory_name(partition))
    assert parsed is not None
    assert parsed.topic_partition == partition
    assert directory_name(partition) == "x" * 200 + "-3"


def test_checkpoint_rows_are_in_the_order_of_kafkas_maps(tmp_path: Path) -> None:
    partitions = [TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("payments", 0)]
    assert in_kafkas_order(partitions, PRESIZED_BUCKETS) != in_kafkas_order(partitions, DEFAULT_BUCKETS)
    # As written by Kafka 4.3.0; tests/interop/directories/test_same_bytes.py compares with a real one.
    written = [
        "codecs 0",
        "full.index 0",
        "codecs 1",
        "rewritten 0",
        "late.start 0",
        "producers 0",
        "empty 0",
        "by.time 0",
        "empty 1",
    ]
    kafkas = [TopicPartition(topic, int(number)) for topic, number in map(str.split, written)]
    assert in_kafkas_order(sorted(kafkas), PRESIZED_BUCKETS) == kafkas
    OffsetCheckpointFile(tmp_path / "recovery-point-offset-checkpoint").write(dict.fromkeys(sorted(kafkas), 7))
    lines = (tmp_path / "recovery-point-offset-checkpoint").read_text().splitlines()
    assert lines == ["0", "9", *(f"{row} 7" for row in written)]

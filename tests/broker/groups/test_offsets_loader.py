"""Loading `__consumer_offsets`: the newest value of each key, transactions by their markers, no silent losses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.groups.log.records import GroupRecord, encode_batches
from barnabas.broker.groups.offsets.loader import LoadedPartition, load_offsets_partition
from barnabas.broker.storage.log.append import AppendOrigin
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.protocol.compression import CODECS, Codec
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups.keys import GroupMetadataKey, OffsetCommitKey
from barnabas.protocol.groups.values import GroupMetadataValue, OffsetCommitValue
from tests.support.storage.bench import START_MS, LogBench, batch, log_config
from tests.support.storage.transactions import end


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PartitionLog]:
    bench = LogBench(tmp_path)
    opened = bench.open(log_config(segment_bytes=4096))
    yield opened
    bench.close(opened)


def append(log: PartitionLog, *records: GroupRecord, codec: Codec = Codec.NONE) -> None:
    data = encode_batches(records, codec=codec, timestamp_ms=START_MS, max_bytes=1 << 20, atomic=True)
    log.append_as_leader(memoryview(data), leader_epoch=0, origin=AppendOrigin.COORDINATOR)


def offset(group: str, at: int | None, partition: int = 0) -> GroupRecord:
    return GroupRecord(OffsetCommitKey(group, "t", partition), None if at is None else OffsetCommitValue(at))


def load(log: PartitionLog, buffer_bytes: int = 1 << 20, own: tuple[str, ...] = ()) -> LoadedPartition:
    return load_offsets_partition(log, lambda group: not own or group in own, buffer_bytes)


def committed(loaded: LoadedPartition) -> dict[str, dict[tuple[str, int], int]]:
    return {group: {key: value.offset for key, value in each.items()} for group, each in loaded.offsets.items()}


@pytest.mark.parametrize("buffer_bytes", [1, 300, 1 << 20])
def test_the_newest_value_of_each_key_counts_across_segments_and_codecs(log: PartitionLog, buffer_bytes: int) -> None:
    for number in range(200):
        append(log, offset(f"g{number % 3}", number), offset("both", number, 1), codec=CODECS[number % 5])
    append(log, offset("g0", None))
    append(log, GroupRecord(GroupMetadataKey("g1"), GroupMetadataValue("consumer", 1, None, None)))
    assert log.segment_count > 2
    loaded = load(log, buffer_bytes)
    assert committed(loaded) == {"g1": {("t", 0): 199}, "g2": {("t", 0): 197}, "both": {("t", 1): 199}}
    assert set(loaded.groups) == {"g1"}
    assert (loaded.records, loaded.skipped) == (402, 0)


@pytest.mark.parametrize(("is_commit", "expected"), [(True, 5), (False, 1), (None, 1)])
def test_an_offset_of_a_transaction_counts_once_it_is_committed(
    log: PartitionLog, is_commit: bool | None, expected: int
) -> None:
    append(log, offset("g", 1))
    in_transaction(log, offset("g", 5))
    if is_commit is not None:
        end(log, 7, is_commit=is_commit)
    loaded = load(log)
    assert committed(loaded) == {"g": {("t", 0): expected}}
    assert [(each.key.group, each.pending.value.offset) for each in loaded.pending] == (
        [("g", 5)] if is_commit is None else []
    )


def test_pending_offsets_of_other_partitions_groups_are_skipped(log: PartitionLog) -> None:
    in_transaction(log, offset("other", 5))
    loaded = load(log, own=("mine",))
    assert (loaded.pending, loaded.skipped) == ([], 1)


def test_a_pending_offset_that_does_not_decode_stops_the_load(log: PartitionLog) -> None:
    data = batch(
        (START_MS, OffsetCommitKey("g", "t", 0).to_bytes(), b"\x00\x09"),
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    log.append_as_leader(data, leader_epoch=0, origin=AppendOrigin.COORDINATOR)
    with pytest.raises(DecodeError, match="record at offset 0"):
        load(log)


def test_a_record_after_a_transactions_offset_is_newer_than_its_commit(log: PartitionLog) -> None:
    in_transaction(log, offset("g", 5))
    append(log, offset("g", 9))
    end(log, 7, is_commit=True)
    assert committed(load(log)) == {"g": {("t", 0): 9}}


def test_records_of_other_partitions_and_unknown_kinds_are_counted_and_skipped(log: PartitionLog) -> None:
    append(log, offset("mine", 1), offset("other", 2))
    log.append_as_leader(batch((START_MS, b"\x00\x0b\x00\x01g", b"\x00\x00what")), leader_epoch=0)
    loaded = load(log, own=("mine",))
    assert committed(loaded) == {"mine": {("t", 0): 1}}
    assert loaded.skipped == 2


@pytest.mark.parametrize("key", [b"\x00\x01\x00\x05g", OffsetCommitKey("g", "t", 0).to_bytes()])
def test_a_record_that_does_not_decode_stops_the_load(log: PartitionLog, key: bytes) -> None:
    append(log, offset("g", 1))
    log.append_as_leader(batch((START_MS, key, b"\x00\x09")), leader_epoch=0)
    with pytest.raises(DecodeError, match="record at offset 1"):
        load(log)


def in_transaction(log: PartitionLog, record: GroupRecord) -> None:
    assert isinstance(record.value, OffsetCommitValue)
    data = batch(
        (START_MS, record.key.to_bytes(), record.value.to_bytes()),
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    log.append_as_leader(data, leader_epoch=0, origin=AppendOrigin.COORDINATOR)

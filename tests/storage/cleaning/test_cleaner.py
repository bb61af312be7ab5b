"""One round of the cleaner over one log: retained and dropped records, the files, and failures.

test_cleaner_model.py has random operations; tests/interop compares the files with those of Kafka's own cleaner.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable

import pytest

from barnabas.broker.storage.cleaning.errors import CleaningAborted, CleaningOutOfRoom, UncleanableLogError
from barnabas.broker.storage.cleaning.rewriting.cleaner import Cleaner
from barnabas.broker.storage.files import failpoints
from barnabas.broker.storage.log.append import AppendOrigin
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.state import LogState
from barnabas.protocol.compression import Codec
from barnabas.protocol.records import RecordBatch, check_records
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.kafka.bodies import bodies
from tests.support.storage.bench import START_MS, TP, LogBench, append, batch, log_config, read_batches, read_records
from tests.support.storage.cleaning import (
    CountingThrottler,
    clean,
    keys_and_offsets,
    last_of_each_key,
    never_done,
    new_cleaner,
)
from tests.support.storage.transactions import end, send

HOUR_MS = 3_600_000
COMPACT = log_config(
    compact=True, delete=False, segment_bytes=1 << 20, index_interval_bytes=100, delete_retention_ms=HOUR_MS
)


def fill(log: PartitionLog, *keys: str, codec: int = 0, size: int = 20, **header: int) -> None:
    """Append a batch: `k` is a record of key k, `k-` its tombstone."""
    records = (
        (START_MS + log.log_end_offset + index, key[0].encode(), None if key[1:] else b"v" * size)
        for index, key in enumerate(keys)
    )
    append(log, batch(*records, codec=codec, **header))


def filled(bench: LogBench, *segments: str, codec: int = 0) -> PartitionLog:
    """Create a log: per text a sealed segment with a batch of one-letter keys, then an active one with the key z."""
    log = bench.open(COMPACT)
    for keys in segments:
        fill(log, *keys, codec=codec)
        log.roll()
    fill(log, "z")
    return log


@pytest.mark.parametrize("codec", list(Codec))
def test_the_last_record_of_every_key_stays_at_its_offset(bench: LogBench, codec: Codec) -> None:
    log = filled(bench, "aba", "cb", "ad", codec=codec)
    before = read_records(log)

    result = clean(log)

    assert read_records(log) == last_of_each_key(before)
    assert result.next_dirty_offset == 7
    assert [segment.base_offset for segment in log.segments] == [0, 7]
    assert (result.stats.messages_read, result.stats.messages_written) == (7, 4)
    assert {found.codec for found in read_batches(log) if found.base_offset < 7} == {codec}


def test_a_rewritten_batch_can_be_read_by_kafkas_decoders_even_if_the_old_one_could_not(bench: LogBench) -> None:
    log = bench.open(COMPACT)
    linked = RecordBatch(next(body for body in bodies() if body.name == "lz4: linked blocks").batch())
    log.append_as_leader(memoryview(bytearray(linked.bytes)), leader_epoch=0, origin=AppendOrigin.COORDINATOR)
    append(log, batch((START_MS, b"k0", b"new")))
    log.roll()
    fill(log, "z")
    before = read_records(log)

    clean(log)

    assert read_records(log) == [record for record in before if record.offset]
    rewritten = next(read_batches(log))
    assert rewritten.codec is Codec.LZ4
    check_records(rewritten, contiguous=False, as_kafka=True)


def test_only_the_dirty_part_fills_the_map_and_later_records_stay(bench: LogBench) -> None:
    log = filled(bench, "ab", "ab", "ab", "ab")

    result = clean(log, 2, end=6)

    assert keys_and_offsets(log) == [(b"a", 4), (b"b", 5), (b"a", 6), (b"b", 7), (b"z", 8)]
    assert result.stats.map_messages_read == 4


def test_a_cleaned_segment_survives_a_restart_with_its_indexes_and_its_age(bench: LogBench) -> None:
    log = filled(bench, *(["abcdefgh"] * 20))
    os.utime(log.segments[-2].log.path, ns=(10**18, 10**18))
    clean(log)
    expected = read_records(log)
    entries = (bench.offset_entries(), bench.time_entries())
    bench.close(log)

    log = bench.open(COMPACT, clean=False)

    assert read_records(log) == expected
    assert (bench.offset_entries(), bench.time_entries()) == entries
    assert log.segments[0].last_modified_ms() == 10**12


def test_segments_are_merged_up_to_the_segment_size(bench: LogBench) -> None:
    log = filled(bench, "ab", "cd", "ef", "gh")
    size = log.segments[0].size_bytes
    log.update_config(log_config(compact=True, delete=False, segment_bytes=2 * size, delete_retention_ms=HOUR_MS))

    clean(log)

    assert [segment.base_offset for segment in log.segments] == [0, 4, 8]
    assert bench.names().count("00000000000000000002.log.deleted") == 1
    assert "00000000000000000002.snapshot" not in bench.names()
    assert "00000000000000000004.snapshot" in bench.names()


def test_a_tombstone_is_dropped_in_the_first_round_after_its_horizon(bench: LogBench) -> None:
    log = bench.open(COMPACT)
    fill(log, "a", "b")
    fill(log, "a-")
    log.roll()
    fill(log, "z")
    now_ms = START_MS + HOUR_MS

    clean(log, now_ms=now_ms)
    assert keys_and_offsets(log) == [(b"b", 1), (b"a", 2), (b"z", 3)]
    assert [found.base_timestamp for found in read_batches(log) if found.has_delete_horizon] == [now_ms + HOUR_MS]
    clean(log, now_ms=now_ms + HOUR_MS - 1)
    assert (b"a", 2) in keys_and_offsets(log)
    clean(log, now_ms=now_ms + HOUR_MS)

    assert keys_and_offsets(log) == [(b"b", 1), (b"z", 3)]


def test_a_full_map_ends_the_round_and_the_next_one_continues_there(bench: LogBench) -> None:
    log = filled(bench, "abcdef", "abcdef")
    cleaner = new_cleaner(map_bytes=24 * 5, load_factor=0.9)
    first_dirty, offsets = 0, []

    while first_dirty < 12:
        first_dirty = clean(log, first_dirty, cleaner=cleaner).next_dirty_offset
        offsets.append(first_dirty)

    assert offsets == [4, 8, 12]
    assert [offset for _, offset in keys_and_offsets(log)] == [6, 7, 8, 9, 10, 11, 12]


def test_a_map_without_space_for_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match=r"raise log.cleaner.dedupe.buffer.size"):
        new_cleaner(map_bytes=24)


def test_keys_with_a_common_hash_prefix_are_distinguished(bench: LogBench) -> None:
    log = filled(bench, "abcdefgh", "abcdefgh")

    clean(log, cleaner=new_cleaner(hash_mask=(2**64 - 1) << 64))

    assert [offset for _, offset in keys_and_offsets(log)] == [*range(8, 17)]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_a_batch_larger_than_the_buffers_is_cleaned_and_the_buffers_shrink_again(bench: LogBench, codec: Codec) -> None:
    log = bench.open(COMPACT)
    noise = os.urandom(60_000)
    for _ in range(2):
        append(log, batch((START_MS, b"a", noise), (START_MS, b"b", b""), codec=codec))
        log.roll()
    fill(log, "z")
    cleaner = new_cleaner(io_buffer_bytes=4096)

    clean(log, cleaner=cleaner)

    assert keys_and_offsets(log) == [(b"a", 2), (b"b", 3), (b"z", 4)]
    assert read_records(log)[0].value == noise
    assert len(cleaner._buffers.read) == 0


def test_records_without_a_key_are_dropped_and_counted(bench: LogBench) -> None:
    log = bench.open(log_config(compact=False))
    append(log, batch((START_MS, b"a", b"1"), (START_MS, None, b"2")))
    log.roll()
    log.update_config(COMPACT)
    fill(log, "z")

    result = clean(log)

    assert keys_and_offsets(log) == [(b"a", 0), (b"z", 2)]
    assert result.stats.invalid_messages_read == 1


def test_the_last_batch_of_an_active_producer_keeps_its_sequence(bench: LogBench) -> None:
    log = bench.open(COMPACT)
    fill(log, "a", "b", producer_id=5, producer_epoch=0, base_sequence=0)
    fill(log, "a", producer_id=5, producer_epoch=0, base_sequence=2)
    fill(log, "a", "b")
    log.roll()
    fill(log, "z")

    clean(log)
    bench.close(log)
    for path in bench.directory.glob("*.snapshot"):
        path.unlink()
    log = bench.open(COMPACT, clean=False)

    assert keys_and_offsets(log) == [(b"a", 3), (b"b", 4), (b"z", 5)]
    assert [(found.last_offset, found.record_count) for found in read_batches(log)] == [(2, 0), (4, 2), (5, 1)]
    repeated = batch((START_MS, b"a", b"v"), producer_id=5, producer_epoch=0, base_sequence=2)
    assert log.append_as_leader(repeated, leader_epoch=0).is_duplicate


def test_aborted_data_is_dropped_immediately_and_its_marker_in_the_third_round(bench: LogBench) -> None:
    log = bench.open(COMPACT)
    send(log, 7, 0, b"aborted")
    end(log, 7, is_commit=False)
    send(log, 7, 1, b"committed")
    end(log, 7, is_commit=True)
    log.roll()
    fill(log, "z")
    now_ms = START_MS + HOUR_MS
    rounds = []

    for hours in (0, 1, 2):
        clean(log, now_ms=now_ms + hours * HOUR_MS)
        batches = [(found.base_offset, found.has_delete_horizon) for found in read_batches(log)]
        rounds.append((batches, bench.path(0, ".txnindex").exists()))

    assert rounds == [
        ([(1, False), (2, False), (3, False), (4, False)], True),
        ([(1, True), (2, False), (3, False), (4, False)], False),
        ([(2, False), (3, False), (4, False)], False),
    ]


def test_slices_read_before_the_swap_stay_readable(bench: LogBench) -> None:
    log = filled(bench, "ab", "ab")
    part = log.read(0, 1 << 20, upper_bound=log.high_watermark, at_least_one_batch=True)
    assert part is not None
    content = part.read()

    clean(log)
    bench.scheduler.advance(1 << 40)

    assert part.read() == content
    assert not [name for name in bench.names() if name.endswith(".deleted")]


def test_a_reader_during_the_swap_reads_old_or_new_segments(bench: LogBench) -> None:
    """Files are renamed during reads: a reader that misses a file waits for the swap to end."""
    log = filled(bench, "ab", "ab")
    bench.close(log)
    log = bench.open(COMPACT)
    found: list[list[tuple[bytes | None, int]]] = []
    readers: list[threading.Thread] = []

    def read(_: str) -> None:
        for segment in log.segments[:-1]:
            segment.log.evict()
        reader = threading.Thread(target=lambda: found.append(keys_and_offsets(log)))
        reader.start()
        readers.append(reader)

    with failpoints.armed("segment.renamed", read):
        clean(log)
    for reader in readers:
        reader.join(30)

    after = [(b"a", 2), (b"b", 3), (b"z", 4)]
    before = [(b"a", 0), (b"b", 1), *after]
    assert len(found) == len(readers) > 8
    assert all(each in (before, after, before[:2] + after) for each in found)


@pytest.mark.parametrize("pass_number", [1, 2])
def test_an_aborted_round_leaves_the_log_unchanged(bench: LogBench, pass_number: int) -> None:
    log = filled(bench, "ab", "ab")
    before, calls = bench.names(), 0

    def check_done(topic_partition: TopicPartition) -> None:
        nonlocal calls
        calls += 1
        assert topic_partition == TP
        if calls == (1 if pass_number == 1 else 5):
            raise CleaningAborted

    with pytest.raises(CleaningAborted):
        clean(log, cleaner=new_cleaner(check_done=check_done))

    assert bench.names() == before
    assert len(read_records(log)) == 5


def test_segments_removed_during_a_round_end_it(bench: LogBench) -> None:
    log = filled(bench, "ab", "ab")

    def drop(_: str) -> None:
        log.delete_records(2)
        log.delete_old_segments()

    with failpoints.armed("cleaner.sealed", drop), pytest.raises(CleaningAborted, match="segments went"):
        clean(log)

    assert keys_and_offsets(log) == [(b"a", 2), (b"b", 3), (b"z", 4)]
    assert not [name for name in bench.names() if name.endswith((".cleaned", ".swap"))]


@pytest.mark.parametrize("point", ["cleaner.created", "cleaner.write", "cleaner.written", "segment.renamed"])
def test_a_full_disk_ends_the_round_and_nothing_is_lost(bench: LogBench, point: str) -> None:
    log = filled(bench, "ab", "ab")
    before, records = bench.names(), read_records(log)

    with failpoints.armed(point, failpoints.no_space), pytest.raises(CleaningOutOfRoom, match="No space left"):
        clean(log)

    assert bench.names() == before
    assert read_records(log) == records
    assert log.state is LogState.ONLINE
    clean(log)
    assert read_records(log) == last_of_each_key(records)


@pytest.mark.parametrize("point", ["cleaner.write", "cleaner.written", "replace.staged", "replace.mapped"])
def test_a_failed_disk_takes_the_directory_offline(bench: LogBench, point: str) -> None:
    log = filled(bench, "ab", "ab")
    records = read_records(log)

    with failpoints.armed(point, failpoints.io_error), pytest.raises(OSError, match="Input/output") as raised:
        clean(log)

    assert raised.value.errno == errno.EIO
    assert bench.failed_directories == [bench.directory.parent]
    assert log.state is LogState.OFFLINE
    log.go_offline()
    assert read_records(bench.open(COMPACT, clean=False)) in (records, last_of_each_key(records))


def _flip(data: bytearray) -> None:
    data[70] ^= 1


def _cut(data: bytearray) -> None:
    data[8:12] = (10_000).to_bytes(4, "big")


def _no_magic(data: bytearray) -> None:
    data[16] = 9


@pytest.mark.parametrize("damage", [_flip, _cut, _no_magic])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize("first_dirty", [0, 3])
def test_a_corrupt_batch_makes_the_log_uncleanable_and_is_reported(
    bench: LogBench, damage: Callable[[bytearray], None], codec: Codec, first_dirty: int
) -> None:
    """The first pass finds it in the dirty part, the second pass in the clean part."""
    log = filled(bench, "abc", "abc", codec=codec)
    before = bench.names()
    data = bytearray(bench.log_path().read_bytes())
    damage(data)
    bench.log_path().write_bytes(data)

    with pytest.raises(UncleanableLogError, match="cannot be cleaned") as raised:
        clean(log, first_dirty)

    assert raised.value.path == bench.log_path()
    assert bench.names() == before
    assert log.state is LogState.ONLINE


def test_the_throttler_accounts_for_all_bytes_read_and_written(bench: LogBench) -> None:
    log = filled(bench, "ab", "ab")
    throttler = CountingThrottler()
    cleaner = Cleaner(
        offset_map_bytes=1 << 16, load_factor=0.9, io_buffer_bytes=1 << 16, throttler=throttler, check_done=never_done
    )
    size = sum(segment.size_bytes for segment in log.segments[:-1])

    stats = clean(log, cleaner=cleaner).stats

    assert (stats.map_bytes_read, stats.bytes_read, stats.bytes_written) == (size, size, log.segments[0].size_bytes)
    assert throttler.size_bytes == 2 * size + log.segments[0].size_bytes
    assert stats.map_utilization == 2 / ((1 << 16) // 24)

"""Kafka's cleaner and Barnabas' produce identical files from the same log, settings, rounds and clock.

The clock is the tests' in both, so delete horizons are compared too. For codecs whose compressor differs between
versions, the headers (without size and CRC) and the decompressed records are compared.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.broker.storage.log.append import AppendOrigin
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.config.log_config import LogConfig
from barnabas.protocol.compression import CODECS, Codec
from barnabas.protocol.records import RecordBatch, iter_batches
from barnabas.protocol.records.reader import borrow_payload
from tests.support.kafka.apache_kafka import Kafka
from tests.support.storage.bench import START_MS, LogBench, append, batch, log_config
from tests.support.storage.cleaning import clean, new_cleaner
from tests.support.storage.legacy import message, message_sets
from tests.support.storage.transactions import end

HOUR_MS = 3_600_000
SETTINGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "6000",
    "index.interval.bytes": "200",
    "segment.index.bytes": "4096",
    "delete.retention.ms": str(HOUR_MS),
    "file.delete.delay.ms": "0",
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Kafka:
    scratch = tmp_path_factory.mktemp("kafka")
    return Kafka("4.3.0", scratch / "unused", scratch)


def config() -> LogConfig:
    return log_config(
        compact=True,
        delete=False,
        segment_bytes=6000,
        index_interval_bytes=200,
        segment_index_bytes=4096,
        delete_retention_ms=HOUR_MS,
        file_delete_delay_ms=0,
    )


def random_log(log: PartitionLog, seed: int, codec: int | None = None) -> None:
    """Fill a log with repeated keys, tombstones, and batches of all sizes, with and without producer ids."""
    noise = random.Random(seed)
    sequences = {7: 0, 8: 0, 9: 0}
    for number in range(120):
        count = noise.randint(1, 8)
        records = [
            (
                START_MS + number * 10 + noise.randint(0, 30),
                b"key-%d" % noise.randint(0, 60),
                None if noise.random() < 0.15 else noise.randbytes(noise.randint(0, 60)),
            )
            for _ in range(count)
        ]
        producer = noise.choice([None, 7, 8, 9])
        header = {}
        if producer is not None:
            header = {"producer_id": producer, "producer_epoch": 1, "base_sequence": sequences[producer]}
            sequences[producer] += count
        chosen = noise.choice(CODECS) if codec is None else codec
        append(log, batch(*records, codec=chosen, **header), leader_epoch=number // 50)


def transactional_log(log: PartitionLog) -> None:
    """Fill a log with overlapping transactions of three producers, committed and aborted, and plain data in between."""
    noise = random.Random(5)
    sequences = {1: 0, 2: 0, 3: 0}
    open_ones: set[int] = set()
    for number in range(150):
        producer = noise.choice([1, 2, 3])
        if producer in open_ones and noise.random() < 0.4:
            end(log, producer, is_commit=noise.random() < 0.5)
            open_ones.discard(producer)
            continue
        count = noise.randint(1, 4)
        records = [
            (START_MS + number, b"key-%d" % noise.randint(0, 25), None if noise.random() < 0.1 else noise.randbytes(30))
            for _ in range(count)
        ]
        data = batch(
            *records,
            codec=noise.choice([0, 0, 1]),
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequences[producer],
            is_transactional=True,
        )
        log.append_as_leader(data, leader_epoch=0, origin=AppendOrigin.COORDINATOR)
        sequences[producer] += count
        open_ones.add(producer)
    for producer in sorted(open_ones):
        end(log, producer, is_commit=True)
    for number in range(30):
        append(log, batch((START_MS + 1000 + number, b"key-%d" % number, b"v" * 200)))


def clean_both(
    kafka: Kafka,
    tmp_path: Path,
    fill: Callable[[PartitionLog], None],
    rounds: list[int],
    *,
    map_bytes: int = 1 << 20,
    io_bytes: int = 1 << 16,
) -> tuple[Path, Path]:
    """Run the same rounds on both directories, compare their statistics, close cleanly, and return the directories."""
    ours = LogBench(tmp_path / "ours")
    log = ours.open(config())
    fill(log)
    ours.close(log)
    theirs = tmp_path / "theirs" / ours.directory.name
    shutil.copytree(ours.directory, theirs)
    said = kafka.java_program(
        "CleanLog",
        str(theirs),
        "0",
        str(map_bytes),
        "0.9",
        str(io_bytes),
        ",".join(map(str, rounds)),
        *(f"{name}={value}" for name, value in SETTINGS.items()),
    )
    log = ours.open(config())
    cleaner = new_cleaner(map_bytes=map_bytes, io_buffer_bytes=io_bytes)
    first_dirty, lines = 0, []
    for now_ms in rounds:
        if first_dirty == log.segments[-1].base_offset:
            first_dirty = 0  # all clean: begin at 0 again, as if there were new data
        result = clean(log, first_dirty, now_ms=now_ms, cleaner=cleaner)
        first_dirty = result.next_dirty_offset
        stats = result.stats
        numbers = (first_dirty, stats.map_messages_read, stats.messages_read, stats.messages_written)
        lines.append(" ".join(map(str, (*numbers, stats.invalid_messages_read))))
    ours.scheduler.run_due()
    ours.close(log)
    assert lines == said.splitlines()
    return ours.directory, theirs


def names(directory: Path) -> list[str]:
    suffixes = (".log", ".index", ".timeindex", ".txnindex")
    return sorted(path.name for path in directory.iterdir() if path.suffix in suffixes)


def assert_same_files(ours: Path, theirs: Path, *, by_content: bool = False) -> None:
    """Assert equal files.

    With `by_content`, compressed bytes may differ: the contents of batches are compared, and positions are not.
    """
    assert names(ours) == names(theirs)
    for name in names(ours):
        left, right = (ours / name).read_bytes(), (theirs / name).read_bytes()
        if not by_content:
            assert left == right, name
        elif name.endswith(".log"):
            assert [described(found) for found in iter_batches(left)] == [described(f) for f in iter_batches(right)]
        elif name.endswith(".txnindex"):
            assert left == right, name


def described(found: RecordBatch) -> tuple[object, ...]:
    found.ensure_valid()
    return (
        found.base_offset,
        found.last_offset,
        found.partition_leader_epoch,
        found.attributes,
        found.base_timestamp,
        found.max_timestamp,
        found.producer_id,
        found.producer_epoch,
        found.base_sequence,
        found.record_count,
        bytes(borrow_payload(found, 1 << 24)),
    )


ROUNDS = [START_MS + HOUR_MS, START_MS + HOUR_MS + 5, START_MS + 3 * HOUR_MS]
"""Rounds that remove records, run again without changes, and drop the tombstones."""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_uncompressed_segments_are_kafkas_byte_for_byte(kafka: Kafka, tmp_path: Path, seed: int) -> None:
    ours, theirs = clean_both(kafka, tmp_path, lambda log: random_log(log, seed, 0), ROUNDS)

    assert_same_files(ours, theirs)


def test_kafkas_dump_reads_compacted_segments_and_their_indexes(kafka: Kafka, tmp_path: Path) -> None:
    bench = LogBench(tmp_path)
    log = bench.open(config())
    random_log(log, 1)
    log.roll()
    clean(log, now_ms=ROUNDS[0])
    bench.close(log)
    files = [
        bench.directory / name for name in names(bench.directory) if not name.startswith(f"{log.log_end_offset:020d}")
    ]
    batches = [found for path in files if path.suffix == ".log" for found in iter_batches(path.read_bytes())]

    dump = kafka.dump_log_segments("--deep-iteration", "--index-sanity-check", "--files", ",".join(map(str, files)))

    assert dump.count("isvalid: true") == len(batches)
    # Segments without remaining records have empty indexes.
    assert dump.count("passed sanity check") + dump.count(".index is empty") == sum(
        path.suffix != ".log" for path in files
    )
    assert dump.count("| offset: ") == sum(found.record_count for found in batches)


def test_under_log_append_time_they_are_too(kafka: Kafka, tmp_path: Path) -> None:
    def fill(log: PartitionLog) -> None:
        log.update_config(replace(config(), timestamp_type="LogAppendTime"))
        random_log(log, 9, 0)

    ours, theirs = clean_both(kafka, tmp_path, fill, ROUNDS)

    assert all(found.timestamp_type for found in iter_batches((ours / names(ours)[1]).read_bytes()))
    assert_same_files(ours, theirs)


def test_messages_of_the_old_formats_become_the_batches_that_kafka_makes_of_them(kafka: Kafka, tmp_path: Path) -> None:
    """Formats 0 and 1 with each codec, then single messages: repeated keys, tombstones, one message without a key."""

    def fill(log: PartitionLog) -> None:
        for number in range(40):
            append(log, batch((START_MS + number, b"key-%d" % (number % 9), b"v" * 150)))

    bench = LogBench(tmp_path / "ours")
    sets = message_sets().values()
    offset = max(record.offset for each in sets for record in each.records) + 1
    singles = [
        message(offset, b"first", key=b"key-3", timestamp=START_MS),
        message(offset + 1, b"second", key=b"key-old", timestamp=START_MS + 1),
        message(offset + 2, None, key=b"key-old", timestamp=START_MS + 2),
        message(offset + 3, b"no key", timestamp=START_MS + 3),
        message(offset + 4, b"old", key=b"key-0", magic=0),
        message(offset + 5, b"stays", key=b"key-stays", magic=0),
    ]
    bench.log_path().write_bytes(b"".join([*(each.data for each in sets), *singles]))

    ours, theirs = clean_both(kafka, tmp_path, fill, ROUNDS)

    assert_same_files(ours, theirs, by_content=True)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_compressed_segments_hold_the_batches_that_kafkas_hold(kafka: Kafka, tmp_path: Path, codec: Codec) -> None:
    ours, theirs = clean_both(kafka, tmp_path, lambda log: random_log(log, 4, codec), ROUNDS)

    assert_same_files(ours, theirs, by_content=True)


def test_transactions_and_their_markers_go_as_kafkas_do(kafka: Kafka, tmp_path: Path) -> None:
    rounds = [START_MS + hours * HOUR_MS for hours in (1, 2, 4, 6, 8)]

    ours, theirs = clean_both(kafka, tmp_path, transactional_log, rounds)

    assert_same_files(ours, theirs, by_content=True)


@pytest.mark.parametrize("keys", [5, 17, 40])
def test_a_full_map_ends_the_round_where_kafkas_does(kafka: Kafka, tmp_path: Path, keys: int) -> None:
    """The checkpoint after each round is compared, with maps so small that one segment fills several."""
    map_bytes = (keys * 10 // 9 + 1) * 24
    rounds = [START_MS + HOUR_MS + number for number in range(30)]

    ours, theirs = clean_both(kafka, tmp_path, lambda log: random_log(log, 6, 0), rounds, map_bytes=map_bytes)

    assert_same_files(ours, theirs)

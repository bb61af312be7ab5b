"""Record batches of all codecs, written and read by Barnabas and by the Java classes of Kafka's broker and clients."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from barnabas.protocol.compression import CODECS, Codec
from barnabas.protocol.records import (
    Record,
    RecordBatch,
    RecordBatchBuilder,
    TimestampType,
    check_records,
    iter_batches,
    murmur2,
    read_records,
    rebuild_batch,
)
from tests.support.kafka.apache_kafka import Kafka
from tests.support.storage.records import TIMESTAMP, build

VERSION = "4.3.0"
LEVELS: dict[Codec, tuple[int | None, ...]] = {
    Codec.NONE: (None,),
    Codec.GZIP: (None, 1, 9),
    Codec.SNAPPY: (None,),
    Codec.LZ4: (None, 1, 17),
    Codec.ZSTD: (None, -5, 1, 19),
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Kafka:
    scratch = tmp_path_factory.mktemp("kafka")
    return Kafka(VERSION, scratch / "unused", scratch)


def mixed_records(count: int) -> list[Record]:
    """Build records of several lz4 and snappy blocks: null or not, compressible or not, with and without headers."""
    noise = random.Random(3)
    return [
        Record(
            1000 + i,
            TIMESTAMP - i % 5,
            None if i % 3 == 1 else b"key-%d" % i,
            None if i % 4 == 2 else noise.randbytes(60) if i % 2 else b"words, words, words" * (i % 7),
            (("h", b"x%d" % i), ("ü", None)) if i % 3 == 0 else (),
        )
        for i in range(count)
    ]


def as_java_prints(batch: RecordBatch) -> list[str]:
    def hexed(value: bytes | None) -> str:
        return "-" if value is None else value.hex()

    fields = (
        "batch",
        batch.codec.config_name,
        "LogAppendTime" if batch.timestamp_type else "CreateTime",
        batch.base_offset,
        batch.last_offset,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.partition_leader_epoch,
        str(batch.is_transactional).lower(),
        str(batch.is_control).lower(),
        batch.record_count,
        batch.record_count,
    )
    lines = ["\t".join(map(str, fields))]
    for record in read_records(batch):
        headers = "".join(f"{key}={hexed(value)} " for key, value in record.headers)
        lines.append(f"{record.offset}\t{record.timestamp}\t{hexed(record.key)}\t{hexed(record.value)}\t{headers}")
    return lines


def test_java_reads_our_batches_of_every_codec_and_level(kafka: Kafka, tmp_path: Path) -> None:
    log = bytearray()
    for codec in CODECS:
        for level in LEVELS[codec]:
            for count in (1, 4000):
                builder = RecordBatchBuilder(
                    codec,
                    max_bytes=1 << 30,
                    base_offset=1000,
                    partition_leader_epoch=4,
                    producer_id=77,
                    producer_epoch=3,
                    base_sequence=11,
                    is_transactional=True,
                    level=level,
                )
                for record in mixed_records(count):
                    builder.append(record.timestamp, record.key, record.value, record.headers)
                log += builder.build()
    (tmp_path / "ours").write_bytes(log)
    printed = kafka.java_program("RecordBatches", "read", str(tmp_path / "ours")).splitlines()
    assert printed == [line for batch in iter_batches(log) for line in as_java_prints(batch)]


def test_java_reads_what_a_leader_patched_or_compressed_anew(kafka: Kafka, tmp_path: Path) -> None:
    gaps = [record for record in mixed_records(50) if record.offset % 7]
    log = bytearray()
    for codec in CODECS:
        for patched in (
            build(gaps, base_offset=1000),
            rebuild_batch(RecordBatch(build(gaps, base_offset=1000)), codec),
        ):
            batch = RecordBatch(patched)
            batch.stamp_offset_and_epoch(2**40, 9)
            batch.stamp_timestamps(TimestampType.LOG_APPEND_TIME, TIMESTAMP + 5)
            log += patched
    (tmp_path / "ours").write_bytes(log)
    printed = kafka.java_program("RecordBatches", "read", str(tmp_path / "ours")).splitlines()
    assert printed == [line for batch in iter_batches(log) for line in as_java_prints(batch)]


@pytest.mark.parametrize("count", [1, 5000])
def test_we_read_what_java_writes_and_write_it_alike(kafka: Kafka, tmp_path: Path, count: int) -> None:
    kafka.java_program("RecordBatches", "write", str(tmp_path), str(count))
    expected = [
        Record(
            100 + i,
            TIMESTAMP + i,
            None if i % 3 == 1 else b"key-%d" % i,
            None if i % 3 == 2 else b"value-" + b"abc" * (i % 20),
            (("h", b"x%d" % i), ("ü", None)) if i % 3 == 0 else (),
        )
        for i in range(count)
    ]
    for codec in CODECS:
        written = (tmp_path / codec.config_name).read_bytes()
        batch = RecordBatch(written)
        batch.ensure_valid()
        assert batch.codec is codec
        assert check_records(batch).max_timestamp == TIMESTAMP + count - 1
        assert read_records(batch) == expected
        # libraries for gzip and zstd differ in their output, not in the format
        if codec in (Codec.NONE, Codec.SNAPPY, Codec.LZ4):
            ours = build(
                expected,
                codec,
                base_offset=100,
                partition_leader_epoch=5,
                producer_id=7,
                producer_epoch=2,
                base_sequence=9,
            )
            assert ours == written


def test_java_hashes_keys_alike(kafka: Kafka) -> None:
    noise = random.Random(5)
    keys = [noise.randbytes(size) for size in range(1, 40)]
    printed = kafka.java_program("RecordBatches", "murmur2", *(key.hex() for key in keys)).split()
    assert [int(line) for line in printed] == [murmur2(key) for key in keys]

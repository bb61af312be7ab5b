"""The statistics of the job stats on DataFrames, and the job on a data directory."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.broker.storage.files.checkpoint_file import CLEANER_CHECKPOINT, OffsetCheckpointFile
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.jobs.record_source import RecordSource
from barnabas.pipeline.jobs.snapshot import SnapshotOptions
from barnabas.pipeline.jobs.snapshot import run as run_snapshot
from barnabas.pipeline.jobs.stats import (
    age_histogram,
    batch_histogram,
    dirty_ratios,
    key_histogram,
    key_usage,
    partition_usage,
    size_histogram,
    time_usage,
    top_keys,
)
from barnabas.pipeline.jobs.stats_report import StatsOptions, run
from barnabas.pipeline.segments.batch_facts import BATCH_SCHEMA
from barnabas.pipeline.segments.facts import SEGMENT_SCHEMA
from barnabas.pipeline.segments.log_files import NoLogsError, find_logs
from barnabas.protocol.compression import Codec
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.spark.frames import Stored, records_frame
from tests.support.storage.bench import START_MS, LogBench, append, batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAY_MS = 24 * 3_600_000


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


def test_usage_counts_records_bytes_and_what_compaction_would_drop(spark: SparkSession) -> None:
    usage = key_usage(
        records_frame(
            spark,
            [
                Stored(0, b"a", b"12345"),
                Stored(1, b"a", b"12", START_MS + 5),
                Stored(2, b"b", None),
                Stored(3, None, b"123456789", START_MS - 5),
                Stored(9, b"a", b"1", partition=1),
            ],
        )
    ).cache()

    partitions = {row["partition"]: row for row in rows(partition_usage(usage))}
    top = rows(top_keys(usage, 1))
    histogram = [(row["class"], row["keys"], row["records"]) for row in rows(key_histogram(usage))]

    first = partitions[0]
    assert (first["records"], first["keys"], first["keyless"], first["tombstones"]) == (4, 2, 1, 1)
    assert (first["bytes"], first["superseded_records"], first["superseded_bytes"]) == (6 + 3 + 1 + 9, 1, 6)
    assert (first["first_offset"], first["last_offset"]) == (0, 3)
    assert first["last_timestamp"] > first["first_timestamp"]
    assert (partitions[1]["records"], partitions[1]["superseded_records"]) == (1, 0)
    assert [(bytes(row["key"]), row["records"], row["bytes"]) for row in top] == [(b"a", 3, 11)]
    assert top[0]["share"] == pytest.approx(11 / 21)
    assert histogram == [(1, 1, 1), (2, 1, 3)]


def test_times_and_sizes_fall_into_their_buckets_and_classes(spark: SparkSession) -> None:
    times = time_usage(
        records_frame(
            spark,
            [
                Stored(0, b"", b"", 10 * DAY_MS),
                Stored(1, b"k", None, 11 * DAY_MS - 1),
                Stored(2, b"k", bytes(6), 11 * DAY_MS),
                Stored(3, b"k", bytes(7), 11 * DAY_MS + 7),
                Stored(4, b"k", bytes(7), -1),
            ],
        ),
        DAY_MS // 1000,
    ).cache()

    ages = [(row["bucket"], row["records"], row["bytes"]) for row in rows(age_histogram(times))]
    sizes = [(row["class"], row["records"]) for row in rows(size_histogram(times))]

    def day(number: int) -> datetime:
        return datetime.fromtimestamp(number * DAY_MS / 1000, UTC).replace(tzinfo=None)

    assert [(bucket.astimezone(UTC).replace(tzinfo=None), *counts) for bucket, *counts in ages] == [
        (day(-1), 1, 8),
        (day(10), 2, 1),
        (day(11), 2, 15),
    ]
    assert sizes == [(0, 1), (1, 1), (3, 1), (4, 2)]


def test_batches_are_counted_by_codec_and_markers_are_left_out(spark: SparkSession) -> None:
    def fact(size: int, codec: str | None, records: int = 2, control: bool = False) -> tuple[Any, ...]:
        return ("orders", 0, 0, "/p", 0, 0, 1, records, size, -1, codec, control)

    batches = spark.createDataFrame(
        [fact(100, "none"), fact(127, "none"), fact(128, "lz4"), fact(78, "none", control=True), fact(64, None, -1)],
        BATCH_SCHEMA,
    )

    found = [(row["codec"], row["class"], row["batches"], row["records"]) for row in rows(batch_histogram(batches))]

    assert found == [("lz4", 8, 1, 2), ("none", 7, 2, 4), ("unknown", 7, 1, 0)]


def test_the_dirty_ratio_is_of_sealed_segments_and_one_half_cleaned_counts_on_both_sides(spark: SparkSession) -> None:
    def fact(base: int, size: int, clean: int | None, topic: str = "t", is_active: bool = False) -> tuple[Any, ...]:
        return ("/d", "/d/t-0", topic, 0, base, size, 0, is_active, clean)

    segments = spark.createDataFrame(
        [
            *(fact(base, 100, 15) for base in (0, 10, 20)),
            fact(30, 900, 15, is_active=True),
            fact(0, 50, None, "new"),
            fact(5, 70, None, "new", True),
            fact(0, 70, None, "one", True),
        ],
        SEGMENT_SCHEMA,
    )

    found = {row["topic"]: row for row in rows(dirty_ratios(segments))}

    assert (found["t"]["clean_bytes"], found["t"]["dirty_bytes"], found["t"]["dirty_ratio"]) == (200, 200, 0.5)
    assert (found["new"]["dirty_ratio"], found["one"]["dirty_ratio"]) == (1.0, None)
    assert (found["t"]["segments"], found["t"]["bytes"]) == (4, 1200)


def test_the_jobs_read_a_data_directory(spark: SparkSession, tmp_path: Path) -> None:
    log_dir = tmp_path / "data"
    bench = LogBench(log_dir)
    log = bench.open()
    for segment in range(2):
        for number in range(3):
            append(
                log,
                batch(*((START_MS + n, b"k%d" % n, b"%d.%d" % (segment, number)) for n in range(10)), codec=Codec.LZ4),
            )
        log.roll()
    bench.close(log)
    OffsetCheckpointFile(log_dir / CLEANER_CHECKPOINT).write({TopicPartition("orders", 0): 30})
    source = RecordSource(log_dirs=(log_dir,))

    report = run(spark, StatsOptions(source, top=3))
    written = run_snapshot(spark, SnapshotOptions(source, str(tmp_path / "snapshot")))
    latest = spark.read.parquet(str(tmp_path / "snapshot")).collect()

    assert report.summary().records == 60
    assert report.summary().details["superseded_records"] == 50
    assert [row["key"] for row in report.top_keys] == ["k0", "k1", "k2"]
    assert [(row["codec"], row["batches"]) for row in report.batches] == [("lz4", 6)]
    assert [row["dirty_ratio"] for row in report.dirty] == [pytest.approx(0.5, abs=0.05)]
    assert json.loads(json.dumps(report.as_json()))["partitions"][0]["keys"] == 10
    assert (written.records, written.details["keys"]) == (60, 10)
    assert written.files >= 1
    assert {(bytes(row["key"]), bytes(row["value"]), row["topic"]) for row in latest} == {
        (b"k%d" % n, b"1.2", "orders") for n in range(10)
    }


def test_what_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NoLogsError, match=f"no partition's directory .* in {tmp_path}"):
        find_logs([tmp_path])
    (tmp_path / "orders-0").mkdir()
    with pytest.raises(NoLogsError, match="no log of topic bills, ordres in"):
        find_logs([tmp_path], ["orders", "ordres", "bills"])
    with pytest.raises(FileNotFoundError, match="nowhere"):
        find_logs([tmp_path / "nowhere"])
    with pytest.raises(OptionError, match="give one source"):
        RecordSource(bootstrap="h:1", log_dirs=(tmp_path,), topics=("a",))
    with pytest.raises(OptionError, match="name at least one topic"):
        RecordSource(bootstrap="h:1")

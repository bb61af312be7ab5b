"""Findings, counts and gaps of real files, and an archive compared with a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.broker.storage.inspection.findings import Circumstances
from barnabas.pipeline.jobs.archive_comparison import STATES, compare_offsets, count_states, read_archive
from barnabas.pipeline.jobs.audit import checkpoints_of, gaps, log_counts
from barnabas.pipeline.jobs.audit_report import compare, run
from barnabas.pipeline.jobs.record_source import RecordSource
from barnabas.pipeline.segments.batch_facts import batch_facts
from barnabas.pipeline.segments.log_check import check_logs
from barnabas.pipeline.segments.log_files import find_logs
from barnabas.protocol.compression import Codec
from barnabas.protocol.records import Record
from tests.support.spark.frames import Stored, records_frame
from tests.support.storage.bench import START_MS, LogBench, append, batch, log_config
from tests.support.storage.records import build

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CLEAN = Circumstances(is_clean=True)


def fill(log_dir: Path, segments: int = 3, batches: int = 4) -> LogBench:
    """Write segments with batches of three records each, and close the log cleanly."""
    bench = LogBench(log_dir)
    log = bench.open()
    for segment in range(segments):
        if segment:
            log.roll()
        for number in range(batches):
            codec = Codec.GZIP if number % 2 else Codec.NONE
            append(log, batch(*((START_MS, b"k%d" % n, b"v" * 50) for n in range(3)), codec=codec))
    bench.close(log)
    return bench


def test_a_flipped_bit_is_found_with_file_and_position_and_counts_hold_all_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    bench = fill(tmp_path)
    path = bench.log_path(12)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    bench.path(24, ".timeindex").unlink()
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 37\n")
    logs = find_logs([tmp_path])

    checked = check_logs(spark, logs, {str(tmp_path): CLEAN}).collect()
    (counts,) = log_counts(batch_facts(spark, logs)).collect()

    findings = [row for row in checked if row["message"] is not None]
    extents = [row for row in checked if row["message"] is None]
    assert [(Path(row["path"]).name, row["message"].split(",")[0]) for row in findings] == [
        (path.name, findings[0]["message"].split(",")[0]),
        ("00000000000000000024.timeindex", "the time index is missing"),
    ]
    assert "stored crc" in findings[0]["message"]
    assert 0 < findings[0]["position"] < len(content)
    assert [(row["first_offset"], row["end_offset"]) for row in extents] == [(0, 36)]
    assert [finding.message for finding in checkpoints_of(logs, extents, {str(tmp_path): CLEAN})] == [
        "orders-0 at offset 37, but the log ends at 36"
    ]
    assert counts.asDict() == {
        "topic": "orders",
        "partition": 0,
        "segments": 3,
        "batches": 12,
        "bytes": sum(bench.log_path(base).stat().st_size for base in (0, 12, 24)),
        "records": 36,
        "markers": 0,
        "first_offset": 0,
        "end_offset": 36,
        "gaps": 0,
        "missing_offsets": 0,
        "holes": 0,
    }


def test_a_segment_that_is_gone_is_a_gap_with_its_offsets(spark: SparkSession, tmp_path: Path) -> None:
    bench = fill(tmp_path)
    for suffix in (".log", ".index", ".timeindex"):
        bench.path(12, suffix).unlink()
    batches = batch_facts(spark, find_logs([tmp_path])).cache()

    (counts,) = log_counts(batches).collect()
    (gap,) = gaps(batches).collect()

    assert (counts["gaps"], counts["missing_offsets"], counts["records"]) == (1, 12, 24)
    assert (gap["first_missing"], gap["last_missing"], gap["position"]) == (12, 23, 0)
    assert Path(gap["path"]).name == "00000000000000000024.log"


def states_of(frame: DataFrame) -> dict[tuple[int, int], str]:
    return {(row["partition"], row["offset"]): row["state"] for row in frame.collect()}


def test_an_archive_that_holds_the_log_matches_in_every_record(spark: SparkSession) -> None:
    stored = [Stored(n, b"k", None if n % 3 else b"v%d" % n, headers=(("h", b"%d" % n),)) for n in range(50)]
    log = records_frame(spark, stored)

    (row,) = count_states(compare_offsets(records_frame(spark, stored), log)).collect()

    assert row.asDict() == {"topic": "orders", "partition": 0, **dict.fromkeys(STATES, 0), "matching": 50}


def test_each_kind_of_difference_is_told_by_offset(spark: SparkSession) -> None:
    log = [Stored(n, b"k", b"v%d" % n) for n in (10, 11, 12, 13, 14, 15, 20)]
    archive = [
        Stored(3, b"k", b"v3"),  # before the log's first record
        Stored(10, b"k", b"v10"),
        Stored(12, b"k", b"v12"),
        Stored(12, b"k", b"v12"),
        Stored(13, b"k", b"V13"),
        Stored(14, b"k", b"v14", 1_700_000_000_001),
        Stored(15, b"v15", b"k"),
        Stored(16, b"k", b"v16"),  # the log has no such offset
    ]

    states = states_of(compare_offsets(records_frame(spark, archive), records_frame(spark, log)))

    assert states == {
        (0, 3): "expired",
        (0, 10): "matching",
        (0, 11): "missing",
        (0, 12): "doubled",
        (0, 13): "differing",
        (0, 14): "differing",
        (0, 15): "differing",
        (0, 16): "extra",
        (0, 20): "pending",
    }


def test_null_and_empty_differ_and_headers_count_where_both_sides_have_them(spark: SparkSession) -> None:
    log = records_frame(spark, [Stored(0, None, b"x"), Stored(1, b"k", b"", headers=(("a", b"1"),))])
    archive = records_frame(spark, [Stored(0, b"", b"x"), Stored(1, b"k", b"", headers=(("a", None),))])

    assert states_of(compare_offsets(archive, log)) == {(0, 0): "differing", (0, 1): "differing"}
    assert states_of(compare_offsets(archive.drop("headers"), log)) == {(0, 0): "differing", (0, 1): "matching"}


def test_what_an_archive_could_not_hold_differs_from_the_log(spark: SparkSession, tmp_path: Path) -> None:
    bench = LogBench(tmp_path)
    log = bench.open(log_config(timestamp_after_max_ms=2**63 - 1))
    append(log, batch((START_MS, b"k", b"v")))
    append(log, batch((1_700_000_000_000_000_000, b"k", b"v")))
    append(log, memoryview(build([Record(0, START_MS, b"k", b"v", (("\udcff", b"x"),))])))
    bench.close(log)
    source = RecordSource(log_dirs=(tmp_path,), topics=("orders",))
    undecoded = source.read(spark, undecoded=True)
    archive = undecoded.selectExpr(
        "topic",
        "partition",
        "offset",
        "key",
        "value",
        "timestamp_millis(least(timestamp, 9223372036854775)) as timestamp",
        "transform(headers, h -> named_struct('key', '\ufffd', 'value', h.value)) as headers",
    )

    assert states_of(compare_offsets(archive, undecoded)) == {
        (0, 0): "matching",
        (0, 1): "differing",
        (0, 2): "differing",
    }


def test_a_partition_that_one_side_lacks_is_pending_or_expired(spark: SparkSession) -> None:
    log = records_frame(spark, [Stored(0, b"k", b"v"), Stored(7, b"k", b"v", partition=1)])
    archive = records_frame(spark, [Stored(0, b"k", b"v"), Stored(5, b"k", b"v", partition=2)])

    assert states_of(compare_offsets(archive, log)) == {(0, 0): "matching", (1, 7): "pending", (2, 5): "expired"}


def test_the_job_checks_a_directory_and_says_whether_it_is_good(spark: SparkSession, tmp_path: Path) -> None:
    bench = fill(tmp_path, segments=2)
    logs = find_logs([tmp_path])
    before = run(spark, logs)
    bench.path(0, ".index").write_bytes(b"\0\0\0\x05\0\0\0\x07")

    after = run(spark, logs, listed=1)

    assert before.is_good
    assert (before.summary().records, before.summary().files, before.findings, before.gaps) == (24, 2, [], [])
    assert not after.is_good
    assert after.finding_count == len(after.findings) == 1
    assert "matches no batch" in after.findings[0]["message"]


def test_an_archive_of_files_is_whole_until_one_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    log = records_frame(spark, [Stored(n, b"k", b"v%d" % n) for n in range(20)])
    for first in (0, 10):
        part = log.where(f"offset >= {first} and offset < {first + 10}").coalesce(1)
        part.write.parquet(str(tmp_path / "orders" / "date=2023-11-14" / f"hour={first}"))
    archive = read_archive(spark, str(tmp_path), ["orders"])

    whole = compare(archive, log)
    cut = compare(archive.where("offset <> 4"), log, listed=5)
    more = compare(archive, log.where("offset <> 4"))

    assert (whole.is_good, whole.totals["matching"], whole.differences) == (True, 20, [])
    assert not cut.is_good
    assert cut.differences == [{"topic": "orders", "partition": 0, "offset": 4, "state": "missing"}]
    assert cut.summary().details["archive"] == "NOT WHOLE"
    assert not more.is_good
    assert compare(archive, log.where("offset <> 4"), is_compacted=True).is_good

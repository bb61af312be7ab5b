"""Segments of a running broker that retention deletes while a query is planned or read."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.pipeline.errors import DataLossError
from barnabas.pipeline.reading.offsets import OffsetRange
from barnabas.pipeline.reading.options import ReadOptions, parse_read_options
from barnabas.pipeline.reading.schema import source_schema
from barnabas.pipeline.segments.reading import SegmentPart, read_from_segment
from barnabas.pipeline.segments.segment_log import SegmentLog
from barnabas.pipeline.source.batch import rules_of
from tests.support.storage.bench import START_MS, TP, LogBench, append, batch
from tests.support.storage.segments import segment_parts, write_log

RECORDS = 50


@pytest.fixture
def running(tmp_path: Path) -> tuple[LogBench, PartitionLog]:
    """Return the log of a running broker: 50 records in segments of about eight."""
    records = [[(START_MS + 1000 * index, b"k", bytes(100))] for index in range(RECORDS)]
    return write_log(tmp_path, records, segment_bytes=1500)


def given(bench: LogBench, **options: str) -> dict[str, str]:
    return {"path": str(bench.directory.parent), **options}


def read_options(bench: LogBench, **options: str) -> ReadOptions:
    return parse_read_options(given(bench, **options), is_streaming=False)


def read(options: ReadOptions, parts: list[SegmentPart]) -> list[int]:
    rules = rules_of(options, source_schema(include_headers=False))
    found = [batch for part in parts for batch in read_from_segment(options, rules, part)]
    return [row["offset"] for batch in found for row in batch.to_pylist()]


def delete_before(log: PartitionLog, offset: int) -> int:
    """Delete segments as retention does, by renaming; return the new log start offset."""
    log.delete_records(offset)
    log.delete_old_segments()
    return log.log_start_offset


def test_a_segment_on_its_way_out_is_read_as_long_as_its_file_is_there(running: tuple[LogBench, PartitionLog]) -> None:
    bench, log = running
    parts = segment_parts(given(bench))
    delete_before(log, 30)
    assert list(bench.directory.glob("*.log.deleted"))
    assert read(read_options(bench), parts) == list(range(RECORDS))


def test_a_compacted_segment_that_gets_its_final_name_after_the_plan_is_read(
    running: tuple[LogBench, PartitionLog],
) -> None:
    bench, _ = running
    final = sorted(bench.directory.glob("*.log"))[1]
    swap = final.rename(f"{final}.swap")
    parts = segment_parts(given(bench))
    swap.rename(final)
    assert read(read_options(bench), parts) == list(range(RECORDS))


def test_a_segment_that_is_gone_is_an_error_that_names_file_and_option(running: tuple[LogBench, PartitionLog]) -> None:
    bench, log = running
    parts = segment_parts(given(bench))
    delete_before(log, 30)
    bench.scheduler.advance(log.config.file_delete_delay_ms)
    with pytest.raises(DataLossError) as raised:
        read(read_options(bench), parts)
    end = parts[1].base_offset
    assert f"{end} offsets, 0 to {end - 1}, are gone: {bench.log_path(0)}, of which" in str(raised.value)
    assert "failOnDataLoss=false" in str(raised.value)


def test_a_segment_that_is_gone_is_passed_over_with_its_counts_where_that_is_asked(
    running: tuple[LogBench, PartitionLog], caplog: pytest.LogCaptureFixture
) -> None:
    bench, log = running
    parts = segment_parts(given(bench))
    least = max(part.base_offset for part in parts if part.base_offset <= 30)
    delete_before(log, 30)
    bench.scheduler.advance(log.config.file_delete_delay_ms)
    with caplog.at_level(logging.WARNING):
        assert read(read_options(bench, failOnDataLoss="false"), parts) == list(range(least, RECORDS))
    gone = [part for part in parts if part.base_offset < least]
    for part in gone:
        size = part.end_position - part.position
        assert f"{part.path}, of which {size} bytes were to be read, was deleted after" in caplog.text
    assert sum(part.end_offset - part.base_offset for part in gone) == least


def test_parts_of_a_segment_count_what_is_theirs(running: tuple[LogBench, PartitionLog]) -> None:
    bench, _ = running
    parts = segment_parts(given(bench, startingOffsets='{"orders":{"0":3}}', endingOffsets='{"orders":{"0":44}}'))
    spans = [(max(part.base_offset, part.part.start), part.end_offset) for part in parts]
    assert (spans[0][0], spans[-1][1]) == (3, 44)
    assert [end for _, end in spans[:-1]] == [start for start, _ in spans[1:]]


def test_segments_that_go_while_a_query_is_planned_are_passed_over(running: tuple[LogBench, PartitionLog]) -> None:
    bench, log = running
    options = read_options(bench, failOnDataLoss="false", maxPartitionBytes="600", minPartitions="20")
    source = SegmentLog(options)
    source.partitions()
    least = max(segment for segment in log.core.segments.view.base_offsets if segment <= 30)
    delete_before(log, 30)
    bench.scheduler.advance(log.config.file_delete_delay_ms)
    assert source.at({TP: START_MS}) == {TP: least}
    parts = list(source.parts([OffsetRange(TP, 0, source.latest([TP])[TP])], START_MS))
    assert read(options, parts) == list(range(least, RECORDS))


def test_the_end_is_looked_for_again_where_the_newest_segment_went(running: tuple[LogBench, PartitionLog]) -> None:
    bench, log = running
    source = SegmentLog(read_options(bench))
    source.partitions()
    log.roll()
    append(log, batch((START_MS, b"k", b"v")))
    delete_before(log, RECORDS)
    bench.scheduler.advance(log.config.file_delete_delay_ms)
    assert source.latest([TP]) == {TP: RECORDS + 1}

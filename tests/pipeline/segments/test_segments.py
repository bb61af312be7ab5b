"""Segment files as rows: selection of files, start and end of a read, and its division. Without Spark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from barnabas.broker.storage.files.checkpoint_file import LOG_START_OFFSET_CHECKPOINT, OffsetCheckpointFile
from barnabas.pipeline.errors import CorruptLogError, DataLossError, OptionError
from barnabas.pipeline.segments import directories as segment_directories
from barnabas.pipeline.segments import reading as segments_read
from barnabas.pipeline.segments.files import ArrowFileSystem
from barnabas.protocol.records import Codec, Record
from tests.support.storage.bench import START_MS, TP, LogBench, append, batch
from tests.support.storage.legacy import message_sets
from tests.support.storage.records import build, reseal
from tests.support.storage.segments import read_rows, segment_parts, write_log

VALUE = bytes(100)
CORRUPT_SCHEMA = StructType([StructField("offset", LongType()), StructField("_corrupt_record", StringType())])


def one_by_one(count: int) -> list[list[tuple[int, bytes | None, bytes | None]]]:
    """Return batches of one record each, one second apart."""
    return [[(START_MS + 1000 * index, b"k%02d" % index, VALUE)] for index in range(count)]


def offsets(path: Path | str, **options: str) -> list[int]:
    return [row["offset"] for row in read_rows(path, **options)]


@pytest.fixture
def bench(tmp_path: Path) -> LogBench:
    """Return a cleanly closed log of 50 records in segments of about eight."""
    bench, log = write_log(tmp_path, one_by_one(50), segment_bytes=1500)
    bench.close(log)
    return bench


@pytest.fixture
def one_segment(tmp_path: Path) -> LogBench:
    """Return a log of 50 records in one segment, with an index entry for every second batch."""
    bench, log = write_log(tmp_path, one_by_one(50), index_interval_bytes=200)
    bench.close(log)
    return bench


def log_files(bench: LogBench) -> list[Path]:
    return sorted(bench.directory.glob("*.log"))


@pytest.mark.parametrize("what", ["data directory", "partition directory", "URI"])
def test_all_records_are_read_from_a_data_directory_or_a_partitions(bench: LogBench, what: str) -> None:
    log_dir = bench.directory.parent
    path = {"data directory": str(log_dir), "partition directory": str(bench.directory), "URI": log_dir.as_uri()}[what]
    assert len(segment_parts({"path": path})) > 3

    rows = read_rows(path)

    assert [row["offset"] for row in rows] == list(range(50))
    assert rows[7] == {
        "key": b"k07",
        "value": VALUE,
        "topic": TP.topic,
        "partition": TP.partition,
        "offset": 7,
        "timestamp": rows[7]["timestamp"],
        "timestampType": 0,
    }
    assert rows[7]["timestamp"].timestamp() * 1000 == START_MS + 7000


def test_one_file_is_read_alone(bench: LogBench) -> None:
    second, third = (int(path.stem) for path in log_files(bench)[1:3])
    assert offsets(log_files(bench)[1]) == list(range(second, third))


def test_other_file_systems_are_read_through_pyarrow(bench: LogBench, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import fs

    def through_arrow(path: str) -> tuple[ArrowFileSystem, str]:
        return ArrowFileSystem(fs.LocalFileSystem(), "store"), path.removeprefix("store://")

    for module in (segment_directories, segments_read):
        monkeypatch.setattr(module, "file_system", through_arrow)
    assert offsets(f"store://{bench.directory}") == list(range(50))
    with pytest.raises(FileNotFoundError, match="missing"):
        offsets(f"store://{bench.directory}/missing")


def test_a_path_of_an_unknown_scheme_is_refused_by_its_name() -> None:
    with pytest.raises(Exception, match="floppy://a/b: no file system"):
        segment_parts({"path": "floppy://a/b"})


def test_the_log_start_offset_of_the_data_directory_counts(bench: LogBench) -> None:
    OffsetCheckpointFile(bench.directory.parent / LOG_START_OFFSET_CHECKPOINT).write({TP: 13})
    assert offsets(bench.directory) == list(range(13, 50))


@pytest.mark.parametrize("content", ["no checkpoint", "0\n7\norders 0 13\n", "0\n1\norders zero 13\n"])
def test_an_unreadable_checkpoint_is_as_none(bench: LogBench, content: str) -> None:
    (bench.directory.parent / LOG_START_OFFSET_CHECKPOINT).write_text(content)
    assert offsets(bench.directory) == list(range(50))


def test_directories_and_files_on_their_way_are_no_log(bench: LogBench) -> None:
    log_dir = bench.directory.parent
    for name in (f"{of}.{'0a' * 16}{end}" for of, end in [("a-0", "-delete"), ("b-0", "-future"), ("c-0", "-stray")]):
        (log_dir / name).mkdir()
        (log_dir / name / log_files(bench)[0].name).write_bytes(log_files(bench)[0].read_bytes())
    (bench.directory / "00000000000000000999.log.deleted").write_bytes(log_files(bench)[0].read_bytes())
    (bench.directory / "00000000000000000999.log.cleaned").write_bytes(log_files(bench)[0].read_bytes())
    assert offsets(log_dir) == list(range(50))


def test_internal_topics_are_read_only_when_they_are_named(bench: LogBench) -> None:
    log_dir = bench.directory.parent
    (log_dir / "__consumer_offsets-3").mkdir()
    source = build([Record(0, START_MS, b"group", b"offset")])
    (log_dir / "__consumer_offsets-3" / log_files(bench)[0].name).write_bytes(source)
    assert {row["topic"] for row in read_rows(log_dir)} == {"orders"}
    assert [row["partition"] for row in read_rows(log_dir, subscribe="__consumer_offsets")] == [3]
    assert {row["topic"] for row in read_rows(log_dir, subscribePattern="ord.*")} == {"orders"}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"subscribe": "orders,nothing"}, "option subscribe: there is no topic nothing"),
        ({"assign": '{"orders": [0, 8]}'}, "option assign: orders-8 is not"),
        ({"kafka.bootstrap.servers": "localhost:1"}, "exclude each other"),
    ],
)
def test_what_is_not_there_is_refused_with_the_option(bench: LogBench, options: dict[str, str], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        read_rows(bench.directory, **options)


def test_a_path_without_a_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(OptionError, match="other holds no log"):
        segment_parts({"path": str(tmp_path / "other")})
    with pytest.raises(FileNotFoundError, match="missing"):
        segment_parts({"path": str(tmp_path / "missing")})


def test_the_same_partition_twice_is_refused(bench: LogBench, tmp_path: Path) -> None:
    other = tmp_path / "copy" / bench.directory.name
    other.mkdir(parents=True)
    paths = f'["{bench.directory}", "{other}"]'
    with pytest.raises(OptionError, match="is the same partition as"):
        segment_parts({"paths": paths})


@pytest.mark.parametrize(("start", "end"), [(0, 50), (1, 49), (7, 8), (20, 20), (0, 1), (49, 50)])
@pytest.mark.parametrize("size", [150, 400, 1 << 20])
def test_any_range_in_parts_of_any_size_is_read_once_and_in_order(
    one_segment: LogBench, start: int, end: int, size: int
) -> None:
    options = {
        "startingOffsets": f'{{"orders": {{"0": {start}}}}}',
        "endingOffsets": f'{{"orders": {{"0": {end}}}}}',
        "maxPartitionBytes": str(size),
    }
    assert offsets(one_segment.directory, **options) == list(range(start, end))


def test_a_large_segment_is_divided_at_batches_of_its_index(one_segment: LogBench) -> None:
    whole = {"path": str(one_segment.directory)}
    assert len(segment_parts(whole)) == 1
    assert len(segment_parts({**whole, "maxPartitionBytes": "1000"})) > 5
    assert len(segment_parts({**whole, "minPartitions": "4"})) >= 3
    next(one_segment.directory.glob("*.index")).unlink()
    assert len(segment_parts({**whole, "maxPartitionBytes": "1000"})) == 1


@pytest.mark.parametrize("damage", ["shifted", "too low", "reversed", "torn", "noise"])
def test_a_wrong_index_costs_nothing_but_time(one_segment: LogBench, damage: str) -> None:
    index = next(one_segment.directory.glob("*.index"))
    content = index.read_bytes()
    index.write_bytes(
        {
            "shifted": b"".join(
                content[at : at + 4] + (int.from_bytes(content[at + 4 : at + 8], "big") + 7).to_bytes(4, "big")
                for at in range(0, len(content), 8)
            ),
            "too low": b"".join(
                (int.from_bytes(content[at : at + 4], "big") - 1).to_bytes(4, "big") + content[at + 4 : at + 8]
                for at in range(0, len(content), 8)
            ),
            "reversed": content[::-1],
            "torn": content[:-3],
            "noise": os.urandom(len(content)),
        }[damage]
    )
    for start in (20, 21):  # only one of these has its own index entry
        starting = f'{{"orders": {{"0": {start}}}}}'
        options = {"maxPartitionBytes": "700", "startingOffsets": starting}
        assert offsets(one_segment.directory, **options) == list(range(start, 50))


@pytest.mark.parametrize(("timestamp", "first"), [(START_MS, 0), (START_MS + 6500, 7), (START_MS + 49_000, 49)])
def test_a_start_by_timestamp_is_the_first_record_that_late(bench: LogBench, timestamp: int, first: int) -> None:
    assert offsets(bench.directory, startingTimestamp=str(timestamp)) == list(range(first, 50))


def test_a_timestamp_that_no_record_reaches_is_an_error_or_the_end(bench: LogBench) -> None:
    late = str(START_MS + 50_000)
    with pytest.raises(OptionError, match="option startingTimestamp: orders-0 has no record that late"):
        read_rows(bench.directory, startingTimestamp=late)
    assert offsets(bench.directory, startingTimestamp=late, startingOffsetsByTimestampStrategy="latest") == []
    assert offsets(bench.directory, endingTimestamp=late) == list(range(50))
    assert offsets(bench.directory, endingTimestamp=str(START_MS + 3000)) == [0, 1, 2]


def test_offsets_that_are_gone_are_an_error_or_left_out(bench: LogBench) -> None:
    OffsetCheckpointFile(bench.directory.parent / LOG_START_OFFSET_CHECKPOINT).write({TP: 13})
    gone = {"startingOffsets": '{"orders": {"0": 3}}'}
    with pytest.raises(DataLossError, match=r"orders-0: offsets 3 to 12 are gone.*failOnDataLoss"):
        read_rows(bench.directory, **gone)
    assert offsets(bench.directory, failOnDataLoss="false", **gone) == list(range(13, 50))


@pytest.mark.parametrize("codec", Codec)
def test_compressed_batches_and_gaps_are_read(tmp_path: Path, codec: Codec) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    kept = [Record(offset, START_MS, b"k", b"v" * 50) for offset in (1, 4, 9)]
    (directory / "00000000000000000000.log").write_bytes(build(kept, codec))
    assert offsets(directory) == [1, 4, 9]


def test_control_batches_are_hidden(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    marker = build([Record(1, START_MS, b"\0\0\0\1", b"\0\0\0\0\0\0")])
    marker[22] |= 0x30
    data = build([Record(0, START_MS, b"k", b"v")]) + reseal(marker) + build([Record(2, START_MS, b"k", b"v")])
    (directory / "00000000000000000000.log").write_bytes(data)
    assert offsets(directory) == [0, 2]


def test_message_sets_of_old_formats_are_read(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    sets = message_sets().values()
    (directory / "00000000000000000000.log").write_bytes(b"".join(each.data for each in sets))

    rows = read_rows(directory)

    expected = [record for each in sets for record in each.records]
    assert [(row["offset"], row["key"], row["value"]) for row in rows] == [
        (record.offset, record.key, record.value) for record in expected
    ]


@pytest.mark.parametrize("torn", ["cut batch", "zeros", "cut header"])
def test_a_half_written_tail_of_the_newest_segment_is_not_there_yet(bench: LogBench, torn: str) -> None:
    tail = bytes(build([Record(50, START_MS, b"k", b"v")]))
    with log_files(bench)[-1].open("ab") as file:
        file.write({"cut batch": tail[:-1], "zeros": bytes(5000), "cut header": tail[:9]}[torn])
    assert offsets(bench.directory) == list(range(50))


def test_an_unreadable_directory_is_named(bench: LogBench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(PermissionError, match=str(bench.directory)):
        segment_parts({"path": str(bench.directory)})


def test_a_corrupt_batch_ends_a_strict_read_with_file_and_position(one_segment: LogBench) -> None:
    path = log_files(one_segment)[0]
    data = bytearray(path.read_bytes())
    size = len(data) // 50
    data[20 * size + 100] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(CorruptLogError, match=rf"{path}, position {20 * size}: stored crc .*mode=permissive"):
        read_rows(one_segment.directory)


def test_a_corrupt_batch_is_left_out_of_a_permissive_read_and_reported_in_a_row(one_segment: LogBench) -> None:
    path = log_files(one_segment)[0]
    data = bytearray(path.read_bytes())
    size = len(data) // 50
    data[20 * size + 100] ^= 0xFF
    path.write_bytes(data)

    rows = read_rows(one_segment.directory, CORRUPT_SCHEMA, mode="permissive")

    assert [row["offset"] for row in rows if row["_corrupt_record"] is None] == [*range(20), *range(21, 50)]
    (report,) = [row for row in rows if row["_corrupt_record"] is not None]
    assert report["offset"] == 20
    assert report["_corrupt_record"].startswith(f"{path}, position {20 * size}: stored crc")
    assert offsets(one_segment.directory, mode="permissive") == [*range(20), *range(21, 50)]


def test_behind_a_size_that_lies_a_permissive_read_goes_on_where_the_index_knows_a_batch(
    one_segment: LogBench,
) -> None:
    path = log_files(one_segment)[0]
    data = bytearray(path.read_bytes())
    size = len(data) // 50
    data[20 * size + 8 : 20 * size + 12] = (5).to_bytes(4, "big")
    path.write_bytes(data)

    found = offsets(one_segment.directory, mode="permissive")

    assert found[:20] == list(range(20))
    assert found[20:] == list(range(found[20], 50))
    assert 20 < found[20] <= 23
    with pytest.raises(CorruptLogError, match=f"{path}, position {20 * size}: a batch of 17 bytes"):
        read_rows(one_segment.directory)


def test_a_segment_that_ends_within_a_batch_before_the_next_one_begins_is_damage(bench: LogBench) -> None:
    path = log_files(bench)[1]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptLogError, match=rf"{path}, position \d+: a batch is cut short"):
        read_rows(bench.directory)


def test_noise_behind_the_last_batch_of_the_newest_segment_is_damage(bench: LogBench) -> None:
    path = log_files(bench)[-1]
    end = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"\x7f" * 100)
    with pytest.raises(CorruptLogError, match=f"{path}, position {end}: no batch begins here"):
        read_rows(bench.directory)
    assert offsets(bench.directory, mode="permissive") == list(range(50))


def test_a_batch_larger_than_the_chunk_is_read(tmp_path: Path) -> None:
    bench = LogBench(tmp_path)
    log = bench.open()
    for size in (10, 700_000, 10, 300_000):
        append(log, batch((START_MS, b"k", bytes(size))))
    bench.close(log)
    assert [len(row["value"]) for row in read_rows(bench.directory)] == [10, 700_000, 10, 300_000]

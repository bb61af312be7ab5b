"""Offline index rebuild: the same bytes as the log engine's, and no change to a damaged segment."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.inspection.reindex import WORK_DIRECTORY, reindex_log
from tests.support.storage.bench import START_MS, LogBench, append, log_config, read_batches, sized_batch

CONFIG = log_config(segment_bytes=8192, index_interval_bytes=300)


@pytest.fixture
def bench(tmp_path: Path) -> LogBench:
    bench = LogBench(tmp_path)
    log = bench.open(CONFIG)
    for number in range(100):
        append(log, sized_batch(150 + number % 7, START_MS + number * 3 % 50))
    bench.close(log)
    return bench


def indexes(bench: LogBench) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in bench.directory.glob("*index") if path.is_file()}


def test_rebuilt_indexes_are_the_same_whatever_the_old_ones_were(bench: LogBench) -> None:
    before = indexes(bench)
    assert len(before) >= 4
    assert not any(done.is_changed for done in reindex_log(bench.directory, CONFIG))

    for number, name in enumerate(sorted(before)):
        path = bench.directory / name
        if number % 3 == 0:
            path.unlink()
        else:
            path.write_bytes(b"garbage" * number)
    done = list(reindex_log(bench.directory, CONFIG))
    assert all(segment.is_changed for segment in done)
    assert sum(segment.offset_entries for segment in done) == sum(
        len(content) // 8 for name, content in before.items() if name.endswith(".index")
    )
    assert indexes(bench) == before
    assert not (bench.directory / WORK_DIRECTORY).exists()
    log = bench.open(CONFIG)
    assert len(list(read_batches(log))) == 100


def test_another_interval_results_in_other_entries(bench: LogBench) -> None:
    dense = sum(done.offset_entries for done in reindex_log(bench.directory, log_config(index_interval_bytes=0)))
    sparse = sum(done.offset_entries for done in reindex_log(bench.directory, log_config(index_interval_bytes=4096)))
    assert dense > sum(done.offset_entries for done in reindex_log(bench.directory, CONFIG)) > sparse


@pytest.mark.parametrize("damage", ["crc", "tail"])
def test_a_damaged_segment_is_refused_and_keeps_its_indexes(bench: LogBench, damage: str) -> None:
    path = bench.log_path(0)
    content = bytearray(path.read_bytes())
    if damage == "crc":
        content[100] ^= 1
    else:
        content += b"torn"
    path.write_bytes(content)
    before = indexes(bench)
    with pytest.raises(CorruptFileError, match="position"):
        list(reindex_log(bench.directory, CONFIG))
    assert indexes(bench) == before


def test_leftovers_of_an_interrupted_run_are_removed(bench: LogBench) -> None:
    work = bench.directory / WORK_DIRECTORY
    work.mkdir()
    (work / f"{0:020d}.index").write_bytes(b"half")
    before = indexes(bench)
    list(reindex_log(bench.directory, CONFIG))
    assert indexes(bench) == before
    assert not work.exists()

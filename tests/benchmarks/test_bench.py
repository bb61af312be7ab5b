"""The benchmark itself: its batches are valid, its generator sends every request, its page keeps its text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from barnabas.protocol.records import RecordBatch, read_records
from benchmarks import librdkafka, loading, recovery, transactions
from benchmarks.requests.kafka_dialect import KafkaDialect
from benchmarks.requests.records import build_batch, build_full_batch
from benchmarks.runs.programs import Programs
from benchmarks.table.report import TABLES, render_tables, write_page

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="the load generator is written in C: no compiler here"
)


def test_the_batches_that_are_sent_are_valid_and_hold_what_they_say() -> None:
    batch = build_batch(70, 100)
    view = RecordBatch(bytearray(batch.data))
    view.ensure_valid()
    records = read_records(view)
    assert [record.offset for record in records] == list(range(70))
    assert {len(record.value or b"") for record in records} == {100}


def test_a_full_batch_leaves_no_room_for_one_more_record() -> None:
    batch = build_full_batch(1 << 20, 1024)
    assert (1 << 20) - 2 * 1024 < len(batch.data) <= 1 << 20


@needs_compiler
@pytest.mark.parametrize(("connections", "depth"), [(1, 1), (1, 4), (8, 1), (64, 2)])
def test_the_generator_sends_each_request_whole_and_counts_each_answer(
    programs: Programs, tmp_path: Path, connections: int, depth: int
) -> None:
    frames = tmp_path / "frames"
    requests = [KafkaDialect().produce("t", build_batch(1, size).data) for size in (10, 100_000)]
    frames.write_bytes(b"".join(requests))
    with programs.smallest_server(64) as (_, port):
        done = programs.load("127.0.0.1", port, frames, connections=connections, depth=depth, requests=200)
    assert done["requests"] == 200
    assert done["sent_bytes"] == 100 * sum(map(len, requests))
    assert done["received_bytes"] == 200 * 64
    assert 0 < done["p50_us"] <= done["p99_us"] <= done["max_us"]


@needs_compiler
def test_the_generator_stops_after_its_seconds_and_has_an_answer_to_all_it_sent(
    programs: Programs, tmp_path: Path
) -> None:
    frames = tmp_path / "frames"
    frames.write_bytes(KafkaDialect().hello())
    with programs.smallest_server(64) as (_, port):
        done = programs.load("127.0.0.1", port, frames, connections=4, depth=2, requests=10**7, seconds=0.1)
    assert done["seconds"] >= 0.1
    assert done["received_bytes"] == done["requests"] * 64


@needs_compiler
def test_the_generator_says_when_nobody_listens(programs: Programs, tmp_path: Path) -> None:
    frames = tmp_path / "frames"
    frames.write_bytes(KafkaDialect().hello())
    with programs.smallest_server(64) as (_, port):
        pass
    with pytest.raises(RuntimeError, match="connect: Connection refused"):
        programs.load("127.0.0.1", port, frames, connections=1, depth=1, requests=1)


def samples(value: float) -> dict[str, list[dict[str, float]]]:
    cells = [cell for table in TABLES for _, row in table.rows for cell in row if cell is not None]
    lines = {cell.line: {c.column: value for c in cells if c.line == cell.line} for cell in cells}
    return {line: [{name: v * k for name, v in columns.items()} for k in (3, 1, 2)] for line, columns in lines.items()}


def test_a_cell_is_the_median_with_minimum_and_maximum() -> None:
    assert "**0.400** (0.200 - 0.600); goal <= 0.45" in render_tables(samples(0.2))


def test_writing_the_page_renews_what_lies_between_the_marks_and_nothing_else() -> None:
    page = "text\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nmore\n"
    once = write_page(page, samples(1), [("memory", "4 GiB")], "make bench", 3)
    assert once.startswith("text\n<!-- measured: begin -->\n")
    assert once.endswith("<!-- measured: end -->\nmore\n")
    assert "old" not in once
    assert write_page(once, samples(1), [("memory", "4 GiB")], "make bench", 3) == once


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks the marks"):
        write_page("text", samples(1), [], "make bench", 1)


@pytest.mark.parametrize("segments", [3, 1])
def test_a_measured_recovery_starts_from_what_a_killed_broker_leaves_and_reads_it_all(
    tmp_path: Path, segments: int
) -> None:
    samples = loading.recovery(tmp_path, 1, 300_000, segments, loading.VALUE_BYTES["1 KiB"])
    assert samples["ratio"] == [samples["seconds"][0] / samples["cat_seconds"][0]]
    assert list(tmp_path.iterdir()) == []


def test_measured_clean_starts_and_lookups_find_all_that_was_written(tmp_path: Path) -> None:
    assert len(loading.clean_start(tmp_path, 2, 3)["cpu_seconds"]) == 2
    assert min(loading.lookups(tmp_path, 1, 200_000)["timestamp_us"]) > 0
    assert [len(build_batch(1, size).data) for size in loading.VALUE_BYTES.values()] == [16384, 1024, 170]


def test_a_killed_broker_is_measured_until_it_answers_the_right_end_offsets(tmp_path: Path) -> None:
    arguments = ["--rounds", "1", "--gigabytes", "0.004", "--directory", str(tmp_path / "work")]
    assert recovery.main([*arguments, "--json", str(tmp_path / "result.json")]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["samples"]["Barnabas"][0]["seconds"] > 0
    assert {"processor", "memory", "system", "load average"} <= result["machine"].keys()
    assert result["options"] == {"rounds": 1, "gigabytes": 0.004, "partitions": 4, "set": []}
    assert list((tmp_path / "work").iterdir()) == []


@needs_compiler
def test_measured_transactions_and_idempotent_requests_are_all_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--rounds", "1", "--seconds", "0.1", "--directory", str(tmp_path / "work")]
    assert transactions.main([*arguments, "--json", str(tmp_path / "result.json")]) == 0
    table = capsys.readouterr().out
    assert "| Barnabas: idempotent requests, producers 16, partitions 1 | **" in table
    assert "| Barnabas: transactions, producers 16, partitions 10 | **" in table
    samples = json.loads((tmp_path / "result.json").read_text())["samples"]
    assert len(samples) == 6
    assert all(rounds[0]["per_s"] > 0 for rounds in samples.values())
    assert list((tmp_path / "work").iterdir()) == []


needs_librdkafka = pytest.mark.skipif(
    not Path("/usr/include/librdkafka/rdkafka.h").exists(), reason="librdkafka's headers are not here (librdkafka-dev)"
)


@needs_compiler
@needs_librdkafka
def test_librdkafka_produces_and_consumes_what_it_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(librdkafka, "WORK", tmp_path)
    arguments = ["--rounds", "1", "--gigabytes", "0.001", "--no-page-cache-fill", "--directory", str(tmp_path)]
    assert librdkafka.main([*arguments, "--json", str(tmp_path / "result.json")]) == 0
    table = capsys.readouterr().out
    for line in ("produce 100 B, Barnabas", "consume 1024 B, Barnabas", "produce 1024 B, librdkafka's mock cluster"):
        assert f"| {line} | **" in table

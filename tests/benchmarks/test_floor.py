"""The C floor: it stores and sends exactly the bytes that a broker would."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.requests.kafka_dialect import KafkaDialect
from benchmarks.requests.records import build_batch
from benchmarks.runs.programs import Programs
from benchmarks.table.floor import added, measure_floor
from benchmarks.table.lines import Workload

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="the floor is written in C: no compiler here"
)


def test_the_floor_writes_each_batch_once_and_nothing_else(programs: Programs, tmp_path: Path) -> None:
    batches = [build_batch(1, size).data for size in (10, 400_000)]  # the second one is larger than its first buffer
    requests = [KafkaDialect().produce("topic", batch) for batch in batches]
    frames, file = tmp_path / "frames", tmp_path / "log"
    frames.write_bytes(b"".join(requests))
    (head,) = {len(frame) - len(batch) for frame, batch in zip(requests, batches, strict=True)}
    with programs.floor("produce", 50, head, file) as (_, port):
        done = programs.load("127.0.0.1", port, frames, connections=1, depth=3, requests=10)
    assert done["received_bytes"] == 10 * 50
    assert file.read_bytes() == b"".join(batches) * 5


def test_the_floor_sends_each_slice_after_its_head(programs: Programs, tmp_path: Path) -> None:
    frames, file = tmp_path / "frames", tmp_path / "log"
    frames.write_bytes(KafkaDialect().fetch("topic", 0, 1000))
    file.write_bytes(bytes(5000))
    with programs.floor("fetch", 65, 1500, file) as (_, port):
        done = programs.load("127.0.0.1", port, frames, connections=2, depth=1, requests=20)
    assert done["received_bytes"] == 20 * (65 + 1500)


def test_a_round_has_a_floor_for_each_line_and_what_the_broker_adds(programs: Programs, tmp_path: Path) -> None:
    work = Workload(build_batch(10, 1000), 5, build_batch(1, 100), latency_seconds=0.05)
    lines = measure_floor(programs, tmp_path, work, (1, 2), lambda: None)
    assert list(lines) == ["floor_produce", "floor_fetch", "floor_1", "floor_2"]
    assert all(columns["requests_per_s"] > 0 for columns in lines.values())
    broker = {"cpu_s_per_gb": 3.0, "cpu_us_per_request": 30.0}
    floor = {"cpu_s_per_gb": 1.0, "cpu_us_per_request": 12.0}
    assert added(broker, floor) == {"cpu_s_per_gb": 2.0, "cpu_us_per_request": 18.0}

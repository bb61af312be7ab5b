"""The floor: native/floor.c moves the same bytes as the broker with the same system calls, and does nothing else.

A line's broker CPU less the floor's in the same round is what the broker adds: parsing, checks, look-ups, indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.brokers.system import cpu_seconds_of
from benchmarks.requests.kafka_dialect import KafkaDialect
from benchmarks.runs.programs import Programs
from benchmarks.table.lines import LATENCY_REQUESTS_MAX, Columns, Workload, columns_of

PRODUCE_ANSWER_BYTES = 50
"""Size of the answer to a Produce of one partition, version 3, with a topic name of 5 letters."""
FETCH_HEAD_BYTES = 65
"""Bytes before the records of a Fetch answer of one partition, version 4."""

ADDED = ("cpu_s_per_gb", "cpu_us_per_request")


def measure_floor(
    programs: Programs, directory: Path, work: Workload, connections: Iterable[int], refill: Callable[[], None]
) -> dict[str, Columns]:
    """Measure the lines `floor_produce`, `floor_fetch` and `floor_<connections>` (requests of one record)."""
    dialect = KafkaDialect()
    frames, file = directory / "frames", directory / "floor"
    measured: dict[str, Columns] = {}
    bulk, small = work.bulk_batch, work.small_batch

    def load(server: tuple[int, int], *, count: int, depth: int, requests: int, seconds: float | None) -> Columns:
        pid, port = server
        cpu = cpu_seconds_of(pid)
        sent = programs.load(
            "127.0.0.1", port, frames, connections=count, depth=depth, requests=requests, seconds=seconds
        )
        cpu = cpu_seconds_of(pid) - cpu
        batch = small if seconds is not None else bulk
        return columns_of(sent, cpu, sent["requests"] * len(batch.data), sent["requests"] * batch.record_count)

    def head(frame: bytes, batch: bytes) -> int:
        return len(frame) - len(batch)

    refill()
    frame = dialect.produce("bulk", bulk.data)
    frames.write_bytes(frame)
    with programs.floor("produce", PRODUCE_ANSWER_BYTES, head(frame, bulk.data), file) as server:
        measured["floor_produce"] = load(
            server, count=1, depth=work.produce_depth, requests=work.bulk_requests, seconds=None
        )
    refill()
    frames.write_bytes(dialect.fetch("bulk", 0, len(bulk.data)))
    with programs.floor("fetch", FETCH_HEAD_BYTES, len(bulk.data), file) as server:
        measured["floor_fetch"] = load(
            server, count=1, depth=work.fetch_depth, requests=work.bulk_requests, seconds=None
        )
    frame = dialect.produce("small", small.data)
    frames.write_bytes(frame)
    with programs.floor("produce", PRODUCE_ANSWER_BYTES, head(frame, small.data), file) as server:
        for count in connections:
            refill()
            measured[f"floor_{count}"] = load(
                server, count=count, depth=1, requests=LATENCY_REQUESTS_MAX, seconds=work.latency_seconds
            )
    file.unlink()
    return measured


def added(broker: Columns, floor: Columns) -> Columns:
    """Return the CPU that the broker adds to the floor, by column."""
    return {name: broker[name] - floor[name] for name in ADDED}

"""Benchmark of transactions: committed transactions per second and the latency of a commit.

    python -m benchmarks.transactions --kafka-jars DIR

A transaction is one Produce with one record of 100 bytes for each of its partitions, and one EndTxn, by 1 and by 16
producers, with 1 and with 10 partitions per transaction. Producers share one topic of 10 partitions. The requests are
those of transaction.version 2 over Kafka's protocol, from native/transactions.c, identical for both brokers:

    commit         from sending EndTxn to its answer
    transaction    from sending Produce to the answer of EndTxn. Kafka answers EndTxn before it writes the markers, and
                   the next Produce waits for them: this is the comparable latency
    CPU            of the broker, per transaction, all threads
    generator      the load generator's share of a core, to show that it was not the limit

Idempotent lines send the same one-record requests without a transactional id: what transactions cost those who do not
use them.

The offsets are checked after each line: every partition's last stable offset is its high watermark, and all partitions
together have one record and one marker for each partition of each transaction.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.brokers.system import Barnabas, Running, System
from benchmarks.requests import transaction_frames as frames
from benchmarks.requests.frames import await_leaders, end_offsets
from benchmarks.runs.programs import Programs
from benchmarks.runs.result_files import DIRECTORY
from benchmarks.runs.side_by_side import (
    Columns,
    Round,
    chosen,
    run_and_report,
    say_columns,
    side_by_side_options,
    systems_of,
)

PARTITIONS = 10
VALUE_BYTES = 100
TRANSACTIONS_MAX = 2_000_000
SETTLE_SECONDS_MAX = 30.0


class Line(NamedTuple):
    """A line of the table. `partitions` are those of each transaction or request."""

    producers: int
    partitions: int
    is_transactional: bool = True

    @property
    def name(self) -> str:
        kind = "transactions" if self.is_transactional else "idempotent requests"
        return f"{kind}, producers {self.producers}, partitions {self.partitions}"


TRANSACTIONAL = (Line(1, 1), Line(1, 10), Line(16, 1), Line(16, 10))
IDEMPOTENT = (Line(1, 1, is_transactional=False), Line(16, 1, is_transactional=False))


def line_names() -> list[str]:
    """Return the names of all lines."""
    return [line.name for line in (*TRANSACTIONAL, *IDEMPOTENT)]


def measure(running: Running, programs: Programs, directory: Path, line: Line, topic: str, seconds: float) -> Columns:
    """Run one line and check its offsets. Raises RuntimeError when the broker refuses a request or loses a record."""
    batch = frames.small_batch(VALUE_BYTES)
    scripts = []
    with running.connect() as connection:
        before = _settled_end(running, topic)
        for number in range(line.producers):
            name = f"{topic}-{number}" if line.is_transactional else None
            producer_id, epoch = frames.init_producer(connection, name)
            partitions = [(number + offset) % PARTITIONS for offset in range(line.partitions)]
            scripts.append(frames.build_script(name, producer_id, epoch, topic, partitions, batch))
    path = directory / "script"
    path.write_bytes(b"".join(scripts))
    cpu = running.cpu_seconds()
    done = programs.transactions(running.host, running.port, path, transactions=TRANSACTIONS_MAX, seconds=seconds)
    after = _settled_end(running, topic)
    cpu = running.cpu_seconds() - cpu
    count = done["transactions"]
    expected = count * line.partitions * (2 if line.is_transactional else 1)
    if after - before != expected:
        raise RuntimeError(f"{line.name}: the logs grew by {after - before} records and markers, not {expected}")
    columns = {
        "per_s": count / done["seconds"],
        "p50_us": done["p50_us"],
        "p99_us": done["p99_us"],
        "cpu_us": cpu / count * 1e6,
        "generator": done["cpu_seconds"] / done["seconds"],
        "retries": done["retries"] / count,
    }
    if line.is_transactional:
        columns |= {"commit_p50_us": done["commit_p50_us"], "commit_p99_us": done["commit_p99_us"]}
    return columns


def _settled_end(running: Running, topic: str) -> int:
    """Return the sum of all end offsets once no transaction is open: Kafka writes markers after its answer."""
    give_up = time.monotonic() + SETTLE_SECONDS_MAX
    with running.connect() as connection:
        while time.monotonic() < give_up:
            ends = end_offsets(connection, topic, PARTITIONS)
            if ends == end_offsets(connection, topic, PARTITIONS, committed=True):
                return sum(ends)
            time.sleep(0.01)
    raise RuntimeError(f"{topic}: transactions are still open after {SETTLE_SECONDS_MAX:.0f} s")


def measure_lines(round_: Round, programs: Programs, lines: Sequence[Line], seconds: float) -> Mapping[str, Columns]:
    """Measure each line after a warm-up with the same requests."""
    found = {}
    for number, line in enumerate(lines):
        topic = f"line-{number}"
        with round_.running.connect() as connection:
            round_.system.dialect.create(connection, topic, PARTITIONS)
            await_leaders(connection, topic, PARTITIONS)
        measure(round_.running, programs, round_.directory, line, topic, round_.warm_seconds)
        found[line.name] = measure(round_.running, programs, round_.directory, line, topic, seconds)
        say_columns(line.name, found[line.name])
    return found


_COLUMNS = (
    ("per second", "per_s", 1.0, "{:,.0f}"),
    ("transaction p50, ms", "p50_us", 1e-3, "{:.2f}"),
    ("p99, ms", "p99_us", 1e-3, "{:.2f}"),
    ("commit p50, ms", "commit_p50_us", 1e-3, "{:.2f}"),
    ("p99, ms", "commit_p99_us", 1e-3, "{:.2f}"),
    ("broker CPU us each", "cpu_us", 1.0, "{:.0f}"),
    ("generator busy, %", "generator", 100.0, "{:.0f}"),
    ("retries each", "retries", 1.0, "{:.2f}"),
)


def main(arguments: list[str]) -> int:
    """Run with these arguments."""
    options = _options(arguments)
    names = chosen(line_names(), options.lines)
    lines_of: dict[System, list[Line]] = {}

    def add(systems: Sequence[System], lines: Sequence[Line]) -> None:
        wanted = [line for line in lines if line.name in names]
        lines_of.update({system: wanted for system in systems if wanted})

    if not options.idempotent_only:
        add(systems_of(options), TRANSACTIONAL)
    if not options.kafka_only:
        add([Barnabas(options.set)], IDEMPOTENT)
    programs = Programs(DIRECTORY / "bin")
    return run_and_report(
        "transactions",
        options,
        list(lines_of),
        lambda round_: measure_lines(round_, programs, lines_of[round_.system], options.seconds),
        _COLUMNS,
    )


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = side_by_side_options("transactions", __doc__)
    parser.add_argument("--idempotent-only", action="store_true", help="measure only the idempotent lines")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

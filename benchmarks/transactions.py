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
use them. With `--base DIR`, a checkout with its own .venv, the same lines run with that code in the same rounds.

The offsets are checked after each line: every partition's last stable offset is its high watermark, and all partitions
together have one record and one marker for each partition of each transaction.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import transaction_frames as frames
from benchmarks.apache_kafka import ApacheKafka
from benchmarks.kafka_dialect import KafkaDialect
from benchmarks.programs import Programs
from benchmarks.result_files import DIRECTORY, add_json_option, write_result
from benchmarks.system import Barnabas, Running, System

PARTITIONS = 10
VALUE_BYTES = 100
TRANSACTIONS_MAX = 2_000_000
SETTLE_SECONDS_MAX = 30.0

Columns = dict[str, float]
Samples = dict[str, list[Columns]]


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
            ends = frames.end_offsets(connection, topic, PARTITIONS, committed=False)
            if ends == frames.end_offsets(connection, topic, PARTITIONS, committed=True):
                return sum(ends)
            time.sleep(0.01)
    raise RuntimeError(f"{topic}: transactions are still open after {SETTLE_SECONDS_MAX:.0f} s")


def run_system(
    system: System, programs: Programs, directory: Path, lines: Sequence[Line], seconds: float, warm_seconds: float
) -> dict[str, Columns]:
    """Measure all lines on a new broker, each after a warm-up with the same requests."""
    found = {}
    with system.start(directory) as running:
        for number, line in enumerate(lines):
            topic = f"line-{number}"
            with running.connect() as connection:
                system.dialect.create(connection, topic, PARTITIONS)
            _await_leaders(running, topic)
            measure(running, programs, directory, line, topic, warm_seconds)
            found[line.name] = measure(running, programs, directory, line, topic, seconds)
            said = ", ".join(f"{name}={value:.4g}" for name, value in found[line.name].items())
            _say(f"  {line.name}: {said}")
    return found


def _await_leaders(running: Running, topic: str) -> None:
    """Wait until every partition answers: Kafka creates a topic before its partitions have a leader."""
    give_up = time.monotonic() + SETTLE_SECONDS_MAX
    while True:
        try:
            with running.connect() as connection:
                frames.end_offsets(connection, topic, PARTITIONS, committed=True)
            return
        except RuntimeError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.01)


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


def render(samples: Samples) -> str:
    """Render a Markdown table; a cell is the median of all rounds with minimum and maximum."""
    head = ["line", *(title for title, *_ in _COLUMNS)]
    rows = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    for line, rounds in samples.items():
        cells = []
        for _, column, factor, form in _COLUMNS:
            values = [each[column] * factor for each in rounds if column in each]
            if not values:
                cells.append("")
                continue
            low, high = form.format(min(values)), form.format(max(values))
            cells.append(f"**{form.format(median(values))}** ({low} - {high})")
        rows.append(f"| {line} | {' | '.join(cells)} |")
    return "\n".join(rows)


def main(arguments: list[str]) -> int:
    """Run with these arguments."""
    options = _parser().parse_args(arguments)
    ours = Barnabas(options.set, KafkaDialect())
    measured: list[tuple[System, tuple[Line, ...], float]] = []
    if not options.idempotent_only:
        if not options.kafka_only:
            measured.append((ours, TRANSACTIONAL, ours.warm_seconds))
        if options.kafka_jars is not None:
            kafka = ApacheKafka(options.kafka_jars)
            measured.append((kafka, TRANSACTIONAL, min(kafka.warm_seconds, options.warm)))
    if not options.kafka_only:
        measured.append((ours, IDEMPOTENT, ours.warm_seconds))
    if options.base is not None:
        program = [str(options.base / ".venv" / "bin" / "barnabas")]
        base = Barnabas(options.set, KafkaDialect(), "Barnabas before", program)
        measured.append((base, IDEMPOTENT, ours.warm_seconds))
    options.directory.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="barnabas-transactions-", dir=options.directory))
    programs = Programs(DIRECTORY / "bin")
    samples: Samples = defaultdict(list)
    try:
        for number in range(options.rounds):
            # Every second round runs backwards, so that no system always follows the same one.
            for index, (system, lines, warm) in list(enumerate(measured))[:: -1 if number % 2 else 1]:
                _say(f"round {number + 1} of {options.rounds}: {system.name}")
                place = home / f"{number}-{index}"
                place.mkdir()
                found = run_system(system, programs, place, lines, options.seconds, warm)
                for line, columns in found.items():
                    samples[f"{system.name}: {line}"].append(columns)
                shutil.rmtree(place)
    finally:
        shutil.rmtree(home)
    print(render(samples))
    write_result(options.json, "benchmarks.transactions", options, samples)
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.transactions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=3, help="number of measurements of each line (default 3)")
    parser.add_argument("--seconds", type=float, default=5.0, help="duration of each line (default 5)")
    parser.add_argument("--warm", type=float, default=10.0, help="warm-up of each line of Apache Kafka (default 10)")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="a property of Barnabas")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="where data is written")
    parser.add_argument("--kafka-jars", type=Path, metavar="DIR", help="measure Apache Kafka too (needs java)")
    parser.add_argument("--base", type=Path, metavar="DIR", help="a checkout of earlier code, for the idempotent lines")
    parser.add_argument("--idempotent-only", action="store_true", help="measure only the idempotent lines")
    parser.add_argument("--kafka-only", action="store_true", help="measure only Apache Kafka")
    add_json_option(parser, "transactions")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

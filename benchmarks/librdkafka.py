"""Throughput of one librdkafka client: `python -m benchmarks.librdkafka`, or `make bench-kafka`.

    produce   records of 100 bytes and of 1 KiB to one partition, acks=1, linger.ms=5, uncompressed
    consume   the same records again, from the beginning
    mock      produce to librdkafka's mock cluster inside the client's process, which stores nothing: the limit of
              the client itself

Barnabas is measured in Kafka's protocol; with --kafka-jars, Apache Kafka is measured in the same rounds by the same
program (native/librdkafka/client.c, which needs Debian's librdkafka-dev). CPU time is the broker's; 1 GB is 10^9 bytes
of values.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median

from benchmarks.brokers.apache_kafka import ApacheKafka
from benchmarks.brokers.system import Barnabas, Running, System
from benchmarks.runs.page_cache import PageCacheFiller
from benchmarks.runs.programs import SOURCES, compile_program
from benchmarks.runs.result_files import add_json_option, write_result

REPOSITORY = Path(__file__).resolve().parents[1]
WORK = REPOSITORY / "build" / "bench"
VALUE_BYTES = (100, 1024)
PRODUCER = ("acks=1", "linger.ms=5", "queue.buffering.max.messages=500000", "queue.buffering.max.kbytes=1048576")
CONSUMER = ("queued.min.messages=1000000", "queued.max.messages.kbytes=262144", "group.id=benchmark")
WARM_SHARE = {"Barnabas": 0.1, "Apache Kafka": 3.0}
"""Warm-up as a share of the measured records: a JVM compiles only code that has run for some time."""

Samples = dict[tuple[str, str], list[dict[str, float]]]


class Client:
    """The compiled client program."""

    def __init__(self, directory: Path) -> None:
        self._program = directory / "librdkafka-client"
        directory.mkdir(parents=True, exist_ok=True)
        compile_program(SOURCES / "librdkafka" / "client.c", self._program, "-lrdkafka")

    def produce(self, bootstrap: str, topic: str, records: int, value_bytes: int) -> dict[str, float]:
        return self._run("produce", bootstrap, topic, str(records), str(value_bytes), *PRODUCER)

    def consume(self, bootstrap: str, topic: str, records: int) -> dict[str, float]:
        return self._run("consume", bootstrap, topic, str(records), *CONSUMER)

    def _run(self, *arguments: str) -> dict[str, float]:
        done = subprocess.run([self._program, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"librdkafka client {' '.join(arguments)}: {done.stderr.strip()}")
        result: dict[str, float] = json.loads(done.stdout)
        return result


def measure(
    system: System, running: Running, client: Client, records_of: dict[int, int], refill: PageCacheFiller | None
) -> dict[str, dict[str, float]]:
    """Measure all lines on a newly started system."""
    bootstrap = f"{running.host}:{running.port}"
    lines: dict[str, dict[str, float]] = {}
    with running.connect() as connection:
        for size in VALUE_BYTES:
            for topic in (f"warm-{size}", f"values-{size}"):
                system.dialect.create(connection, topic)
        for size, records in records_of.items():
            warm = max(1, int(records * WARM_SHARE[system.name]))
            client.produce(bootstrap, f"warm-{size}", warm, size)
            client.consume(bootstrap, f"warm-{size}", warm)
        for size, records in records_of.items():
            if refill is not None:
                refill.refill()
            topic = f"values-{size}"
            cpu = running.cpu_seconds()
            produced = client.produce(bootstrap, topic, records, size)
            lines[f"produce {size} B"] = _columns(produced, running.cpu_seconds() - cpu)
            stored = system.dialect.end_offset(connection, topic)
            if stored != records:
                raise RuntimeError(f"{system.name}: {records} records were delivered, {stored} are stored")
            cpu = running.cpu_seconds()
            consumed = client.consume(bootstrap, topic, records)
            lines[f"consume {size} B"] = _columns(consumed, running.cpu_seconds() - cpu)
    return lines


def _columns(done: dict[str, float], broker_cpu_seconds: float | None) -> dict[str, float]:
    columns = {
        "records_per_s": done["records"] / done["seconds"],
        "mb_per_s": done["value_bytes"] / done["seconds"] / 1e6,
        "client_busy_percent": 100 * done["cpu_seconds"] / done["seconds"],
    }
    if broker_cpu_seconds is not None:
        columns["cpu_s_per_gb"] = broker_cpu_seconds / (done["value_bytes"] / 1e9)
    return columns


def render(samples: Samples) -> str:
    """Render a Markdown table; a cell is the median of all rounds with minimum and maximum."""
    lines = [
        "| line | records/s | MB/s | broker CPU s/GB | client busy, % |",
        "| --- | --- | --- | --- | --- |",
    ]
    for (line, system), rounds in sorted(samples.items()):
        forms = (
            ("records_per_s", "{:,.0f}"),
            ("mb_per_s", "{:.0f}"),
            ("cpu_s_per_gb", "{:.2f}"),
            ("client_busy_percent", "{:.0f}"),
        )
        cells = []
        for column, form in forms:
            values = [columns[column] for columns in rounds if column in columns]
            if not values:
                cells.append("")
                continue
            low, middle, high = (form.format(value) for value in (min(values), median(values), max(values)))
            cells.append(f"**{middle}** ({low} - {high})")
        lines.append(f"| {line}, {system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    client = Client(WORK / "bin")
    systems: list[System] = [Barnabas(options.set)]
    if options.kafka_jars is not None:
        systems.append(ApacheKafka(options.kafka_jars))
    records_of = {size: max(1000, int(options.gigabytes * 1e9) // size) for size in VALUE_BYTES}
    home = Path(tempfile.mkdtemp(prefix="barnabas-bench-", dir=options.directory))
    samples: Samples = defaultdict(list)
    try:
        refill = PageCacheFiller(home / "fill") if options.page_cache_fill else None
        for number in range(options.rounds):
            for size, records in records_of.items():
                done = client.produce("mock", "values", records, size)
                samples[f"produce {size} B", "librdkafka's mock cluster"].append(_columns(done, None))
            for system in systems:
                print(f"round {number + 1} of {options.rounds}: {system.name}", file=sys.stderr, flush=True)
                place = home / f"{number}-{system.name.replace(' ', '-')}"
                place.mkdir()
                with system.start(place) as running:
                    for line, columns in measure(system, running, client, records_of, refill).items():
                        samples[line, system.name].append(columns)
                shutil.rmtree(place)
    finally:
        shutil.rmtree(home)
    print(render(samples))
    by_line = {f"{line}, {system}": rounds for (line, system), rounds in samples.items()}
    write_result(options.json, "benchmarks.librdkafka", options, by_line)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.librdkafka", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="number of measurements of each line (default 5)")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="amount of values per line (default 1)")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="a property of the broker")
    parser.add_argument("--directory", type=Path, default=WORK, help="where data is written")
    parser.add_argument(
        "--no-page-cache-fill", dest="page_cache_fill", action="store_false", help="do not fill the page cache first"
    )
    parser.add_argument("--kafka-jars", type=Path, metavar="DIR", help="measure Apache Kafka too (needs java)")
    add_json_option(parser, "librdkafka")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m benchmarks`: measure the broker and the machine's limits; `--write` updates docs/performance.md."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.brokers.apache_kafka import WARM_GIGABYTES, ApacheKafka
from benchmarks.brokers.system import Barnabas, System
from benchmarks.requests.records import build_batch, build_full_batch
from benchmarks.runs.machine import describe
from benchmarks.runs.programs import Programs
from benchmarks.runs.result_files import add_json_option, write_result
from benchmarks.table.beside_compaction import PROPERTIES
from benchmarks.table.lines import Workload
from benchmarks.table.report import render_tables, write_page
from benchmarks.table.rounds import run_rounds

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "performance.md"
WORK = REPOSITORY / "build" / "bench"

REQUEST_BYTES = 1 << 20
BULK_VALUE_BYTES = 1024
SMALL_VALUE_BYTES = 100
BUSY_LOAD = 0.7


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    bulk = build_full_batch(REQUEST_BYTES, BULK_VALUE_BYTES)
    work = Workload(
        bulk_batch=bulk,
        bulk_requests=max(1, int(options.gigabytes * 1e9) // len(bulk.data)),
        small_batch=build_batch(1, SMALL_VALUE_BYTES),
        latency_seconds=options.seconds,
    )
    options.directory.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    if load > BUSY_LOAD:
        _say(f"the machine is busy (load {load:.1f}): rates and latencies mean little, CPU per unit is too high")
    settings = [*PROPERTIES, *options.set]
    systems: list[System] = [Barnabas(settings)]
    if options.kafka_jars is not None:
        systems.append(
            ApacheKafka(options.kafka_jars, properties=PROPERTIES, warm_gigabytes=options.kafka_warm_gigabytes)
        )
    samples = run_rounds(
        systems,
        Programs(WORK / "bin"),
        work,
        rounds=options.rounds,
        directory=options.directory,
        fill_page_cache=options.page_cache_fill,
        say=_say,
    )
    print(render_tables(samples))
    write_result(options.json, "benchmarks", options, samples)
    if options.write:
        PAGE.write_text(write_page(PAGE.read_text(), samples, describe(), _command(options), options.rounds))
    return 0


def _command(options: argparse.Namespace) -> str:
    """Return the command for readers of the page, without the paths of this machine."""
    words = [f"python -m benchmarks --rounds {options.rounds} --gigabytes {options.gigabytes:g}"]
    words += [f"--seconds {options.seconds:g}", *(f"--set {setting}" for setting in options.set)]
    words += ["--kafka-jars DIR"] * (options.kafka_jars is not None)
    words += ["--no-page-cache-fill"] * (not options.page_cache_fill)
    return " ".join([*words, "--write"])


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="number of measurements of each line (default 5)")
    parser.add_argument("--gigabytes", type=float, default=2.0, help="produced and fetched per round (default 2)")
    parser.add_argument("--seconds", type=float, default=2.0, help="duration of each one-record line (default 2)")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="a property of the broker")
    parser.add_argument(
        "--directory", type=Path, default=WORK, help="where data is written; needs room for memory plus 8 GB"
    )
    parser.add_argument(
        "--no-page-cache-fill",
        dest="page_cache_fill",
        action="store_false",
        help="do not fill the page cache first: quicker, but on some virtual machines the figures are meaningless",
    )
    parser.add_argument(
        "--kafka-jars", type=Path, metavar="DIR", help="measure Apache Kafka too, from the jars in DIR (needs java)"
    )
    parser.add_argument(
        "--kafka-warm-gigabytes",
        type=float,
        default=WARM_GIGABYTES,
        help=f"warm-up of Apache Kafka in each round (default {WARM_GIGABYTES:g}); with less, its JVM still compiles",
    )
    add_json_option(parser, "benchmarks")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Rounds of any lines on Barnabas and Apache Kafka in turn, each on a new broker; options, tables, results."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

from benchmarks.brokers.apache_kafka import ApacheKafka
from benchmarks.brokers.system import Barnabas, Running, System
from benchmarks.runs.result_files import DIRECTORY, add_json_option, write_result

_Any = TypeVar("_Any")

Columns = dict[str, float]
Samples = dict[str, list[Columns]]
"""`system: line` -> one entry per round."""


@dataclass(frozen=True, slots=True)
class Round:
    """A running system in a new directory.

    `warm_seconds` is how long each line is warmed up before it is measured; `number` counts rounds from 0.
    """

    system: System
    running: Running
    directory: Path
    warm_seconds: float
    number: int = 0


Measure = Callable[[Round], Mapping[str, Columns]]
"""Measures all lines of one round on one system; returns columns by line."""


def side_by_side_options(module: str, text: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of all such runs. `module` is the name after `benchmarks.`."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{module}", description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="number of measurements of each line (default 3)")
    parser.add_argument("--seconds", type=float, default=5.0, help="duration of each line (default 5)")
    parser.add_argument("--warm", type=float, default=10.0, help="warm-up of each line of Apache Kafka (default 10)")
    parser.add_argument("--lines", metavar="TEXT", default="", help="measure only lines whose name contains TEXT")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="a property of Barnabas")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="where data is written")
    parser.add_argument("--kafka-jars", type=Path, metavar="DIR", help="measure Apache Kafka too (needs java)")
    parser.add_argument("--kafka-only", action="store_true", help="measure only Apache Kafka")
    add_json_option(parser, module)
    return parser


def chosen(names: Sequence[str], wanted: str) -> list[str]:
    """Return the lines that `--lines` means: the one with this name, else all whose names contain it."""
    return [wanted] if wanted in names else [name for name in names if wanted in name]


def systems_of(
    options: argparse.Namespace, properties: Sequence[str] = (), listeners: Sequence[str] = ()
) -> list[System]:
    """Return the systems that the options name, with these properties (name=value) and listeners besides PLAINTEXT.

    Both are measured in Kafka's protocol.
    """
    systems: list[System] = []
    if not options.kafka_only:
        systems.append(Barnabas([*properties, *options.set], listeners=listeners))
    if options.kafka_jars is not None:
        systems.append(ApacheKafka(options.kafka_jars, listeners, properties))
    return systems


def run_side_by_side(options: argparse.Namespace, systems: Sequence[System], measure: Measure) -> Samples:
    """Measure all rounds, each system `in_turn`, so that none always follows the same one."""
    options.directory.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="barnabas-bench-", dir=options.directory))
    samples: Samples = defaultdict(list)
    try:
        for number in range(options.rounds):
            for system in in_turn(systems, number):
                say(f"round {number + 1} of {options.rounds}: {system.name}")
                place = home / f"{number}-{system.name.replace(' ', '-')}"
                place.mkdir()
                warm = min(system.warm_seconds, options.warm)
                with system.start(place) as running:
                    for line, columns in measure(Round(system, running, place, warm, number)).items():
                        samples[f"{system.name}: {line}"].append(columns)
                shutil.rmtree(place)
    finally:
        shutil.rmtree(home)
    return samples


def in_turn(all_: Sequence[_Any], number: int) -> Sequence[_Any]:
    """Return them in the order of this round: backwards in every second one."""
    return all_[:: -1 if number % 2 else 1]


def run_and_report(
    module: str,
    options: argparse.Namespace,
    systems: Sequence[System],
    measure: Measure,
    columns: Sequence[tuple[str, str, float, str]],
) -> int:
    """Measure all rounds, print the table and write the JSON file; return the exit code of the command.

    `module` is the name after `benchmarks.`, `columns` are those of `render_samples`.
    """
    samples = run_side_by_side(options, systems, measure)
    print(render_samples(samples, columns))
    write_result(options.json, f"benchmarks.{module}", options, samples)
    return 0


def say_columns(line: str, columns: Columns) -> None:
    """Print one measurement to standard error."""
    say(f"  {line}: " + ", ".join(f"{name}={value:.4g}" for name, value in columns.items()))


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def render_samples(samples: Samples, columns: Sequence[tuple[str, str, float, str]]) -> str:
    """Render a Markdown table; a cell is the median of all rounds with minimum and maximum.

    `columns` are (title, column, factor, format). A line without a column has an empty cell; a column that no line has
    is left out.
    """
    shown = [each for each in columns if any(each[1] in row for rounds in samples.values() for row in rounds)]
    head = ["line", *(title for title, *_ in shown)]
    rows = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    for line, rounds in samples.items():
        cells = []
        for _, column, factor, form in shown:
            values = [each[column] * factor for each in rounds if column in each]
            if not values:
                cells.append("")
                continue
            low, high = form.format(min(values)), form.format(max(values))
            cells.append(f"**{form.format(median(values))}** ({low} - {high})")
        rows.append(f"| {line} | {' | '.join(cells)} |")
    return "\n".join(rows)

"""A benchmark on the baseline (tools/baseline) and on the working tree in turn: `make bench-baseline`.

    python -m benchmarks.baseline --rounds 5 --seconds 2                    # all lines of benchmarks.lines
    python -m benchmarks.baseline --lines "one record"                      # only those whose name contains this
    python -m benchmarks.baseline --benchmark recovery --gigabytes 0.5      # any other module of this folder
    python -m benchmarks.baseline --benchmark costs --rounds 1 --instructions 2000

Each round runs the module of this tree on both, with `--rounds 1` and all options that are not listed here: the
baseline's in the environment in build/baseline, so that brokers, clients, commands and jobs, and what the module itself
imports from barnabas, are the baseline's. A module with `line_names` is run line by line. Every second round begins
with the other one.

Printed are the medians of both, and the median, minimum and maximum of the ratios within the rounds (working tree to
baseline): the times of a machine vary by 30 %, the ratios by less. The JSON file has every sample.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from benchmarks.runs.result_files import DIRECTORY, REPOSITORY, add_json_option, write_result
from benchmarks.runs.side_by_side import Columns, Samples, chosen, in_turn, say

BASELINE, TREE = "baseline", "working tree"
HOME = REPOSITORY / "build" / "baseline"
PYTHONS = {BASELINE: HOME / "venv" / "bin" / "python", TREE: Path(sys.executable)}
LENT = ("benchmarks", "pyspark", "py4j", "pyarrow")
"""Packages that the baseline's environment lacks, and that do not import barnabas by themselves."""


def lend(place: Path) -> None:
    """Put links to the lent packages into a folder for PYTHONPATH: this tree has its `barnabas` beside them."""
    for name in LENT:
        found = find_spec(name)
        if found is not None and found.submodule_search_locations:
            (place / name).symlink_to(Path(found.submodule_search_locations[0]).resolve())


def _environ(place: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(place), "PYTHONSAFEPATH": "1"}  # not this tree's `barnabas` in the working directory


def run(python: Path, benchmark: str, arguments: Sequence[str], place: Path) -> dict[str, Columns]:
    """Run one round of a benchmark. Raises RuntimeError when it fails; its standard error says why.

    Of a line that has several entries in a round, returned are the medians.
    """
    result = place / "result.json"
    environ = {**os.environ, **_environ(place)}
    command = [str(python), "-m", f"benchmarks.{benchmark}", "--rounds", "1", "--json", str(result), *arguments]
    done = subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RuntimeError(f"benchmarks.{benchmark} by {python}: exit code {done.returncode}")
    samples: Samples = json.loads(result.read_text())["samples"]
    return {
        line: {name: median(each[name] for each in found if name in each) for name in found[0]}
        for line, found in samples.items()
    }


def ensure_own_code(place: Path) -> None:
    """Raise RuntimeError unless the baseline's Python imports the baseline."""
    environ = {**os.environ, **_environ(place)}
    command = [str(PYTHONS[BASELINE]), "-c", "import barnabas; print(barnabas.__file__)"]
    found = subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    if not Path(found).is_relative_to(HOME):
        raise RuntimeError(f"the baseline's Python imports {found}, which is not below {HOME}")


def compare(benchmark: str, lines: str, rounds: int, arguments: Sequence[str]) -> Samples:
    """Run all rounds on both; return `program: line` -> one entry per round."""
    names_of = getattr(import_module(f"benchmarks.{benchmark}"), "line_names", None)
    runs = (
        [["--lines", name] for name in chosen(names_of(), lines)] if names_of else [["--lines", lines] if lines else []]
    )
    samples: Samples = defaultdict(list)
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="barnabas-baseline-", dir=DIRECTORY) as home:
        place = Path(home)
        lend(place)
        ensure_own_code(place)
        for options in runs:
            for number in range(rounds):
                for name in in_turn(list(PYTHONS), number):
                    say(f"round {number + 1} of {rounds}: {name}")
                    for line, columns in run(PYTHONS[name], benchmark, [*options, *arguments], place).items():
                        samples[f"{name}: {line}"].append(columns)
    return samples


def render(samples: Mapping[str, list[Columns]], compared: Sequence[str] = ()) -> str:
    """Return the table of ratios, of all columns or of those that are `compared`."""
    rows = ["| line | column | baseline | working tree | ratio (minimum - maximum) |", "|" + " --- |" * 5]
    for line in [name.removeprefix(f"{BASELINE}: ") for name in samples if name.startswith(f"{BASELINE}: ")]:
        old, new = (samples.get(f"{name}: {line}", []) for name in (BASELINE, TREE))
        for column in compared or dict.fromkeys(name for each in old for name in each):
            pairs = [(a[column], b[column]) for a, b in zip(old, new, strict=False) if column in a and column in b]
            if not pairs:
                continue
            ratios = [b / a for a, b in pairs if a] or [float("nan")]
            medians = [
                f"{median(each):,.4g}" if abs(median(each)) < 100 else f"{median(each):,.0f}"
                for each in zip(*pairs, strict=True)
            ]
            spread = f"**{median(ratios):.2f}** ({min(ratios):.2f} - {max(ratios):.2f})"
            rows.append(f"| {line} | {column} | {' | '.join(medians)} | {spread} |")
    return "\n".join(rows)


def main(arguments: list[str]) -> int:
    """Run with these arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.baseline",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--benchmark", default="lines", metavar="NAME", help="a module of this folder (default lines)")
    parser.add_argument("--rounds", type=int, default=3, help="number of runs of each on both (default 3)")
    parser.add_argument("--lines", metavar="TEXT", default="", help="measure only lines whose name contains TEXT")
    add_json_option(parser, "baseline")
    options, others = parser.parse_known_args(arguments)
    if not PYTHONS[BASELINE].exists():
        parser.error("the baseline is not built: make baseline")
    if find_spec(f"benchmarks.{options.benchmark}") is None:
        parser.error(f"there is no benchmark {options.benchmark!r}")
    samples = compare(options.benchmark, options.lines, options.rounds, others)
    compared = getattr(import_module(f"benchmarks.{options.benchmark}"), "COMPARED", ())
    print(render(samples, compared))
    commit = (HOME / "commit").read_text().strip()
    named = [each for each in others if not os.path.isabs(each)]
    described = argparse.Namespace(**vars(options), others=named, baseline=commit)
    is_unnamed = options.json == parser.get_default("json")
    path = options.json.with_stem(f"baseline_{options.benchmark}") if is_unnamed else options.json
    write_result(path, "benchmarks.baseline", described, samples)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

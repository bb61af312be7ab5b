"""The commands beside kcat: `python -m benchmarks.commands`, a million lines of 99 bytes and a newline.

    produce          a file to `barnabas produce` and to `kcat -P`
    produce keyed    the same with keys, of 8 bytes and a tab
    consume          a topic from the beginning to its end, to /dev/null

All of a round on one broker and one partition, in turn, with the programs' own defaults. Wall and CPU time are those of
the whole process, so with the start of the interpreter. kcat (Debian: kcat) is left out where it is not installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.brokers.system import Barnabas
from benchmarks.runs.side_by_side import (
    Columns,
    Round,
    chosen,
    in_turn,
    run_and_report,
    say,
    say_columns,
    side_by_side_options,
)

LINE_BYTES = 99
KEY_BYTES = 8
WORK = ("produce", "produce keyed", "consume")
COLUMNS = (
    ("seconds", "seconds", 1.0, "{:.2f}"),
    ("CPU, s", "cpu_seconds", 1.0, "{:.2f}"),
    ("broker CPU, s", "broker_cpu_seconds", 1.0, "{:.2f}"),
)


def command_of(program: str, work: str, bootstrap: str, topic: str) -> list[str]:
    """Return the command for this work, which reads standard input or writes to standard output."""
    if program == "barnabas":
        options = {
            "produce": [],
            "produce keyed": ["--key-separator", r"\t"],
            "consume": ["--from-beginning", "--exit-at-end"],
        }
        verb = work.partition(" ")[0]
        return [sys.executable, "-m", "barnabas", verb, topic, "--bootstrap", bootstrap, *options[work]]
    options = {
        "produce": ["-P"],
        "produce keyed": ["-P", "-K", r"\t"],
        "consume": ["-C", "-o", "beginning", "-e", "-q"],
    }
    return [program, "-b", bootstrap, "-t", topic, *options[work]]


def line_names() -> list[str]:
    """Return the names of our own lines, which another commit can be compared by."""
    return [f"{work} by barnabas" for work in WORK]


def measured(command: list[str], source: Path) -> Columns:
    """Run a command; return the wall and CPU time of its process. Raises RuntimeError when it fails."""
    with source.open("rb") as lines:
        began = time.monotonic()
        process = subprocess.Popen(command, stdin=lines, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")
    return {"seconds": seconds, "cpu_seconds": used.ru_utime + used.ru_stime}


def measure_lines(round_: Round, lines: list[tuple[str, str]], count: int) -> Mapping[str, Columns]:
    """Measure all lines on one broker."""
    running, dialect = round_.running, round_.system.dialect
    values, keyed = round_.directory / "values", round_.directory / "keyed"
    for path, width in ((values, LINE_BYTES), (keyed, LINE_BYTES - KEY_BYTES - 1)):
        with path.open("w") as file:
            for number in range(count):
                key = f"{number * 7919 % 10**KEY_BYTES:0{KEY_BYTES}d}\t" if path == keyed else ""
                file.write(f"{key}{number:0{width}d}\n")
    command = partial(command_of, bootstrap=f"{running.host}:{running.port}")
    found = {}
    with running.connect() as connection:
        dialect.create(connection, "read")
        measured(command("barnabas", "produce", topic="read"), values)
        for number, (work, program) in enumerate(in_turn(lines, round_.number)):
            topic = "read"
            if work != "consume":
                topic = f"written-{number}"
                dialect.create(connection, topic)
            cpu = running.cpu_seconds()
            columns = measured(command(program, work, topic=topic), keyed if work == "produce keyed" else values)
            columns["broker_cpu_seconds"] = running.cpu_seconds() - cpu
            if (stored := dialect.end_offset(connection, topic)) != count:
                raise RuntimeError(f"{work} by {program}: {stored} of {count} lines are stored")
            found[f"{work} by {program}"] = columns
            say_columns(f"{work} by {program}", columns)
    return found


def main(arguments: list[str]) -> int:
    """Run with these arguments."""
    parser = side_by_side_options("commands", __doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="lines of each command (default 1,000,000)")
    options = parser.parse_args(arguments)
    programs = ["barnabas"]
    if shutil.which("kcat") is None:
        say("left out, because it is not installed: kcat")
    else:
        programs.append("kcat")
    lines = [(work, program) for work in WORK for program in programs]
    names = chosen([f"{work} by {program}" for work, program in lines], options.lines)
    lines = [(work, program) for work, program in lines if f"{work} by {program}" in names]
    return run_and_report(
        "commands",
        options,
        [Barnabas(options.set)],
        lambda round_: measure_lines(round_, lines, options.records),
        COLUMNS,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

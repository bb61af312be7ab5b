"""Profile of the broker under one line of benchmarks.lines: `python -m benchmarks.profile LINE`; `--list` prints them.

perf samples all threads of the broker, in the kernel and in user space, while the line runs. Printed are the shares of
CPU by program part (kernel, interpreter, each compiled kernel) and the first symbols. The samples stay in
build/bench/profile.data:

    perf report -i build/bench/profile.data --no-children       call chains, interactive
    perf script -i build/bench/profile.data                     for flame graphs

With Python 3.12 and newer the broker runs with `-X perf`, so Python functions appear by name (py::...); before, they
are one symbol, the interpreter's loop, and `py-spy record --native --pid PID` has their names. Needs perf (Debian:
linux-perf) and, for symbols of the kernel, root or kernel.perf_event_paranoid below 2.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.brokers.system import Barnabas
from benchmarks.lines import line_names, prepare
from benchmarks.runs.programs import Programs
from benchmarks.runs.result_files import DIRECTORY
from benchmarks.runs.side_by_side import Columns, Round, chosen, say_columns

HAS_PYTHON_SYMBOLS = sys.version_info >= (3, 12)
_REPORT = ("--no-children", "--stdio", "--percent-limit", "0.5")


def record(pid: int, data: Path, frequency: int, work: Callable[[], Columns]) -> Columns:
    """Run `work` while perf samples the process. Raises RuntimeError when perf fails."""
    command = ["perf", "record", "-q", "-F", str(frequency), "-g", "-p", str(pid), "-o", str(data)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as perf:
        try:
            columns = work()
        finally:
            perf.send_signal(signal.SIGINT)
        _, errors = perf.communicate()
    if not data.exists():
        raise RuntimeError(f"perf record: {errors.strip()}")
    return columns


def main(arguments: list[str]) -> int:
    """Run with these arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.profile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("line", nargs="?", help="the name of a line, or a part of one name")
    parser.add_argument("--list", action="store_true", help="print the names of all lines")
    parser.add_argument("--seconds", type=float, default=5.0, help="duration of the line (default 5)")
    parser.add_argument("--frequency", type=int, default=997, help="samples per second (default 997)")
    parser.add_argument("--symbols", type=int, default=40, help="number of symbols printed (default 40)")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="a property of the broker")
    options = parser.parse_args(arguments)
    if options.list or options.line is None:
        print("\n".join(line_names()))
        return 0
    found = chosen(line_names(), options.line)
    if len(found) != 1:
        parser.error(f"{options.line!r} is in the names of {len(found)} lines: see --list")
    if shutil.which("perf") is None:
        parser.error("perf is not installed (Debian: linux-perf)")
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    data = DIRECTORY / "profile.data"
    data.unlink(missing_ok=True)
    program = [sys.executable, *(("-X", "perf") if HAS_PYTHON_SYMBOLS else ()), "-m", "barnabas"]
    system = Barnabas(options.set, program=program)
    with tempfile.TemporaryDirectory(prefix="barnabas-profile-", dir=DIRECTORY) as place:
        with system.start(Path(place)) as running:
            round_ = Round(system, running, Path(place), warm_seconds=1.0)
            work = prepare(found[0], round_, Programs(DIRECTORY / "bin"), options.seconds)
            say_columns(found[0], record(running.pid, data, options.frequency, work))
    for title, sort, lines in (("parts", "dso", 20), ("symbols", "dso,symbol", options.symbols)):
        command = ["perf", "report", "-i", str(data), *_REPORT, "-g", "none", "--sort", sort]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        rows = [row for row in text.splitlines() if row.strip() and not row.startswith("#")]
        print(f"\n{title}:", *rows[:lines], sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

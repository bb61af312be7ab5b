"""The baseline (tools/baseline) and the working tree side by side: `make bench-baseline`, and what each has changed.

    python -m benchmarks.baseline --rounds 5 --seconds 2            # all lines of benchmarks.profile
    python -m benchmarks.baseline --lines "one record"              # only those whose name contains this
    python -m benchmarks.baseline --instructions 2000 --rounds 1    # instructions per request, by callgrind

Each round measures a line on both, on new brokers and in turn; every second round begins with the other one. Printed
are the medians of both, and the median, minimum and maximum of the ratios within the rounds (working tree to baseline):
the times of a machine vary by 30 %, the ratios by less. The JSON file has every sample.

Instructions of a request in user space do not vary with the machine's load. `--instructions N` counts those of N
requests of one record over one connection: by `perf stat` where the machine has the counter, else by callgrind (Debian:
valgrind), under which a start takes half a minute. Without both, a sentence says so, and CPU time stands for them.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.brokers import system as systems
from benchmarks.brokers.system import Barnabas, System
from benchmarks.profile import line_names, prepare
from benchmarks.requests.kafka_dialect import KafkaDialect
from benchmarks.requests.records import build_batch
from benchmarks.runs.programs import Programs
from benchmarks.runs.result_files import DIRECTORY, REPOSITORY, write_result
from benchmarks.runs.side_by_side import (
    Columns,
    Round,
    Samples,
    run_side_by_side,
    say,
    say_columns,
    side_by_side_options,
)
from benchmarks.table.lines import Bench, Workload

BASELINE, TREE = "baseline", "working tree"
COLUMNS = ("mb_per_s", "records_per_s", "requests_per_s", "cpu_us_per_request", "cpu_us_per_record", "p50_us", "p99_us")
COUNTED = "instructions of a request"
_CALLGRIND_START_S = 300.0
_DUMPS = DIRECTORY / "callgrind"
_FACTOR = 2


def programs_of(counter: str | None) -> dict[str, list[str]]:
    """Return the commands of both brokers; `counter`: what counts their instructions. Both are installed packages."""
    pythons = {BASELINE: REPOSITORY / "build" / "baseline" / "venv" / "bin" / "python", TREE: Path(sys.executable)}
    prefix = (
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={_DUMPS}/callgrind.%p"]
        if counter == "callgrind"
        else []
    )
    return {name: [*prefix, str(python), "-P", "-m", "barnabas"] for name, python in pythons.items()}


def find_counter() -> str | None:
    """Return `perf` where the machine counts instructions, else `callgrind` if it is installed, else None."""
    if shutil.which("perf") is not None:
        command = ["perf", "stat", "-x,", "-e", "instructions:u", "true"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stderr[:1].isdigit():
            return "perf"
    return "callgrind" if shutil.which("valgrind") and shutil.which("callgrind_control") else None


def count_instructions(counter: str, pid: int, work: Callable[[], object]) -> int:
    """Return a process's instructions in user space while `work` runs. Raises RuntimeError if none are counted."""
    if counter == "perf":
        command = ["perf", "stat", "-x,", "-e", "instructions:u", "-p", str(pid)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as perf:
            work()
            perf.send_signal(signal.SIGINT)
            said = perf.communicate()[1]
    else:
        subprocess.run(["callgrind_control", "--zero", str(pid)], check=True, capture_output=True)
        work()
        subprocess.run(["callgrind_control", "--dump", str(pid)], check=True, capture_output=True)
        dumps = sorted(_DUMPS.glob(f"callgrind.{pid}*"), key=lambda path: path.stat().st_mtime)
        said = "" if not dumps else "\n".join(re.findall(r"^(?:summary|totals): (\d+)", dumps[-1].read_text(), re.M))
    found = re.match(r"\d+", said)
    if found is None:
        raise RuntimeError(f"{counter} counted nothing: {said}")
    return int(found[0])


def measure_line(round_: Round, programs: Programs, name: str, seconds: float) -> Mapping[str, Columns]:
    """Measure one line after its warm-up."""
    columns = prepare(name, round_, programs, seconds)()
    say_columns(name, columns)
    return {name: columns}


def measure_instructions(round_: Round, programs: Programs, counter: str, requests: int) -> Mapping[str, Columns]:
    """Count the instructions of so many requests, beyond those of half as many: what happens once is left out."""
    work = Workload(build_batch(1, 100), 1, build_batch(1, 100), latency_seconds=1)
    bench = Bench(round_.running, round_.system.dialect, programs, round_.directory, work)
    bench.create_topics()
    send = bench.requests
    send(requests)
    one, two = (
        count_instructions(counter, round_.running.pid, partial(send, count))
        for count in (requests, _FACTOR * requests)
    )
    return {COUNTED: {"instructions": (two - one) / (_FACTOR - 1) / requests}}


def render(samples: Mapping[str, list[Columns]]) -> str:
    """Return the table of ratios."""
    rows = ["| line | column | baseline | working tree | ratio (minimum - maximum) |", "|" + " --- |" * 5]
    for line in [name.removeprefix(f"{BASELINE}: ") for name in samples if name.startswith(BASELINE)]:
        old, new = (samples[f"{name}: {line}"] for name in (BASELINE, TREE))
        for column in (*COLUMNS, "instructions"):
            pairs = [(a[column], b[column]) for a, b in zip(old, new, strict=True) if column in a]
            if not pairs:
                continue
            ratios = [b / a for a, b in pairs if a] or [float("nan")]
            medians = [f"{median(each):,.1f}" for each in zip(*pairs, strict=True)]
            spread = f"**{median(ratios):.2f}** ({min(ratios):.2f} - {max(ratios):.2f})"
            rows.append(f"| {line} | {column} | {' | '.join(medians)} | {spread} |")
    return "\n".join(rows)


def main(arguments: list[str]) -> int:
    """Run with these arguments."""
    parser = side_by_side_options("baseline", __doc__)
    parser.add_argument("--instructions", type=int, metavar="N", help="count those of N requests, and measure no line")
    options = parser.parse_args(arguments)
    counter = None if options.instructions is None else find_counter()
    if options.instructions is not None and counter is None:
        say("neither perf with a counter of instructions nor valgrind is here: CPU time of one-record requests instead")
        options.lines = options.lines or "one record"
    if counter == "callgrind":
        systems.START_SECONDS_MAX = _CALLGRIND_START_S
        _DUMPS.mkdir(parents=True, exist_ok=True)
    compared: list[System] = [
        Barnabas(options.set, KafkaDialect(), name, program) for name, program in programs_of(counter).items()
    ]
    programs = Programs(DIRECTORY / "bin")
    samples: Samples = {}
    if counter is not None:
        count = partial(measure_instructions, programs=programs, counter=counter, requests=options.instructions)
        samples = run_side_by_side(options, compared, count)
    for name in line_names() if counter is None else ():
        if options.lines in name:
            line = partial(measure_line, programs=programs, name=name, seconds=options.seconds)
            samples |= run_side_by_side(options, compared, line)
    shutil.rmtree(_DUMPS, ignore_errors=True)
    print(render(samples))
    write_result(options.json, "benchmarks.baseline", options, samples)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

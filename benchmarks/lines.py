"""Lines of several benchmarks, each on a new broker: those that `benchmarks.baseline` compares unless told otherwise.

    python -m benchmarks.lines --lines "one record"

Requests of 1 MiB, requests of one record, and the lines of benchmarks.end_to_end and benchmarks.many.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial

from benchmarks import end_to_end, many
from benchmarks.requests.frames import create_topic
from benchmarks.requests.records import build_batch, build_full_batch
from benchmarks.runs.programs import Programs
from benchmarks.runs.result_files import DIRECTORY, write_result
from benchmarks.runs.side_by_side import (
    Columns,
    Round,
    Samples,
    chosen,
    render_samples,
    run_side_by_side,
    say_columns,
    side_by_side_options,
    systems_of,
)
from benchmarks.runs.streams import StreamLine, StreamRun
from benchmarks.table.lines import Bench, Workload

CONNECTIONS = (1, 8, 64)
COMPARED = (
    "mb_per_s",
    "records_per_s",
    "requests_per_s",
    "cpu_us_per_request",
    "cpu_us_per_record",
    "p50_us",
    "p99_us",
)
_ONE_RECORD = "one record, connections: {}"
_BULK = ("produce 1 KiB records", "fetch 1 KiB records")


def line_names() -> list[str]:
    """Return the names of all lines."""
    streamed = [line.name for line in (*end_to_end.LINES, *many.lines(1_000))]
    return [*_BULK, *(_ONE_RECORD.format(count) for count in CONNECTIONS), *streamed]


def prepare(name: str, round_: Round, programs: Programs, seconds: float) -> Callable[[], Columns]:
    """Warm a line up; return the function that runs it."""
    bulk = build_full_batch(1 << 20, 1024)
    # About as long as the other lines, at the rate of a slow machine.
    work = Workload(bulk, max(4, int(seconds * 400)), build_batch(1, 100), latency_seconds=seconds)
    bench = Bench(round_.running, round_.system.dialect, programs, round_.directory, work)
    simple: dict[str, Callable[[], Columns]] = {_BULK[0]: bench.produce, _BULK[1]: bench.fetch}
    simple |= {_ONE_RECORD.format(count): partial(bench.one_record, count) for count in CONNECTIONS}
    if name in simple:
        bench.create_topics()
        bench.warm(round_.system.warm_gigabytes, round_.warm_seconds)
        if name == _BULK[1]:
            bench.produce()
        return simple[name]
    (line,) = (each for each in (*end_to_end.LINES, *many.lines(1_000)) if each.name == name)
    with round_.running.connect() as connection:
        topic = create_topic(connection, "profiled", line.partitions)
    kind = StreamRun if isinstance(line, StreamLine) else many.LoadRun
    run = kind(round_, programs, line, topic)  # type: ignore[arg-type]
    run.measure(round_.warm_seconds)
    return partial(run.measure, seconds)


def measure_line(round_: Round, programs: Programs, name: str, seconds: float) -> Mapping[str, Columns]:
    """Measure one line after its warm-up."""
    columns = prepare(name, round_, programs, seconds)()
    say_columns(name, columns)
    return {name: columns}


def main(arguments: list[str]) -> int:
    """Run with these arguments."""
    options = side_by_side_options("lines", __doc__).parse_args(arguments)
    programs = Programs(DIRECTORY / "bin")
    samples: Samples = {}
    for name in chosen(line_names(), options.lines):
        measure = partial(measure_line, programs=programs, name=name, seconds=options.seconds)
        samples |= run_side_by_side(options, systems_of(options), measure)
    print(render_samples(samples, [(name, name, 1.0, "{:,.1f}") for name in COMPARED]))
    write_result(options.json, "benchmarks.lines", options, samples)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

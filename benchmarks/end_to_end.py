"""End-to-end latency: from the moment a record is due at the producer to its arrival at each consumer.

    python -m benchmarks.end_to_end --kafka-jars DIR

One producer sends one-record batches of 100 bytes by the clock and does not wait for answers (an open loop). Consumers
long-poll with min_bytes 1. Latency counts from the moment at which a record was due, so a broker that falls behind is
charged for all records that wait. The client is native/stream.c, with the versions of Kafka 4.3's own client (Produce
13, Fetch 17).

    records/s       records of the line divided by the time until the last one was received: below the line's rate, the
                    broker did not sustain it
    broker CPU      of all threads, per produced record, for all its consumers
    sent late       the generator's own delay, which is part of the latency
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from benchmarks.requests.frames import create_topic
from benchmarks.runs.programs import Programs
from benchmarks.runs.result_files import DIRECTORY
from benchmarks.runs.side_by_side import (
    Columns,
    Round,
    run_and_report,
    say_columns,
    side_by_side_options,
    systems_of,
)
from benchmarks.runs.streams import STREAM_COLUMNS, StreamLine, StreamRun

LINES = (
    StreamLine("1,000 records/s, 1 consumer", 1_000, 1),
    StreamLine("8,000 records/s, 1 consumer", 8_000, 1),
    StreamLine("2,000 records/s, 8 consumers", 2_000, 8),
)


def measure_lines(
    round_: Round, programs: Programs, lines: Sequence[StreamLine], seconds: float
) -> Mapping[str, Columns]:
    """Measure each line after a warm-up with the same requests."""
    found = {}
    for number, line in enumerate(lines):
        with round_.running.connect() as connection:
            topic = create_topic(connection, f"line-{number}", line.partitions)
        run = StreamRun(round_, programs, line, topic)
        run.measure(round_.warm_seconds)
        found[line.name] = run.measure(seconds)
        say_columns(line.name, found[line.name])
    return found


def main(arguments: list[str]) -> int:
    """Run with these arguments."""
    options = side_by_side_options("end_to_end", __doc__).parse_args(arguments)
    programs = Programs(DIRECTORY / "bin")
    lines = [line for line in LINES if options.lines in line.name]
    return run_and_report(
        "end_to_end",
        options,
        systems_of(options),
        lambda round_: measure_lines(round_, programs, lines, options.seconds),
        STREAM_COLUMNS,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

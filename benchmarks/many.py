"""Lines with many of something: partitions, connections, small batches.

    python -m benchmarks.many --kafka-jars DIR

    64 partitions in a request         8 connections, one request in flight each, one record of 100 bytes per partition
    500 connections                    one request of one record in flight each, one partition
    10,000 partitions, 100 active      8 connections that write to the 100 in turn, one record a request
    10 records in a batch: none, lz4, zstd
                                       one connection with five requests in flight, as Kafka's client; JSON values of
                                       about 100 bytes
    1,000 partitions, 10 active        one consumer of all of them, 1,000 records/s by the clock in the 10: with all
                                       partitions in each Fetch, and with fetch sessions (KIP-227). The latency is from
                                       the moment a record is due to its arrival (native/stream.c)

The versions are those of Kafka 4.3's own client. After each line the end offsets are checked.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas.protocol.compression import Codec
from benchmarks.requests.frames import Topic, create_topic, delete_topic, end_offsets, produce_frame
from benchmarks.requests.records import Batch, build_batch, build_batch_of
from benchmarks.runs.programs import Programs
from benchmarks.runs.result_files import DIRECTORY, write_result
from benchmarks.runs.side_by_side import (
    Columns,
    Round,
    Samples,
    render_samples,
    run_side_by_side,
    say,
    say_columns,
    side_by_side_options,
    systems_of,
)
from benchmarks.runs.streams import STREAM_COLUMNS, StreamLine, StreamRun
from benchmarks.table.lines import LATENCY_REQUESTS_MAX

VALUE_BYTES = 100
RECORDS_OF_SMALL_BATCH = 10
FILES_OF_A_PARTITION = 6
"""Share of the process's limit on open files that Barnabas reserves for a partition."""
SPARE_FILES = 1_000

LOAD_COLUMNS = (
    ("requests/s", "requests_per_s", 1.0, "{:,.0f}"),
    ("records/s", "loaded_records_per_s", 1.0, "{:,.0f}"),
    ("p50, ms", "p50_us", 1e-3, "{:.2f}"),
    ("p99, ms", "p99_us", 1e-3, "{:.2f}"),
    ("p99.9, ms", "p999_us", 1e-3, "{:.2f}"),
    ("broker CPU us a request", "cpu_us_per_request", 1.0, "{:.1f}"),
    ("broker CPU us a record", "cpu_us_per_loaded_record", 1.0, "{:.2f}"),
    ("generator busy, %", "generator_busy_percent", 1.0, "{:.0f}"),
)


@dataclass(frozen=True, slots=True)
class LoadLine:
    """A closed loop of Produce: each request writes `batch` to the next `per_request` of the active partitions."""

    name: str
    connections: int
    batch: Batch
    depth: int = 1
    partitions: int = 1
    active: int = 1
    per_request: int = 1

    def requests(self) -> list[list[int]]:
        """Return the partitions of each request; the active ones are spread over the topic."""
        active = [index * self.partitions // self.active for index in range(self.active)]
        return [active[first : first + self.per_request] for first in range(0, self.active, self.per_request)]


class LoadRun:
    """Runs of one closed loop on a running broker."""

    def __init__(self, round_: Round, programs: Programs, line: LoadLine, topic: Topic) -> None:
        """`topic` has the line's number of partitions."""
        self._round = round_
        self._programs = programs
        self._line = line
        self._topic = topic
        self._frames = b"".join(produce_frame(topic, numbers, line.batch.data) for numbers in line.requests())

    def measure(self, seconds: float) -> Columns:
        """Run the line for that time. Raises RuntimeError unless every record was stored."""
        line, running = self._line, self._round.running
        frames = self._round.directory / "frames"
        frames.write_bytes(self._frames)
        with running.connect() as connection:
            before = sum(end_offsets(connection, self._topic.name, line.partitions))
            cpu = running.cpu_seconds()
            sent = self._programs.load(
                running.host,
                running.port,
                frames,
                connections=line.connections,
                depth=line.depth,
                requests=LATENCY_REQUESTS_MAX,
                seconds=seconds,
            )
            cpu = running.cpu_seconds() - cpu
            stored = sum(end_offsets(connection, self._topic.name, line.partitions)) - before
        records = sent["requests"] * line.per_request * line.batch.record_count
        if stored != records:
            raise RuntimeError(f"{line.name}: {records} records were answered, {stored} are stored")
        return {
            "requests_per_s": sent["requests"] / sent["seconds"],
            "loaded_records_per_s": records / sent["seconds"],
            "cpu_us_per_request": cpu / sent["requests"] * 1e6,
            "cpu_us_per_loaded_record": cpu / records * 1e6,
            "generator_busy_percent": 100 * sent["cpu_seconds"] / sent["seconds"],
            "p50_us": sent["p50_us"],
            "p99_us": sent["p99_us"],
            "p999_us": sent["p999_us"],
        }


def small_batch(codec: Codec) -> Batch:
    """Return a batch of ten JSON values, as compressible as events usually are."""
    cities = ("Antwerp", "Bergen", "Cork", "Dresden")
    values = [
        f'{{"order": {7_000_000 + number * 7919}, "customer": "c-{number * 31337 % 100_000}", '
        f'"city": "{cities[number % 4]}", "amount": {number * 1.37:.2f}, "paid": true}}'.encode()
        for number in range(RECORDS_OF_SMALL_BATCH)
    ]
    return build_batch_of(values, codec)


def lines(partitions: int) -> list[LoadLine | StreamLine]:
    """Return all lines; `partitions` are those of the last one."""
    one = build_batch(1, VALUE_BYTES)
    return [
        LoadLine("64 partitions in a request", 8, one, partitions=64, active=64, per_request=64),
        LoadLine("500 connections", 500, one),
        *(
            LoadLine(f"10 records in a batch: {codec.name.lower()}", 1, small_batch(codec), depth=5)
            for codec in (Codec.NONE, Codec.LZ4, Codec.ZSTD)
        ),
        *(
            StreamLine(
                f"1,000 partitions, 10 active: {name} fetch sessions",
                rate=1_000,
                consumers=1,
                partitions=1_000,
                active=10,
                with_sessions=name == "with",
            )
            for name in ("without", "with")
        ),
        LoadLine(f"{partitions:,} partitions, 100 active", 8, one, partitions=partitions, active=100),
    ]


def measure_lines(
    round_: Round, programs: Programs, chosen: Sequence[LoadLine | StreamLine], seconds: float
) -> Mapping[str, Columns]:
    """Measure each line after a warm-up with the same requests."""
    found = {}
    topic: Topic | None = None
    for line in chosen:
        if topic is None or topic.partitions != line.partitions:
            topic = _replace_topic(round_, topic, line.partitions)
        run = (
            StreamRun(round_, programs, line, topic)
            if isinstance(line, StreamLine)
            else LoadRun(round_, programs, line, topic)
        )
        run.measure(round_.warm_seconds)
        found[line.name] = run.measure(seconds)
        say_columns(line.name, found[line.name])
    return found


def _replace_topic(round_: Round, old: Topic | None, partitions: int) -> Topic:
    """Create the next lines' topic; the last lines' goes first, so that its open files do not limit the new one."""
    with round_.running.connect() as connection:
        if old is not None:
            delete_topic(connection, old.name)
        return create_topic(connection, f"many-{partitions}", partitions)


def _has_descriptors(line: LoadLine | StreamLine) -> bool:
    """Return whether a broker started here can open the line's partitions; if not, say so: the line is left out."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = line.partitions * FILES_OF_A_PARTITION + SPARE_FILES
    if hard == resource.RLIM_INFINITY or needed <= hard:
        return True
    say(f"left out, because the limit on open files is {hard}: {line.name} (ulimit -n {needed})")
    return False


def main(arguments: list[str]) -> int:
    """Run with these arguments."""
    parser = side_by_side_options("many", __doc__)
    parser.add_argument(
        "--partitions",
        type=int,
        default=10_000,
        help="partitions of the line with most of them (default 10,000, which needs ulimit -n 61000)",
    )
    options = parser.parse_args(arguments)
    programs = Programs(DIRECTORY / "bin")
    chosen = [line for line in lines(options.partitions) if options.lines in line.name and _has_descriptors(line)]
    samples = run_side_by_side(
        options, systems_of(options), lambda round_: measure_lines(round_, programs, chosen, options.seconds)
    )
    streamed: Samples = {line: rounds for line, rounds in samples.items() if "records_per_s" in rounds[0]}
    loaded: Samples = {line: rounds for line, rounds in samples.items() if line not in streamed}
    for part, columns in ((loaded, LOAD_COLUMNS), (streamed, STREAM_COLUMNS)):
        if part:
            print(render_samples(part, columns), end="\n\n")
    write_result(options.json, "benchmarks.many", options, samples)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

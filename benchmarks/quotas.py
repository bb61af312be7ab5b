"""Cost of a byte quota that no client reaches: `python -m benchmarks.quotas`, with --kafka-jars beside Apache Kafka.

    produce    one record of 100 bytes a request, 8 connections, one request in flight each
    fetch      the same records, one a request

A quota of the generator's client id (1 TB/s) is set and removed in turn, in short slices on one broker: two processes
with the same code differ by more than a quota costs. CPU is the broker's, per request.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.requests.frames import alter_client_quota, create_topic, produce_frame
from benchmarks.requests.kafka_dialect import KafkaDialect
from benchmarks.requests.records import build_batch
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
from benchmarks.table.lines import LATENCY_REQUESTS_MAX

TOPIC = "measured"
CONNECTIONS = 8
VALUE_BYTES = 100
FETCHED = 64
SLICE_SECONDS = 0.5
CLIENT_ID = "benchmark"
QUOTAS = {"producer_byte_rate": 1e12, "consumer_byte_rate": 1e12}

_COLUMNS = (
    ("broker CPU us a request, without", "without_us", 1.0, "{:.1f}"),
    ("with a quota", "with_us", 1.0, "{:.1f}"),
    ("added, %", "added_percent", 1.0, "{:+.1f}"),
    ("requests/s, without", "without_per_s", 1.0, "{:,.0f}"),
    ("with", "with_per_s", 1.0, "{:,.0f}"),
)


class Load:
    """Requests of one line, and the broker's CPU for them with and without the quota."""

    def __init__(self, round_: Round, programs: Programs, frames: Path) -> None:
        self._running = round_.running
        self._programs = programs
        self._frames = frames
        self.forget()

    def forget(self) -> None:
        """Start counting again."""
        self._cpu = {False: 0.0, True: 0.0}
        self._seconds = dict(self._cpu)
        self._requests = dict(self._cpu)

    def run(self, connection: socket.socket, seconds: float, *, limited: bool) -> None:
        """Send requests for that time, with or without the quota."""
        alter_client_quota(connection, CLIENT_ID, QUOTAS if limited else dict.fromkeys(QUOTAS))
        cpu = self._running.cpu_seconds()
        done = self._programs.load(
            self._running.host,
            self._running.port,
            self._frames,
            connections=CONNECTIONS,
            depth=1,
            requests=LATENCY_REQUESTS_MAX,
            seconds=seconds,
        )
        self._cpu[limited] += self._running.cpu_seconds() - cpu
        self._seconds[limited] += done["seconds"]
        self._requests[limited] += done["requests"]

    def columns(self) -> Columns:
        """Return the broker's CPU per request, and the rates."""
        without_us, with_us = (self._cpu[side] / self._requests[side] * 1e6 for side in (False, True))
        return {
            "without_us": without_us,
            "with_us": with_us,
            "added_percent": 100 * (with_us / without_us - 1),
            "without_per_s": self._requests[False] / self._seconds[False],
            "with_per_s": self._requests[True] / self._seconds[True],
        }


def measure(round_: Round, programs: Programs, seconds: float, lines: str) -> Mapping[str, Columns]:
    """Measure both lines on the running broker."""
    batch = build_batch(1, VALUE_BYTES).data
    dialect = KafkaDialect()
    produces, fetches = round_.directory / "produce-frames", round_.directory / "fetch-frames"
    found = {}
    with round_.running.connect() as connection:
        topic = create_topic(connection, TOPIC, 1)
        produces.write_bytes(produce_frame(topic, [0], batch))
        fetches.write_bytes(b"".join(dialect.fetch(TOPIC, offset, len(batch)) for offset in range(FETCHED)))
        warm = max(round_.warm_seconds / 2, SLICE_SECONDS)
        Load(round_, programs, produces).run(connection, warm, limited=False)  # records for the fetches, too
        for line, frames in (("produce", produces), ("fetch", fetches)):
            if lines not in line:
                continue
            load = Load(round_, programs, frames)
            for limited in (False, True):
                load.run(connection, warm, limited=limited)
            load.forget()
            for number in range(max(2, round(seconds / SLICE_SECONDS))):
                for limited in (False, True) if number % 2 else (True, False):
                    load.run(connection, SLICE_SECONDS, limited=limited)
            found[line] = load.columns()
            say_columns(line, found[line])
    return found


def main(arguments: list[str]) -> int:
    """Run with these arguments."""
    options = side_by_side_options("quotas", __doc__).parse_args(arguments)
    programs = Programs(DIRECTORY / "bin")
    return run_and_report(
        "quotas",
        options,
        systems_of(options),
        lambda round_: measure(round_, programs, options.seconds, options.lines),
        _COLUMNS,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

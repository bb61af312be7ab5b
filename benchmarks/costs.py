"""What single things cost the broker, compiled and by its Python code: start, memory, and requests of one kind.

    python -m benchmarks.costs                          # CPU time and latency
    python -m benchmarks.costs --instructions 2000      # instructions of a start and of a request

    start           from exec to the first answer on an empty directory: time, CPU; memory and CPU of an idle broker
    one record      Produce of one record of 100 bytes, acks=1
    OffsetCommit    of 10 partitions, by a consumer that assigns them itself
    Heartbeat       of the only member of a classic group
    Metadata        of all topics, 1,000 with one partition each, in the version of current clients

One connection with one request in flight (native/load.c). "Barnabas without kernels" is the same broker with
BARNABAS_KERNEL=python: the Python code that every request that is not the common one takes.

Instructions are those in user space (runs/instructions.py). Under callgrind a start takes half a minute.
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from socket import socket
from typing import NamedTuple

from benchmarks.brokers.system import Barnabas, System
from benchmarks.groups import commit_frame
from benchmarks.requests.frames import call, flexible_frame, plain_frame, text
from benchmarks.requests.kafka_dialect import KafkaDialect, receive_exactly
from benchmarks.requests.records import build_batch
from benchmarks.runs.instructions import InstructionCounter, instruction_counter
from benchmarks.runs.programs import Programs
from benchmarks.runs.result_files import DIRECTORY
from benchmarks.runs.side_by_side import (
    Columns,
    Round,
    chosen,
    run_and_report,
    say,
    say_columns,
    side_by_side_options,
)
from benchmarks.table.lines import LATENCY_REQUESTS_MAX, footprint

START = "start"
GROUP = "costs"
SETTINGS = ["group.initial.rebalance.delay.ms=0"]
SESSION_MS = 1_800_000
TOPICS = 1_000
READY_SECONDS_MAX = 60.0
_METADATA, _JOIN_GROUP, _HEARTBEAT, _SYNC_GROUP, _CREATE_TOPICS = 3, 11, 12, 14, 19
_METADATA_VERSION = 12
_NOT_READY = (14, 15, 16)
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR."""

COLUMNS = (
    ("CPU us a request", "cpu_us_per_request", 1.0, "{:.1f}"),
    ("p50, us", "p50_us", 1.0, "{:.0f}"),
    ("instructions", "instructions", 1.0, "{:,.0f}"),
    ("first answer, s", "start_s", 1.0, "{:.3f}"),
    ("CPU until then, s", "start_cpu_s", 1.0, "{:.2f}"),
    ("idle RSS, MiB", "idle_rss_mib", 1.0, "{:.1f}"),
    ("idle CPU, %", "idle_cpu_percent", 1.0, "{:.2f}"),
)


class Request(NamedTuple):
    """A frame to send again and again, and whether an answer, without its size and correlation id, is the right one.

    `share` of the requests are enough to count instructions.
    """

    frame: bytes
    is_right: Callable[[bytes], bool]
    share: float = 1.0


def one_record(connection: socket) -> Request:
    dialect = KafkaDialect()
    dialect.create(connection, "small")
    return Request(dialect.produce("small", build_batch(1, 100).data), _has_no_error_at(4 + 2 + len("small") + 4 + 4))


def offset_commit(connection: socket) -> Request:
    KafkaDialect().create(connection, "orders", 10)
    return Request(commit_frame(GROUP, 1), _has_no_error_at(4 + 4 + 2 + len("orders") + 4 + 4))


def heartbeat(connection: socket) -> Request:
    """Join a group as its only member."""
    group = text(f"{GROUP}-member")
    protocol = text("consumer") + struct.pack(">i", 1) + text("range") + struct.pack(">i", 0)
    joining = group + struct.pack(">ii", SESSION_MS, SESSION_MS) + text("") + protocol
    joined = _answer_of_coordinator(connection, _JOIN_GROUP, 2, joining)
    at = 6 + 4
    for _ in ("protocol", "leader"):
        at += 2 + int.from_bytes(joined[at : at + 2], "big")
    member = joined[at : at + 2 + int.from_bytes(joined[at : at + 2], "big")]
    named = group + joined[6:10] + member
    _answer_of_coordinator(connection, _SYNC_GROUP, 1, named + struct.pack(">i", 1) + member + struct.pack(">i", 0))
    return Request(plain_frame(_HEARTBEAT, 0, named), _has_no_error_at(0))


def metadata(connection: socket) -> Request:
    """Create the topics in one request."""
    topics = b"".join(text(f"topic-{number:04d}") + struct.pack(">ihii", 1, 1, 0, 0) for number in range(TOPICS))
    created = call(connection, _CREATE_TOPICS, 2, struct.pack(">i", TOPICS) + topics + struct.pack(">ib", 600_000, 0))
    if any(created[at : at + 2] != b"\0\0" for at in range(8 + 2 + len("topic-0000"), len(created), 2 + 10 + 2 + 2)):
        raise RuntimeError(f"topics were not created: {created[:100]!r}")
    frame = flexible_frame(_METADATA, _METADATA_VERSION, b"\0\0\0\0")
    return Request(frame, lambda answer: answer.count(b"topic-") == TOPICS, share=0.01)


REQUESTS: Mapping[str, Callable[[socket], Request]] = {
    "one record": one_record,
    "OffsetCommit of 10 partitions": offset_commit,
    "Heartbeat": heartbeat,
    f"Metadata of {TOPICS:,} topics": metadata,
}


def line_names() -> list[str]:
    """Return the names of all lines."""
    return [START, *REQUESTS]


class Costs:
    """The lines of one command. With `counter` and `requests`, instructions instead of times."""

    def __init__(self, programs: Programs, lines: list[str], seconds: float) -> None:
        self.counter: InstructionCounter | None = None
        self.requests = 0
        self._programs = programs
        self._lines = lines
        self._seconds = seconds

    def measure(self, round_: Round) -> Mapping[str, Columns]:
        """Measure all lines on one new broker."""
        found = {}
        for line in self._lines:
            columns = self._start(round_) if line == START else self._request(round_, REQUESTS[line])
            say_columns(line, columns)
            found[line] = columns
        return found

    def _start(self, round_: Round) -> Columns:
        counted = None if self.counter is None else self.counter.since_start(round_.running.pid)
        if self.counter is None:
            return footprint(round_.running)
        return {} if counted is None else {"instructions": counted}

    def _request(self, round_: Round, prepare: Callable[[socket], Request]) -> Columns:
        running = round_.running
        frames = round_.directory / "frames"
        load = partial(self._programs.load, running.host, running.port, frames, connections=1, depth=1)
        with running.connect() as connection:
            connection.settimeout(None if self.counter is not None else READY_SECONDS_MAX)
            request = prepare(connection)
            frames.write_bytes(request.frame)
            _check(connection, request)
            if self.counter is not None:
                # Beyond those of half as many: what happens once, or from time to time, is left out.
                count = max(1, int(self.requests * request.share))
                load(requests=count)
                one = self.counter.count(running.pid, partial(load, requests=count))
                two = self.counter.count(running.pid, partial(load, requests=2 * count))
                columns: Columns = {"instructions": (two - one) / count}
            else:
                load(requests=LATENCY_REQUESTS_MAX, seconds=round_.warm_seconds)
                cpu = running.cpu_seconds()
                sent = load(requests=LATENCY_REQUESTS_MAX, seconds=self._seconds)
                cpu = running.cpu_seconds() - cpu
                columns = {"cpu_us_per_request": cpu / sent["requests"] * 1e6}
                columns |= {name: sent[name] for name in ("p50_us", "p99_us")}
            _check(connection, request)
        return columns


def _check(connection: socket, request: Request) -> None:
    """Send it once. Raises RuntimeError for another answer than the right one."""
    give_up = time.monotonic() + READY_SECONDS_MAX
    while True:
        connection.sendall(request.frame)
        answer = receive_exactly(connection, int.from_bytes(receive_exactly(connection, 4), "big"))[4:]
        if request.is_right(answer):
            return
        if time.monotonic() > give_up:
            raise RuntimeError(f"a wrong answer: {answer[:200]!r}")
        time.sleep(0.01)


def _answer_of_coordinator(connection: socket, api: int, version: int, body: bytes) -> bytes:
    """Send a request whose answer begins with throttle time and error code, until the group's coordinator is ready."""
    give_up = time.monotonic() + READY_SECONDS_MAX
    while True:
        answer = call(connection, api, version, body)
        (error,) = struct.unpack_from(">h", answer, 4)
        if not error:
            return answer
        if error not in _NOT_READY or time.monotonic() > give_up:
            raise RuntimeError(f"api {api}: error {error}")
        time.sleep(0.01)


def _has_no_error_at(position: int) -> Callable[[bytes], bool]:
    return lambda answer: answer[position : position + 2] == b"\0\0"


def main(arguments: list[str]) -> int:
    """Run with these arguments."""
    parser = side_by_side_options("costs", __doc__)
    parser.add_argument("--instructions", type=int, metavar="N", help="count those of N requests, and take no times")
    options = parser.parse_args(arguments)
    costs = Costs(Programs(DIRECTORY / "bin"), chosen(line_names(), options.lines), options.seconds)
    with instruction_counter() as counter:
        if options.instructions is not None:
            if counter is None:
                say("neither perf with a counter of instructions nor valgrind is here: CPU time instead")
            costs.counter, costs.requests = counter, options.instructions
        program = [*(() if costs.counter is None else costs.counter.prefix), sys.executable, "-m", "barnabas"]
        settings = [*SETTINGS, *options.set]
        systems: list[System] = [
            Barnabas(settings, program=program),
            Barnabas(settings, name="Barnabas without kernels", program=program, kernel="python"),
        ]
        return run_and_report("costs", options, systems, costs.measure, COLUMNS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

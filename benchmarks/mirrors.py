"""Mirrors: throughput and CPU of a catch-up, and the delay of records, beside MirrorMaker 2.

    python -m benchmarks.mirrors [--kafka-jars DIR --mirror-maker-jars DIR]
    python -m benchmarks.mirrors --lines beside --gigabytes 12 --seconds 60

    catch-up            a topic of --gigabytes in records of --value-bytes is copied; MB/s, and CPU seconds per GB at
                        the source and at the copying side, from the first copied record to the last
    N records/s         records of 100 bytes arrive at the source by the clock; the delay is from the moment at which a
                        batch is due there to its arrival at a consumer of the copy, so it includes the produce request
    produces beside ... a client of the copying broker produces records of 100 bytes to another topic, one after the
                        other, for --seconds or until the catch-up ends: beside nothing, beside a catch-up, and beside
                        one that is limited to --limit-mb a second. Each has a new broker. Not for MirrorMaker 2

The source is a Barnabas. A mirror copies into a second Barnabas. MirrorMaker 2 runs as a process of its own with one
task and Kafka's defaults, and copies into Apache Kafka; its CPU and that of the broker are added up. MirrorMaker 2
handles each record by itself, so its CPU depends on the size of the records; that of a mirror does not.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Protocol

from barnabas.clients.admin.admin import Admin
from barnabas.clients.config import AdminConfig
from benchmarks.brokers.apache_kafka import ApacheKafka
from benchmarks.brokers.system import Barnabas, Running, System, cpu_seconds_of
from benchmarks.requests.frames import Topic, call, create_topic, end_offsets, produce_frame, text
from benchmarks.requests.kafka_dialect import receive_exactly
from benchmarks.requests.records import build_batch, build_full_batch
from benchmarks.runs.result_files import write_result
from benchmarks.runs.side_by_side import Columns, Samples, render_samples, say, say_columns, side_by_side_options

TOPIC = "mirrored"
LOCAL_TOPIC = "local"
RATES = (1_000, 50_000)
VALUE_BYTES = 100
TICK_SECONDS = 0.001
COPY_SECONDS_MAX = 900.0
CATCH_UP = "catch-up"

_FETCH, _FETCH_VERSION = 1, 4
_MAX_BYTES = 8 << 20
_WARM_REQUESTS = 1_000
_LOOK_SECONDS = 0.25
"""Between two looks at the end of the copy."""
_WAIT_MS = 500
_FILL_BATCH_BYTES = 1_000_000
_BATCH_HEADER = struct.Struct(">qi")
_LAST_OFFSET_DELTA_AT = 23

COLUMNS = (
    ("MB/s", "mb_per_s", 1.0, "{:,.0f}"),
    ("source CPU s/GB", "source_cpu_s_per_gb", 1.0, "{:.2f}"),
    ("copy CPU s/GB", "copy_cpu_s_per_gb", 1.0, "{:.2f}"),
    ("records/s", "records_per_s", 1.0, "{:,.0f}"),
    ("produce p50, ms", "produce_p50_ms", 1.0, "{:.2f}"),
    ("produce p99, ms", "produce_p99_ms", 1.0, "{:.2f}"),
    ("produce max, ms", "produce_max_ms", 1.0, "{:.1f}"),
    ("delay p50, ms", "p50_ms", 1.0, "{:.1f}"),
    ("delay p99, ms", "p99_ms", 1.0, "{:.1f}"),
    ("source CPU, %", "source_busy", 100.0, "{:.0f}"),
    ("copy CPU, %", "copy_busy", 100.0, "{:.0f}"),
)


@dataclass(frozen=True, slots=True)
class Copying:
    """A source, the broker that it is copied into, and the processes that the copying side's CPU time is counted of."""

    source: Running
    target: Running
    pids: tuple[int, ...]

    def cpu_seconds(self) -> tuple[float, float]:
        """Return the CPU time of the source, and of the copying side, so far."""
        return self.source.cpu_seconds(), sum(cpu_seconds_of(each) for each in self.pids)


def main() -> int:
    """Measure all rounds, print the table and write the JSON file."""
    options = _options()
    options.directory.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="barnabas-bench-", dir=options.directory))
    samples: Samples = {}
    ways: dict[str, Way] = {"mirror": BarnabasMirror(options.set)}
    if options.kafka_jars is not None and options.mirror_maker_jars is not None:
        ways["MirrorMaker 2"] = MirrorMaker(options.kafka_jars, options.mirror_maker_jars)
    try:
        for number in range(options.rounds):
            for name, way in list(ways.items())[:: -1 if number % 2 else 1]:
                say(f"round {number + 1} of {options.rounds}: {name}")
                for line, columns in _measure(way, options, home / f"{number}-{name.replace(' ', '-')}").items():
                    say_columns(line, columns)
                    samples.setdefault(f"{name}: {line}", []).append(columns)
    finally:
        shutil.rmtree(home)
    print(render_samples(samples, COLUMNS))
    write_result(options.json, "benchmarks.mirrors", options, samples)
    return 0


def _options() -> argparse.Namespace:
    parser = side_by_side_options("mirrors", __doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0, help="size of the catch-up (default 2)")
    parser.add_argument(
        "--value-bytes", type=int, default=1_000, metavar="N", help="size of the catch-up's records (default 1000)"
    )
    parser.add_argument(
        "--limit-mb", type=float, default=20.0, metavar="N", help="limit of the limited catch-up, MB/s (default 20)"
    )
    parser.add_argument(
        "--mirror-maker-jars", type=Path, metavar="DIR", help="measure MirrorMaker 2 too, with --kafka-jars"
    )
    return parser.parse_args()


class Way(Protocol):
    """A way to copy a topic into another broker."""

    target: System

    def copying(self, source: Running, target: Running, directory: Path) -> AbstractContextManager[Copying]:
        """Copy the topic until the block ends."""
        ...


class BarnabasMirror:
    """A mirror in a second Barnabas."""

    def __init__(self, settings: list[str], bytes_per_second: int | None = None) -> None:
        self.target: System = Barnabas(settings)
        self._bytes_per_second = bytes_per_second

    @contextmanager
    def copying(self, source: Running, target: Running, directory: Path) -> Iterator[Copying]:
        """Create a mirror on the target."""

        async def create() -> None:
            async with Admin(AdminConfig(bootstrap=f"{target.host}:{target.port}")) as admin:
                await admin.mirrors.create(
                    "bench",
                    bootstrap=[f"{source.host}:{source.port}"],
                    topics=[TOPIC],
                    max_bytes_per_second=self._bytes_per_second,
                )

        asyncio.run(create())
        yield Copying(source, target, (target.pid,))


class MirrorMaker:
    """MirrorMaker 2 between the source and an Apache Kafka."""

    def __init__(self, kafka_jars: Path, jars: Path) -> None:
        self.target: System = ApacheKafka(kafka_jars)
        self._jars = jars

    @contextmanager
    def copying(self, source: Running, target: Running, directory: Path) -> Iterator[Copying]:
        """Run MirrorMaker 2."""
        replicated = ("offset-syncs.topic", "checkpoints.topic", "heartbeats.topic")
        stored = ("offset.storage", "status.storage", "config.storage")
        properties = directory / "mm2.properties"
        properties.write_text(
            "\n".join(
                [
                    "clusters=source,target",
                    f"source.bootstrap.servers={source.host}:{source.port}",
                    f"target.bootstrap.servers={target.host}:{target.port}",
                    "source->target.enabled=true",
                    f"source->target.topics={TOPIC}",
                    "target->source.enabled=false",
                    "target->source.emit.heartbeats.enabled=false",
                    "offset-syncs.topic.location=target",
                    "sync.topic.acls.enabled=false",
                    "refresh.topics.interval.seconds=1",
                    "replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
                    "replication.factor=1",
                    *(f"{each}.replication.factor=1" for each in (*replicated, *stored)),
                    "tasks.max=1",
                    "source.consumer.auto.offset.reset=earliest",
                ]
            )
            + "\n"
        )
        command = ["java", "-Xmx1G", "-cp", f"{self._jars}/*", "org.apache.kafka.connect.mirror.MirrorMaker"]
        with (directory / "mm2.log").open("wb") as log:
            process = subprocess.Popen([*command, str(properties)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield Copying(source, target, (target.pid, process.pid))
        finally:
            process.kill()
            process.wait()


def _measure(way: Way, options: argparse.Namespace, directory: Path) -> dict[str, Columns]:
    """Measure all lines of one round: the catch-up first, which warms the delays up."""
    found: dict[str, Columns] = {}
    beside = {line: each for line, each in _beside(way, options).items() if options.lines in line}
    rates = {f"{rate:,} records/s": rate for rate in RATES if options.lines in f"{rate:,} records/s"}
    source_place = directory / "source"
    source_place.mkdir(parents=True)
    with ExitStack() as stack:
        source = stack.enter_context(Barnabas(options.set).start(source_place))
        connection = stack.enter_context(source.connect())
        topic = create_topic(connection, TOPIC, 1)
        size = _fill(connection, topic, options.gigabytes, options.value_bytes)
        (end,) = end_offsets(connection, TOPIC, 1)
        if rates or options.lines in CATCH_UP:
            with _target(way, directory / "target") as target, way.copying(source, target, directory) as copying:
                found[CATCH_UP] = _catch_up(copying, size, end)
                for line, rate in rates.items():
                    found[line] = _delay(copying, topic, rate, options.seconds)
        for line, each in beside.items():
            with _target(way, directory / "beside") as target:
                with ExitStack() if each is None else each.copying(source, target, directory):
                    found[line] = _produce(target, options.seconds, None if each is None else end, size)
    return found


@contextmanager
def _target(way: Way, directory: Path) -> Iterator[Running]:
    """Start the broker that is copied into; remove what it has in the end, for the room."""
    directory.mkdir()
    try:
        with way.target.start(directory) as target:
            yield target
    finally:
        shutil.rmtree(directory)


def _beside(way: Way, options: argparse.Namespace) -> dict[str, Way | None]:
    """Return what produces are measured beside, by line; None for nothing."""
    if not isinstance(way, BarnabasMirror):
        return {}
    return {
        "produces beside nothing": None,
        "produces beside a catch-up": way,
        f"produces beside {options.limit_mb:g} MB/s": BarnabasMirror(options.set, int(options.limit_mb * 1e6)),
    }


def _fill(connection: socket.socket, topic: Topic, gigabytes: float, value_bytes: int) -> int:
    """Write batches of at most 1 MB; return the bytes."""
    batch = build_full_batch(_FILL_BATCH_BYTES, value_bytes).data
    frame = produce_frame(topic, [0], batch)
    count = max(1, round(gigabytes * 1e9 / len(batch)))
    for _ in range(count):
        _request(connection, frame)
    return count * len(batch)


def _catch_up(copying: Copying, size: int, end: int) -> Columns:
    """Wait until the copy has the end offset. Raises RuntimeError after COPY_SECONDS_MAX."""
    first = _await_end(copying.target, 1)
    begun, (source, copy) = time.monotonic(), copying.cpu_seconds()
    _await_end(copying.target, end)
    seconds = time.monotonic() - begun
    source_after, copy_after = copying.cpu_seconds()
    copied = size * (end - first) / end
    return {
        "mb_per_s": copied / 1e6 / max(seconds, 1e-9),
        "source_cpu_s_per_gb": (source_after - source) / max(copied, 1) * 1e9,
        "copy_cpu_s_per_gb": (copy_after - copy) / max(copied, 1) * 1e9,
    }


def _produce(target: Running, seconds: float, end: int | None, size: int) -> Columns:
    """Produce single records for that long, or until the copy has `end`; None: nothing is copied."""
    with target.connect() as producing, target.connect() as asking:
        frame = produce_frame(create_topic(producing, LOCAL_TOPIC, 1), [0], build_batch(1, VALUE_BYTES).data)
        for _ in range(_WARM_REQUESTS):
            _request(producing, frame)
        copied = first = 0 if end is None else _await_end(target, 1)
        begun = looked = time.monotonic()
        found: list[float] = []
        while looked < begun + seconds and (end is None or copied < end):
            while (now := time.monotonic()) < looked + _LOOK_SECONDS:
                _request(producing, frame)
                found.append(time.monotonic() - now)
            looked = now
            if end is not None:
                (copied,) = end_offsets(asking, TOPIC, 1)
        spent = time.monotonic() - begun
        (stored,) = end_offsets(asking, LOCAL_TOPIC, 1)
    if stored != len(found) + _WARM_REQUESTS:
        raise RuntimeError(f"{len(found) + _WARM_REQUESTS} records were produced, and {stored} are stored")
    cuts = quantiles(found, n=100)
    columns = {
        "produce_p50_ms": cuts[49] * 1000,
        "produce_p99_ms": cuts[98] * 1000,
        "produce_max_ms": max(found) * 1000,
    }
    if end is not None:
        columns["mb_per_s"] = size * (copied - first) / end / 1e6 / spent
    return columns


def _request(connection: socket.socket, frame: bytes) -> None:
    connection.sendall(frame)
    receive_exactly(connection, int.from_bytes(receive_exactly(connection, 4), "big"))


def _await_end(target: Running, end: int) -> int:
    """Wait until the copy has at least this end offset; return the end. Raises RuntimeError when it takes too long."""
    give_up = time.monotonic() + COPY_SECONDS_MAX
    with target.connect() as connection:
        while time.monotonic() < give_up:
            try:
                (found,) = end_offsets(connection, TOPIC, 1)
            except RuntimeError:  # the topic is not created yet
                found = 0
            if found >= end:
                return found
            time.sleep(0.01)
    raise RuntimeError(f"the copy has not reached offset {end} within {COPY_SECONDS_MAX:.0f} s")


def _delay(copying: Copying, topic: Topic, rate: int, seconds: float) -> Columns:
    """Produce by the clock and consume from the copy; return the delays of all batches."""
    with copying.source.connect() as producing, copying.target.connect() as consuming:
        (start,) = end_offsets(producing, TOPIC, 1)
        _await_end(copying.target, start)
        per_batch = max(1, round(rate * TICK_SECONDS))
        batches = round(rate * seconds / per_batch)
        interval = per_batch / rate
        frame = produce_frame(topic, [0], build_batch(per_batch, VALUE_BYTES).data)
        begun = time.monotonic() + 0.1
        before = copying.cpu_seconds()
        producer = threading.Thread(target=_produce_by_the_clock, args=(producing, frame, begun, interval, batches))
        producer.start()
        delays = _consume(consuming, start, [begun + index * interval for index in range(batches)], per_batch)
        producer.join()
        spent = time.monotonic() - begun
        after = copying.cpu_seconds()
    cuts = quantiles(delays, n=100)
    return {
        "records_per_s": batches * per_batch / spent,
        "p50_ms": cuts[49] * 1000,
        "p99_ms": cuts[98] * 1000,
        "source_busy": (after[0] - before[0]) / spent,
        "copy_busy": (after[1] - before[1]) / spent,
    }


def _produce_by_the_clock(connection: socket.socket, frame: bytes, begun: float, interval: float, count: int) -> None:
    """Send each batch when it is due; a late answer delays the next ones, which counts as their delay."""
    for index in range(count):
        pause = begun + index * interval - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        _request(connection, frame)


def _consume(connection: socket.socket, start: int, due: list[float], per_batch: int) -> list[float]:
    """Fetch from `start` on until all batches have arrived; return the delay of each in seconds."""
    delays: list[float] = []
    offset, end = start, start + len(due) * per_batch
    give_up = time.monotonic() + COPY_SECONDS_MAX
    while offset < end:
        body = struct.pack(">iiiib", -1, _WAIT_MS, 1, _MAX_BYTES, 0) + struct.pack(">i", 1) + text(TOPIC)
        body += struct.pack(">iiqi", 1, 0, offset, _MAX_BYTES)
        answer = call(connection, _FETCH, _FETCH_VERSION, body)
        now = time.monotonic()
        at = 4 + 4 + 2 + len(TOPIC) + 4
        _, error, _, _, aborted = struct.unpack_from(">ihqqi", answer, at)
        if error or now > give_up:
            raise RuntimeError(f"fetch from the copy at offset {offset}: error {error}, {end - offset} records missing")
        at += 26 + 16 * max(0, aborted)
        offset = _next_offset(answer[at + 4 :], offset)
        arrived = (offset - start) // per_batch
        delays += [now - each for each in due[len(delays) : arrived]]
    return delays


def _next_offset(records: bytes, offset: int) -> int:
    """Return the offset after the last complete batch."""
    at = 0
    while at + _LAST_OFFSET_DELTA_AT + 4 <= len(records):
        base, size = _BATCH_HEADER.unpack_from(records, at)
        if at + _BATCH_HEADER.size + size > len(records):
            break
        (delta,) = struct.unpack_from(">i", records, at + _LAST_OFFSET_DELTA_AT)
        offset = max(offset, base + delta + 1)
        at += _BATCH_HEADER.size + size
    return offset


if __name__ == "__main__":
    sys.exit(main())

"""Benchmarks of consumer groups: `python -m benchmarks.groups`.

    first record  time from creating a consumer (our client) in a new group to its first record: on a broker that has
                  never had a group, and on one that has
    commits       of 10 partitions, over 8 connections, one group after the other: rate, p99 and CPU, first with few
                  groups, then with all of them, then with all while the cleaner keeps compacting `__consumer_offsets`
    memory        of the broker, per group with offsets in 10 partitions
    load          start with all groups: until the broker answers, and until all groups are loaded

The commits use Kafka's protocol and come from the C generator; some of the offsets are fetched back. CPU is the
broker's. For a quick run: `--groups 1000 --seconds 1`.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import struct
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from pathlib import Path
from statistics import median

from benchmarks.brokers.system import Barnabas, Running, free_port
from benchmarks.requests.frames import call, plain_frame, text
from benchmarks.requests.kafka_dialect import KafkaDialect
from benchmarks.runs.programs import Programs
from benchmarks.runs.result_files import DIRECTORY, add_json_option, write_result
from benchmarks.runs.side_by_side import Columns, Samples

TOPIC = "orders"
PARTITIONS = 10
FEW_GROUPS = 100
CONNECTIONS = 8
REPEATS = 10
OFFSETS_TOPIC = "__consumer_offsets"
ROUNDS_METRIC = "barnabas_cleaner_round_duration_seconds_count"
LOADING = 14
_OFFSET_COMMIT, _OFFSET_FETCH, _LIST_GROUPS, _ALTER_CONFIGS = 8, 9, 16, 44
_TOPIC_RESOURCE, _SET = 2, 0
SETTINGS = [
    "offsets.topic.num.partitions=10",
    "offsets.topic.segment.bytes=262144",
    "log.cleaner.backoff.ms=1",
    "log.cleaner.min.cleanable.ratio=1.0",
]
"""Settings of all lines except the first: few partitions with small segments, so that compaction always has work."""


def commit_frame(group: str, offset: int) -> bytes:
    """Encode OffsetCommit version 7 of a simple consumer, for all partitions."""
    body = text(group) + struct.pack(">i", -1) + text("") + struct.pack(">h", -1) + struct.pack(">i", 1) + text(TOPIC)
    body += struct.pack(">i", PARTITIONS)
    body += b"".join(struct.pack(">iqi", number, offset, 0) + text("") for number in range(PARTITIONS))
    return plain_frame(_OFFSET_COMMIT, 7, body)


def committed(connection: socket.socket, group: str) -> list[int]:
    """Return the group's offsets by partition; -1 where none is committed."""
    numbers = struct.pack(f">{PARTITIONS}i", *range(PARTITIONS))
    body = text(group) + struct.pack(">i", 1) + text(TOPIC) + struct.pack(">i", PARTITIONS) + numbers
    answer = call(connection, _OFFSET_FETCH, 5, body)
    position = 4 + 4 + 2 + len(TOPIC) + 4
    found = []
    for _ in range(PARTITIONS):
        _, offset, _, metadata = struct.unpack_from(">iqih", answer, position)
        found.append(int(offset))
        position += 18 + max(metadata, 0) + 2
    return found


def begin_compaction(connection: socket.socket) -> None:
    """Make the cleaner clean every dirty log from now on."""
    entry = text("min.cleanable.dirty.ratio") + struct.pack(">b", _SET) + text("0.0")
    body = struct.pack(">ib", 1, _TOPIC_RESOURCE) + text(OFFSETS_TOPIC) + struct.pack(">i", 1) + entry + b"\x00"
    (error,) = struct.unpack_from(">h", call(connection, _ALTER_CONFIGS, 0, body), 8)
    assert error == 0, f"error {error}"


def load_seconds(running: Running) -> float:
    """List groups until no coordinator is loading; return the seconds."""
    started = time.monotonic()
    with running.connect() as connection:
        while struct.unpack_from(">h", call(connection, _LIST_GROUPS, 0, b""))[0] == LOADING:
            pass
    return time.monotonic() - started


class GroupLines:
    """The lines of one run, printed as they are measured."""

    def __init__(self, directory: Path, programs: Programs, groups: int, seconds: float) -> None:
        self._directory = directory
        self._programs = programs
        self._groups = [f"group-{number:05d}" for number in range(groups)]
        self._seconds = seconds
        self.found: dict[str, Columns] = {}
        """Line -> its figures, as measured so far."""
        self._metrics_port = free_port()
        self._system = Barnabas([*SETTINGS, f"metrics.listener=127.0.0.1:{self._metrics_port}"])

    def run(self) -> None:
        """Measure all lines."""
        plain = self._directory / "plain"
        plain.mkdir()
        with Barnabas([]).start(plain) as running:
            asyncio.run(self._first_records(running, "on a fresh broker", 1))
            asyncio.run(self._first_records(running, "later", REPEATS))
        with self._system.start(self._directory) as running:
            with running.connect() as connection:
                KafkaDialect().create(connection, TOPIC, PARTITIONS)
            self._commit(running, self._groups[:FEW_GROUPS], "few groups")
            rss = running.rss_mib()
            self._commit_once(running)
            kib = (running.rss_mib() - rss) * 1024 / len(self._groups)
            self.found["memory"] = {"kib_per_group": kib}
            say(f"memory: {kib:.2f} KiB for each of {len(self._groups)} groups of {PARTITIONS} offsets")
            self._commit(running, self._groups, "all groups")
            with running.connect() as connection:
                begin_compaction(connection)
            rounds = self._rounds()
            self._commit(running, self._groups, "all groups, compacting")
            say(f"compaction: {self._rounds() - rounds:.0f} cleanings during the commits")
        with self._system.start(self._directory) as running:
            cpu = running.cpu_seconds()
            seconds = load_seconds(running)
            self.found["load"] = {"first_answer_s": running.start_seconds, "all_groups_s": seconds, "cpu_s": cpu}
            say(
                f"load: first answer after {running.start_seconds:.3f} s ({cpu:.2f} CPU s), all groups {seconds:.3f} s"
                f" later ({running.cpu_seconds() - cpu:.2f} CPU s)"
            )
            with running.connect() as connection:
                assert -1 not in committed(connection, self._groups[-1])

    def _commit_once(self, running: Running) -> None:
        frames = self._frames(self._groups, 1)
        count = len(self._groups)
        self._programs.load(running.host, running.port, frames, connections=CONNECTIONS, depth=8, requests=count)
        with running.connect() as connection:
            for group in self._groups[:: max(1, count // 10)]:
                assert committed(connection, group) == [1] * PARTITIONS

    def _commit(self, running: Running, groups: list[str], name: str) -> None:
        frames = self._frames(groups, 2)
        cpu = running.cpu_seconds()
        found = self._programs.load(
            running.host,
            running.port,
            frames,
            connections=CONNECTIONS,
            depth=1,
            requests=3_000_000,
            seconds=self._seconds,
        )
        each_us = (running.cpu_seconds() - cpu) / found["requests"] * 1e6
        self.found[f"commits, {name}"] = {
            "per_s": found["requests"] / found["seconds"],
            "p50_us": found["p50_us"],
            "p99_us": found["p99_us"],
            "cpu_us_each": each_us,
        }
        say(
            f"commits, {name}: {found['requests'] / found['seconds']:.0f} /s, p50 {found['p50_us']:.0f} us,"
            f" p99 {found['p99_us']:.0f} us, {each_us:.0f} CPU us each"
        )

    def _frames(self, groups: list[str], offset: int) -> Path:
        path = self._directory / "commit-frames"
        path.write_bytes(b"".join(commit_frame(group, offset) for group in groups))
        return path

    def _rounds(self) -> float:
        """Return the number of cleanings so far."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics_port}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(ROUNDS_METRIC))

    async def _first_records(self, running: Running, name: str, repeats: int) -> None:
        from barnabas import Consumer, ConsumerConfig, Producer, ProducerConfig

        bootstrap = f"{running.host}:{running.port}"
        topic = f"first-{repeats}"
        with running.connect() as connection:
            KafkaDialect().create(connection, topic, 1)
        async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
            await producer.send(topic, b"record")
        taken = []
        for number in range(repeats):
            started = time.perf_counter()
            config = ConsumerConfig(bootstrap=bootstrap, group=f"first-{repeats}-{number}", offset_reset="earliest")
            async with Consumer(config) as consumer:
                await consumer.subscribe([topic])
                while not await consumer.poll(timeout_ms=1000):
                    pass
                taken.append(1000 * (time.perf_counter() - started))
        self.found[f"first record, {name}"] = {"p50_ms": median(taken), "min_ms": min(taken), "max_ms": max(taken)}
        say(f"first record, {name}: {median(taken):.0f} ms ({min(taken):.0f} - {max(taken):.0f})")


def say(line: str) -> None:
    """Print one line."""
    print(line, flush=True)


def main(arguments: list[str]) -> int:
    """Run with these arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1, help="number of measurements of each line (default 1)")
    parser.add_argument("--groups", type=int, default=10_000, help="number of groups (default 10000)")
    parser.add_argument("--seconds", type=float, default=5.0, help="duration of each line of commits (default 5)")
    add_json_option(parser, "groups")
    options = parser.parse_args(arguments)
    programs = Programs(DIRECTORY / "bin")
    samples: Samples = defaultdict(list)
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="barnabas-groups-") as directory:
            lines = GroupLines(Path(directory), programs, options.groups, options.seconds)
            lines.run()
        for line, columns in lines.found.items():
            samples[line].append(columns)
    write_result(options.json, "benchmarks.groups", options, samples)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

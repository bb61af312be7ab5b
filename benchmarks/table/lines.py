"""The measurements: one function per line, which returns its columns as numbers. Column names end with the unit.

CPU seconds are those of the measured system's process, from /proc. 1 GB is 10^9 bytes of record batches on disk. Each
line verifies the work done: end offsets after a produce, bytes after a fetch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.brokers.system import Running, cpu_seconds_of
from benchmarks.requests.kafka_dialect import KafkaDialect
from benchmarks.requests.records import Batch
from benchmarks.runs.programs import Programs

Columns = dict[str, float]

GB = 1e9
IDLE_SECONDS = 3.0
SETTLE_SECONDS = 1.0
"""Time for what both systems still do right after their start: Barnabas imports modules on a thread."""
LATENCY_REQUESTS_MAX = 3_000_000
SYNC_ROUNDS = 500
DURABLE_PARTITIONS = (1, 64)
SMALL_ANSWER_BYTES = 64
"""Approximate size of the answer to a one-record produce."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Sizes of one round. `bulk_batch` is produced `bulk_requests` times, then all of it is fetched."""

    bulk_batch: Batch
    bulk_requests: int
    small_batch: Batch
    latency_seconds: float
    produce_depth: int = 4
    fetch_depth: int = 1
    compacted_bytes: int = 1 << 30

    @property
    def bulk_bytes(self) -> int:
        return self.bulk_requests * len(self.bulk_batch.data)


class Bench:
    """One running system, its load generator and a directory for frames."""

    def __init__(
        self, running: Running, dialect: KafkaDialect, programs: Programs, directory: Path, work: Workload
    ) -> None:
        self.running = running
        self.dialect = dialect
        self.programs = programs
        self.directory = directory
        self.work = work

    def create_topics(self) -> None:
        with self.running.connect() as connection:
            for topic in ("bulk", "warm", "small"):
                self.dialect.create(connection, topic)
            for partitions in DURABLE_PARTITIONS:
                self.dialect.create(connection, f"durable-{partitions}", partitions, {"flush.messages": "1"})

    def warm(self, gigabytes: float, seconds: float) -> None:
        """Run every path before it is measured; a JVM needs a longer warm-up."""
        work = self.work
        requests = max(1, int(gigabytes * GB) // len(work.bulk_batch.data))
        self._produce("warm", work.bulk_batch, connections=1, depth=work.produce_depth, requests=requests)
        self._fetch("warm", work.bulk_batch, depth=work.fetch_depth, requests=requests)
        self._produce("warm", work.small_batch, connections=8, depth=1, requests=LATENCY_REQUESTS_MAX, seconds=seconds)

    def produce(self) -> Columns:
        work = self.work
        return self._produce(
            "bulk", work.bulk_batch, connections=1, depth=work.produce_depth, requests=work.bulk_requests
        )

    def fetch(self) -> Columns:
        work = self.work
        return self._fetch("bulk", work.bulk_batch, depth=work.fetch_depth, requests=work.bulk_requests)

    def one_record(self, connections: int, seconds: float | None = None) -> Columns:
        work = self.work
        return self._produce(
            "small",
            work.small_batch,
            connections=connections,
            depth=1,
            requests=LATENCY_REQUESTS_MAX,
            seconds=work.latency_seconds if seconds is None else seconds,
        )

    def durable(self, connections: int, partitions: int) -> Columns:
        """Produce with flush.messages=1: each answer follows an fdatasync. Requests go to the partitions in turn."""
        work = self.work
        return self._produce(
            f"durable-{partitions}",
            work.small_batch,
            connections=connections,
            depth=1,
            requests=LATENCY_REQUESTS_MAX,
            seconds=work.latency_seconds,
            partitions=partitions,
        )

    def loaded(self) -> Columns:
        """Measure memory. Call it before the compaction, whose buffers depend on the number of keys."""
        return {"loaded_rss_mib": self.running.rss_mib()}

    def _produce(
        self,
        topic: str,
        batch: Batch,
        *,
        connections: int,
        depth: int,
        requests: int,
        seconds: float | None = None,
        partitions: int = 1,
    ) -> Columns:
        numbers = range(partitions)
        with self.running.connect() as connection:
            before = sum(self.dialect.end_offset(connection, topic, number) for number in numbers)
            frame = self._write_frames(
                [self.dialect.produce(topic, batch.data, partition=number) for number in numbers]
            )
            cpu = self.running.cpu_seconds()
            sent = self.programs.load(
                self.running.host,
                self.running.port,
                frame,
                connections=connections,
                depth=depth,
                requests=requests,
                seconds=seconds,
            )
            cpu = self.running.cpu_seconds() - cpu
            appended = sum(self.dialect.end_offset(connection, topic, number) for number in numbers) - before
        if appended != sent["requests"] * batch.record_count:
            raise RuntimeError(f"{topic}: {sent['requests']} requests were answered, but {appended} records appended")
        return columns_of(sent, cpu, sent["requests"] * len(batch.data), sent["requests"] * batch.record_count)

    def _fetch(self, topic: str, batch: Batch, *, depth: int, requests: int) -> Columns:
        frames = [self.dialect.fetch(topic, index * batch.record_count, len(batch.data)) for index in range(requests)]
        path = self._write_frames(frames)
        cpu = self.running.cpu_seconds()
        sent = self.programs.load(
            self.running.host, self.running.port, path, connections=1, depth=depth, requests=requests
        )
        cpu = self.running.cpu_seconds() - cpu
        record_bytes = requests * len(batch.data)
        if not record_bytes < sent["received_bytes"] < record_bytes + 1_000 * requests:
            raise RuntimeError(f"{topic}: fetched {sent['received_bytes']} bytes, not {record_bytes} and headers")
        return columns_of(sent, cpu, record_bytes, requests * batch.record_count)

    def _write_frames(self, frames: list[bytes]) -> Path:
        path = self.directory / "frames"
        path.write_bytes(b"".join(frames))
        return path


def footprint(running: Running) -> Columns:
    """Measure start, memory and idle CPU, when only one hello was sent."""
    start_cpu = running.cpu_seconds()
    time.sleep(SETTLE_SECONDS)
    cpu = running.cpu_seconds()
    time.sleep(IDLE_SECONDS)
    idle_cpu = running.cpu_seconds() - cpu
    return {
        "start_s": running.start_seconds,
        "start_cpu_s": start_cpu,
        "idle_rss_mib": running.rss_mib(),
        "idle_cpu_percent": 100 * idle_cpu / IDLE_SECONDS,
    }


def columns_of(sent: dict[str, float], cpu_seconds: float, record_bytes: float, records: float) -> Columns:
    """Return the columns of a run of load.c; `record_bytes` are those of its batches."""
    return {
        "mb_per_s": record_bytes / sent["seconds"] / 1e6,
        "records_per_s": records / sent["seconds"],
        "requests_per_s": sent["requests"] / sent["seconds"],
        "cpu_s_per_gb": cpu_seconds / (record_bytes / GB),
        "cpu_us_per_request": cpu_seconds / sent["requests"] * 1e6,
        "p50_us": sent["p50_us"],
        "p99_us": sent["p99_us"],
        "p999_us": sent["p999_us"],
        "broker_busy_percent": 100 * cpu_seconds / sent["seconds"],
        "generator_busy_percent": 100 * sent["cpu_seconds"] / sent["seconds"],
    }


def limits(programs: Programs, directory: Path, work: Workload, refill: Callable[[], None]) -> dict[str, Columns]:
    """Measure the limits of the machine with the same bytes, by line."""
    file, total = directory / "limit", work.bulk_bytes
    measured: dict[str, Columns] = {}
    runs: list[tuple[str, tuple[int | Path, ...]]] = [
        ("memcpy", (total,)),
        ("write", (total, file)),
        ("tcp", (total,)),
        ("sendfile", (total, file)),
    ]
    for name, arguments in runs:
        refill()
        done = programs.limits(name, *arguments)
        measured[name] = {
            "mb_per_s": done["bytes"] / done["seconds"] / 1e6,
            "cpu_s_per_gb": done["cpu_seconds"] / (done["bytes"] / GB),
        }
    done = programs.limits("sync", SYNC_ROUNDS, len(work.small_batch.data), file)
    measured["sync"] = {
        "requests_per_s": done["requests"] / done["seconds"],
        "p50_us": done["p50_us"],
        "p99_us": done["p99_us"],
        "cpu_us_per_request": done["cpu_seconds"] / done["requests"] * 1e6,
    }
    file.unlink()
    return measured


def smallest_server(
    programs: Programs, frame: bytes, directory: Path, work: Workload, connections: Iterable[int]
) -> dict[str, Columns]:
    """Measure the cost of the sockets alone: a C server that answers the same one-record requests; by line."""
    frames = directory / "frames"
    frames.write_bytes(frame)
    measured: dict[str, Columns] = {}
    with programs.smallest_server(SMALL_ANSWER_BYTES) as (pid, port):
        for count in connections:
            cpu = cpu_seconds_of(pid)
            sent = programs.load(
                "127.0.0.1",
                port,
                frames,
                connections=count,
                depth=1,
                requests=LATENCY_REQUESTS_MAX,
                seconds=work.latency_seconds,
            )
            cpu = cpu_seconds_of(pid) - cpu
            measured[f"server_{count}"] = columns_of(sent, cpu, sent["sent_bytes"], sent["requests"])
    return measured

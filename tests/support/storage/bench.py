"""Injected parts for tests of the log engine, and helpers that create logs and read their files.

Tests advance the clock and run the background work; files are real.
"""

from __future__ import annotations

import heapq
import itertools
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from barnabas.broker.storage.files.file_names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, file_name
from barnabas.broker.storage.files.file_records import FileSlice
from barnabas.broker.storage.files.open_files import OpenFiles
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.loading.loader import LoadProgress, LoadRequest
from barnabas.broker.storage.log.opening import open_log
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.producers.expiration import ProducerExpiration
from barnabas.broker.storage.read_only.log import ReadOnlyLog, open_read_only_log
from barnabas.broker.storage.segment.old_format_slice import OldFormatSlice
from barnabas.broker.storage.services.log_dir_failure import LogDirFailures
from barnabas.broker.storage.services.scheduler import ScheduledTask, TaskCounters
from barnabas.broker.storage.services.services import StorageServices
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.log_config import LogConfig
from barnabas.config.value import Setting
from barnabas.protocol.records.batch import RecordBatch, iter_batches
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.records.record import Record
from barnabas.protocol.topic_partition import TopicPartition

START_MS = 1_700_000_000_000
TP = TopicPartition("orders", 0)
TOPIC_ID = bytes(range(16))
NEVER = 2**63 - 1


class ManualClock:
    """Wall and monotonic clock, advanced by the test."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return self.now_ms / 1000


class StepScheduler:
    """Runs due tasks on the test's thread, in the order of their times, when the test calls `advance`."""

    def __init__(self, clock: ManualClock) -> None:
        self.counters: dict[str, TaskCounters] = {}
        self._clock = clock
        self._queue: list[tuple[int, int, int | None, ScheduledTask]] = []
        self._sequence = itertools.count()

    def schedule(
        self, name: str, action: Callable[[], object], *, delay_ms: int = 0, period_ms: int | None = None
    ) -> ScheduledTask:
        task = ScheduledTask(name, action, None if period_ms is None else period_ms / 1000)
        self.counters.setdefault(name, TaskCounters())
        heapq.heappush(self._queue, (self._clock.now_ms + delay_ms, next(self._sequence), period_ms, task))
        return task

    def advance(self, milliseconds: int) -> None:
        end = self._clock.now_ms + milliseconds
        while self._queue and self._queue[0][0] <= end:
            due, _, period_ms, task = heapq.heappop(self._queue)
            self._clock.now_ms = max(self._clock.now_ms, due)
            if task.is_cancelled:
                continue
            task.action()
            self.counters[task.name].runs += 1
            if period_ms is not None:
                heapq.heappush(self._queue, (due + period_ms, next(self._sequence), period_ms, task))
        self._clock.now_ms = end

    def run_due(self) -> None:
        """Run the due tasks without advancing the clock."""
        self.advance(0)

    def pending(self) -> list[str]:
        """Return the names of the queued tasks, in the order of their times."""
        return [entry[3].name for entry in sorted(self._queue, key=lambda entry: entry[:2])]


def broker_config(**settings: object) -> BrokerConfig:
    """Return a BrokerConfig with settings such as `log_dirs=...` (`_` for `.`)."""
    return BrokerConfig.of({name.replace("_", "."): Setting(str(value), "test") for name, value in settings.items()})


def log_config(**changes: Any) -> LogConfig:
    """Return the default LogConfig with some fields changed, and without limits on timestamps."""
    unlimited = {"timestamp_before_max_ms": NEVER, "timestamp_after_max_ms": NEVER}
    return replace(BrokerConfig.of().log_config, **{**unlimited, **changes})


class LogBench:
    """Creates, closes, crashes and reloads one log in a directory."""

    def __init__(self, log_dir: Path) -> None:
        self.clock = ManualClock()
        self.scheduler = StepScheduler(self.clock)
        self.failed_directories: list[Path] = []
        self.failures = LogDirFailures(self.failed_directories.append)
        self.services = StorageServices(self.clock, self.scheduler, OpenFiles(8), self.failures, ProducerExpiration())
        self.directory = log_dir / f"{TP.topic}-{TP.partition}"
        self.directory.mkdir(parents=True, exist_ok=True)
        self.recovery_point = 0
        self.log_start_offset = 0

    def open(self, config: LogConfig | None = None, *, clean: bool = True) -> PartitionLog:
        """Load the log, with `self.recovery_point` and `self.log_start_offset` as the checkpoints."""
        request = LoadRequest(
            self.directory, TP, config or log_config(), clean, self.recovery_point, self.log_start_offset
        )
        return open_log(request, self.services, topic_id=TOPIC_ID)

    def open_read_only(self, config: LogConfig | None = None, *, clean: bool = True) -> ReadOnlyLog:
        """As `open`, for a read-only broker."""
        request = LoadRequest(
            self.directory, TP, config or log_config(), clean, self.recovery_point, self.log_start_offset
        )
        return open_read_only_log(request, self.services, LoadProgress())

    def close(self, log: PartitionLog) -> None:
        """Close the log as in a clean stop."""
        log.close()
        self.recovery_point = log.recovery_point
        self.log_start_offset = log.log_start_offset

    def crash(self, log: PartitionLog) -> None:
        """Simulate a crash: nothing is written, files are released; the recovery point checkpoint is unchanged."""
        self.recovery_point = log.recovery_point
        log.go_offline()

    def path(self, base_offset: int, suffix: str) -> Path:
        """Return the path of a segment's file."""
        return self.directory / file_name(base_offset, suffix)

    def log_path(self, base_offset: int = 0) -> Path:
        """Return the path of a segment's `.log`."""
        return self.path(base_offset, LOG_SUFFIX)

    def offset_entries(self, base_offset: int = 0) -> list[tuple[int, int]]:
        """Return the entries of the `.index` file, without the unused zeros at its end."""
        data = self.path(base_offset, OFFSET_INDEX_SUFFIX).read_bytes()
        return [entry for entry in struct.iter_unpack(">ii", data) if entry != (0, 0)]

    def time_entries(self, base_offset: int = 0) -> list[tuple[int, int]]:
        """Return the entries of the `.timeindex` file, without the unused zeros at its end."""
        data = self.path(base_offset, TIME_INDEX_SUFFIX).read_bytes()
        return [entry for entry in struct.iter_unpack(">qi", data) if entry != (0, 0)]

    def names(self) -> list[str]:
        """Return the names of the files in the log's directory."""
        return sorted(path.name for path in self.directory.iterdir())


def batch(*records: tuple[int, bytes | None, bytes | None], **header: Any) -> memoryview:
    """Return a writable batch of (timestamp, key, value) records, as from a client."""
    builder = RecordBatchBuilder(header.pop("codec", 0), max_bytes=1 << 30, **header)
    for timestamp, key, value in records:
        assert builder.append(timestamp, key, value, ())
    return memoryview(bytearray(builder.build()))


def sized_batch(size: int, timestamp: int = START_MS, **header: Any) -> memoryview:
    """Return a batch of one record with exactly `size` bytes (except 126, where the record's size varint grows)."""
    for key in (None, b"k"):  # with a key of fixed length, the sizes at which the value's varint grows are unreachable
        value = size - len(batch((timestamp, key, b""), **header))
        while len(built := batch((timestamp, key, bytes(value)), **header)) > size:
            value -= 1
        if len(built) == size:
            return built
    raise ValueError(f"no batch has {size} bytes")


def keyed_batch(size: int, timestamp: int = START_MS, key: bytes = b"key", **header: Any) -> memoryview:
    """Return a batch of one record with this key and exactly `size` bytes, for small sizes."""
    value = size - len(batch((timestamp, key, b""), **header))
    built = batch((timestamp, key, bytes(value)), **header)
    assert len(built) == size, f"no batch has {size} bytes"
    return built


def append(log: PartitionLog, data: memoryview, leader_epoch: int = 0) -> int:
    """Append one batch; return its base offset."""
    return log.append_as_leader(data, leader_epoch=leader_epoch).base_offset


def as_stored(records: FileSlice | OldFormatSlice | None) -> FileSlice | None:
    """Assert that the records are not in an old format, and return them."""
    assert not isinstance(records, OldFormatSlice)
    return records


def read_batches(log: ReadableLog, offset: int | None = None, max_bytes: int = 1 << 20) -> Iterator[RecordBatch]:
    """Yield all batches from an offset (default: the log start) to the high watermark, fetch by fetch."""
    offset = log.log_start_offset if offset is None else offset
    while (part := log.read(offset, max_bytes, upper_bound=log.high_watermark, at_least_one_batch=True)) is not None:
        for found in iter_batches(part.read()):
            found.ensure_valid()
            yield found
            offset = found.next_offset


def read_records(log: ReadableLog, offset: int | None = None, max_bytes: int = 1 << 20) -> list[Record]:
    """Return all records from an offset to the high watermark."""
    from barnabas.protocol.records.reader import read_records as records_of

    start = log.log_start_offset if offset is None else offset
    return [
        record
        for found in read_batches(log, offset, max_bytes)
        for record in records_of(found)
        if record.offset >= start
    ]


class AnnouncedLock:
    """A log's lock that reports when a certain thread has to wait for it."""

    def __init__(self, core: LogCore, thread: str) -> None:
        """Wrap the lock of `core`, which compiled appends go on to use; `wanted` is set when that thread waits."""
        self.wanted = threading.Event()
        self._thread = thread
        self._lock = core.lock

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            if threading.current_thread().name == self._thread:
                self.wanted.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

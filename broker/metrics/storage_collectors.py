"""Collectors over the log engine's plain attributes. They take none of its locks and never wait for a disk.

The free space of file systems is the kernel's figure.

Before the data directories are open there is no log manager: its families then have no samples.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from prometheus_client.core import Metric

from barnabas.broker.metrics.disk_forecast import DiskForecast
from barnabas.broker.metrics.family import Family
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.storage.files.file_system import FileSystemBytes, file_system_bytes

if TYPE_CHECKING:
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.served_logs import ServedLogs
    from barnabas.protocol.topic_partition import TopicPartition

_PARTITION: Final = ("topic", "partition")
_LOG_DIR: Final = ("log_dir",)

LOG_STATES: Final = {"online": 0, "loading": 1, "recovering": 2, "failed": 3, "offline": 3, "closed": 4}
"""Value of `barnabas_log_state` by state of a log."""


class LogCollector:
    """Each partition's log: offsets, size, state. The metadata log is among them."""

    size = Family("barnabas_log_size_bytes", "gauge", "Bytes of the log's segments.", labels=_PARTITION)
    segments = Family(
        "barnabas_log_segments", "gauge", "Segments of the log, the active one included.", labels=_PARTITION
    )
    start = Family("barnabas_log_start_offset", "gauge", "First offset that can be read.", labels=_PARTITION)
    end = Family("barnabas_log_end_offset", "gauge", "Offset that the next record will get.", labels=_PARTITION)
    high_watermark = Family(
        "barnabas_log_high_watermark", "gauge", "Offset up to which consumers may read.", labels=_PARTITION
    )
    last_stable_lag = Family(
        "barnabas_log_last_stable_offset_lag",
        "gauge",
        "Offsets from the last stable offset to the end of the log, which read_committed consumers do not see yet.",
        labels=_PARTITION,
    )
    recovery_point = Family(
        "barnabas_log_recovery_point",
        "gauge",
        "Offset up to which the log is known to be on the disk; records above it are checked after a crash.",
        labels=_PARTITION,
    )
    state = Family(
        "barnabas_log_state",
        "gauge",
        "0 online, 1 loading, 2 recovering from an unclean stop, 3 failed or offline, 4 closed.",
        labels=_PARTITION,
    )
    segments_left = Family(
        "barnabas_log_loading_segments",
        "gauge",
        "Segments still to be loaded or recovered; only for logs that are being loaded.",
        labels=_PARTITION,
    )
    families: ClassVar = (
        size,
        segments,
        start,
        end,
        high_watermark,
        last_stable_lag,
        recovery_point,
        state,
        segments_left,
    )

    _values: ClassVar[tuple[tuple[Family, Callable[[ReadableLog], int]], ...]] = (
        (size, lambda log: log.size_bytes),
        (segments, lambda log: log.segment_count),
        (start, lambda log: log.log_start_offset),
        (end, lambda log: log.log_end_offset),
        (high_watermark, lambda log: log.high_watermark),
        (last_stable_lag, lambda log: max(0, log.log_end_offset - log.last_stable_offset)),
        (recovery_point, lambda log: log.recovery_point),
    )

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """All families, from the logs as they are now."""
        manager = self._state.log_manager
        logs = sorted(_all_logs(manager), key=lambda log: log.topic_partition)
        labelled = [(_labels(log.topic_partition), log) for log in logs]
        # A log becomes visible after its loading, so between the two it may be missing from one scrape.
        known = {log.topic_partition for log in logs}
        loading = [] if manager is None else sorted(manager.load_progress.copy().items(), key=lambda item: item[0])
        unfinished = [(_labels(tp), progress) for tp, progress in loading if tp not in known]
        for family, value in self._values:
            yield family.render((labels, value(log)) for labels, log in labelled)
        yield self.state.render(
            [
                *((labels, LOG_STATES[log.state.value]) for labels, log in labelled),
                *((labels, LOG_STATES[progress.state.value]) for labels, progress in unfinished),
            ]
        )
        yield self.segments_left.render((labels, progress.segments_left) for labels, progress in unfinished)


class LogDirCollector:
    """Each data directory: its state, the progress of its loading, its size."""

    online = Family(
        "barnabas_log_dir_online",
        "gauge",
        "1 while the directory is in use, 0 after it failed: its partitions then answer kafka_storage_error.",
        labels=_LOG_DIR,
    )
    found = Family("barnabas_log_dir_found_logs", "gauge", "Logs that the directory held at start.", labels=_LOG_DIR)
    loaded = Family(
        "barnabas_log_dir_loaded_logs", "gauge", "How many of the logs found at start are loaded.", labels=_LOG_DIR
    )
    load_duration = Family(
        "barnabas_log_dir_load_duration_seconds",
        "gauge",
        "How long loading the directory took at start, 0 until it is done.",
        labels=_LOG_DIR,
    )
    logs = Family("barnabas_log_dir_logs", "gauge", "Logs in the directory now.", labels=_LOG_DIR)
    size = Family("barnabas_log_dir_size_bytes", "gauge", "Bytes of the segments in the directory.", labels=_LOG_DIR)
    free = Family(
        "barnabas_log_dir_free_bytes",
        "gauge",
        "Bytes of the directory's file system that the broker may still use.",
        labels=_LOG_DIR,
    )
    capacity = Family(
        "barnabas_log_dir_capacity_bytes", "gauge", "Bytes of the directory's file system.", labels=_LOG_DIR
    )
    full_in = Family(
        "barnabas_log_dir_full_in_seconds",
        "gauge",
        "Time until the directory's file system is full at the rate of the last six hours of scrapes, whoever fills"
        " it; +Inf if it does not fill. No sample before ten minutes of scrapes.",
        labels=_LOG_DIR,
    )
    families: ClassVar = (online, found, loaded, load_duration, logs, size, free, capacity, full_in)

    def __init__(self, state: BrokerState, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock`: seconds, for the forecast."""
        self._state = state
        self._clock = clock
        self._forecasts: dict[str, DiskForecast] = {}

    def collect(self) -> Iterator[Metric]:
        """All families, from the directories as they are now."""
        manager = self._state.log_manager
        directories = () if manager is None else manager.directories
        offline = {} if manager is None else manager.failures.offline
        counts: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        copies = [] if manager is None or manager.moves is None else manager.moves.futures()
        for log in (*_all_logs(manager), *(copy.log for copy in copies)):
            counts[str(log.log_dir)] += 1
            sizes[str(log.log_dir)] += log.size_bytes
        paths = sorted({*map(str, offline), *(str(directory.path) for directory in directories)})
        failed = set(map(str, offline))
        yield self.online.render(((path,), int(path not in failed)) for path in paths)
        yield self.found.render(((str(each.path),), each.logs_total) for each in directories)
        yield self.loaded.render(((str(each.path),), each.logs_loaded) for each in directories)
        yield self.load_duration.render(((str(each.path),), each.load_seconds) for each in directories)
        yield self.logs.render(((path,), counts[path]) for path in paths)
        yield self.size.render(((path,), sizes[path]) for path in paths)
        yield from self._room([path for path in paths if path not in failed])

    def _room(self, paths: Iterable[str]) -> Iterator[Metric]:
        """The families about the file systems of directories that are in use."""
        found: dict[str, FileSystemBytes] = {}
        forecasts: dict[str, float] = {}
        for path in paths:
            try:
                room = found[path] = file_system_bytes(Path(path))
            except OSError:
                continue  # the next write there takes the directory offline
            forecast = self._forecasts.setdefault(path, DiskForecast())
            forecast.observe(self._clock(), room.usable)
            seconds = forecast.seconds_until_full(room.usable)
            if seconds is not None:
                forecasts[path] = seconds
        yield self.free.render(((path,), room.usable) for path, room in found.items())
        yield self.capacity.render(((path,), room.total) for path, room in found.items())
        yield self.full_in.render(((path,), seconds) for path, seconds in forecasts.items())


class MoveCollector:
    """Moves of partitions between log directories."""

    running = Family("barnabas_partition_moves_running", "gauge", "Partitions being moved now.")
    remaining = Family(
        "barnabas_partition_moves_remaining_bytes", "gauge", "Bytes still to be copied by the running moves."
    )
    copied = Family("barnabas_partition_moves_copied_bytes_total", "counter", "Bytes that moves have copied.")
    completed = Family("barnabas_partition_moves_total", "counter", "Moves that succeeded.")
    failures = Family(
        "barnabas_partition_moves_failures_total",
        "counter",
        "Moves that failed because of a failed directory or a damaged batch; the log has the details.",
    )
    families: ClassVar = (running, remaining, copied, completed, failures)

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """All families; zeros before the data directories are open."""
        moves = None if self._state.log_manager is None else self._state.log_manager.moves
        yield self.running.render([((), 0 if moves is None else moves.running)])
        yield self.remaining.render([((), 0 if moves is None else moves.bytes_left)])
        yield self.copied.render([((), 0 if moves is None else moves.bytes_copied)])
        yield self.completed.render([((), 0 if moves is None else moves.completed)])
        yield self.failures.render([((), 0 if moves is None else moves.failed)])


class FlushCollector:
    """Group commits, which make appends durable for waiting producers (flush.messages, flush.ms)."""

    requests = Family("barnabas_flush_requests_total", "counter", "Appends whose response waited for a group commit.")
    duration = Family(
        "barnabas_flush_duration_seconds", "summary", "Time of a log's sync in a group commit; the count is of syncs."
    )
    failures = Family(
        "barnabas_flush_failures_total", "counter", "Syncs that failed; the log's directory is then offline."
    )
    families: ClassVar = (requests, duration, failures)

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """All families; zeros while there is no flusher."""
        flusher = self._state.flusher
        yield self.requests.render([((), 0 if flusher is None else flusher.requests)])
        yield self.duration.render_summary(
            0 if flusher is None else flusher.syncs, 0.0 if flusher is None else flusher.sync_seconds_total
        )
        yield self.failures.render([((), 0 if flusher is None else flusher.failures)])


class TaskCollector:
    """Scheduled background tasks, by Kafka's names."""

    runs = Family(
        "barnabas_task_runs_total", "counter", "Runs that have ended, failed ones included.", labels=("task",)
    )
    failures = Family(
        "barnabas_task_failures_total",
        "counter",
        "Runs that ended with an error, which is logged.",
        labels=("task",),
    )
    duration = Family("barnabas_task_last_duration_seconds", "gauge", "How long the last run took.", labels=("task",))
    families: ClassVar = (runs, failures, duration)

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """All families, from the scheduler's counters."""
        manager = self._state.log_manager
        tasks = [] if manager is None else sorted(manager.scheduler.counters.copy().items())
        yield self.runs.render(((task,), counters.runs) for task, counters in tasks)
        yield self.failures.render(((task,), counters.failures) for task, counters in tasks)
        yield self.duration.render(((task,), counters.last_duration_seconds) for task, counters in tasks)


def _all_logs(manager: ServedLogs[ReadableLog] | None) -> list[ReadableLog]:
    """Return the partitions' logs and the metadata log."""
    if manager is None:
        return []
    metadata_log = manager.metadata_log
    return [*manager.logs(), *([] if metadata_log is None else [metadata_log])]


def _labels(topic_partition: TopicPartition) -> tuple[str, str]:
    return topic_partition.topic, str(topic_partition.partition)

"""Offline compaction of a log that no broker uses: rounds are repeated until nothing is dirty.

The cleaner and its rules are the broker's: records protected by min.compaction.lag.ms and the active segment are kept,
and tombstones are dropped after their delete horizon. Only the minimum dirty ratio is ignored. The caller holds the
directory's lock. A crash leaves the same state as a broker's crash, and the next start finishes or drops the round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.broker.storage.cleaning.cleanable_part import measure_cleanable_part
from barnabas.broker.storage.cleaning.cleaner_config import CleanerConfig
from barnabas.broker.storage.cleaning.errors import UncleanableLogError
from barnabas.broker.storage.cleaning.rewriting.cleaner import Cleaner, LogToClean
from barnabas.broker.storage.files.open_files import OpenFiles
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.producers.expiration import ProducerExpiration
from barnabas.broker.storage.services.clock import SystemClock
from barnabas.broker.storage.services.log_dir_failure import LogDirFailures
from barnabas.broker.storage.services.scheduler import ScheduledTask, TaskCounters
from barnabas.broker.storage.services.services import StorageServices
from barnabas.protocol.topic_partition import TopicPartition


class TasksForLater:
    """Scheduler without threads: tasks (removals of old files) are run by `run`, whatever their delay."""

    def __init__(self) -> None:
        self.counters: dict[str, TaskCounters] = {}
        self._tasks: list[ScheduledTask] = []

    def schedule(
        self, name: str, action: Callable[[], object], *, delay_ms: int = 0, period_ms: int | None = None
    ) -> ScheduledTask:
        """Keep the task until `run`."""
        task = ScheduledTask(name, action, None)
        self._tasks.append(task)
        return task

    def run(self) -> None:
        """Run all tasks once."""
        while self._tasks:
            self._tasks.pop(0).action()


class OfflineServices(NamedTuple):
    """Services for the logs of one command, and their deferred tasks."""

    services: StorageServices
    tasks: TasksForLater

    @classmethod
    def create(cls) -> OfflineServices:
        """Create services with the machine's clock."""
        tasks = TasksForLater()
        return cls(StorageServices(SystemClock(), tasks, OpenFiles(), LogDirFailures(), ProducerExpiration()), tasks)


class CompactionResult(NamedTuple):
    """Result for one log. In a dry run, the figures are those that a compaction would have."""

    clean_to: int
    """Below this offset each key has at most one record."""
    rounds: int
    records_gone: int
    bytes_gone: int
    bytes_left: int


class _ProgressThrottler:
    """Throttler without a limit, which reports progress."""

    def __init__(self, note: Callable[[int], object]) -> None:
        self._note = note

    def note(self, size_bytes: int) -> None:
        """Report `size_bytes` read or written."""
        self._note(size_bytes)


def _never_abort(topic_partition: TopicPartition) -> None:
    """Never abort: no broker uses the log."""


def offline_cleaner(config: CleanerConfig, note: Callable[[int], object]) -> Cleaner:
    """Create a cleaner that is never aborted; `note` is called with the bytes read and written."""
    return Cleaner(
        offset_map_bytes=config.offset_map_bytes,
        load_factor=config.load_factor,
        io_buffer_bytes=config.io_buffer_bytes,
        throttler=_ProgressThrottler(note),
        check_done=_never_abort,
    )


def compact_log(
    log: PartitionLog, checkpoint: int | None, cleaner: Cleaner, *, now_ms: int, max_rounds: int | None = None
) -> CompactionResult:
    """Clean an open log until nothing is dirty, or for `max_rounds`.

    Raises UncleanableLogError, CleaningOutOfRoom, OSError; completed rounds stay.
    """
    before = log.size_bytes
    rounds = records_gone = 0
    read = written = 0
    while True:
        part = measure_cleanable_part(log, checkpoint, now_ms)
        if part.dirty_bytes == 0 or rounds == max_rounds:
            break
        result = cleaner.clean(
            LogToClean(
                log=log,
                first_dirty_offset=part.first_dirty_offset,
                first_uncleanable_offset=part.first_uncleanable_offset,
                now_ms=now_ms,
            )
        )
        rounds += 1
        records_gone += result.stats.messages_read - result.stats.messages_written
        read, written = read + result.stats.bytes_read, written + result.stats.bytes_written
        checkpoint = result.next_dirty_offset
        if checkpoint <= part.first_dirty_offset:
            raise UncleanableLogError(log.directory, f"no round gets past offset {checkpoint}")
    return CompactionResult(part.first_dirty_offset, rounds, records_gone, read - written, before - (read - written))

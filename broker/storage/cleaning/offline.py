"""Compaction of a log that no broker uses: opened, cleaned round after round until nothing is dirty, and closed.

The cleaner and its rules are the broker's: what min.compaction.lag.ms and the active segment keep is kept, a tombstone
goes when its delete horizon has passed. The minimum dirty ratio is not asked. The caller holds the directory's lock.
A crash in the middle leaves what a broker's crash would leave, and the next start finishes or drops it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.broker.storage.cleaning.cleanable_part import measure_cleanable_part
from barnabas.broker.storage.cleaning.cleaner import Cleaner, LogToClean
from barnabas.broker.storage.cleaning.cleaner_config import CleanerConfig
from barnabas.broker.storage.cleaning.errors import UncleanableLogError
from barnabas.broker.storage.files.open_files import OpenFiles
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.services.clock import SystemClock
from barnabas.broker.storage.services.log_dir_failure import LogDirFailures
from barnabas.broker.storage.services.scheduler import ScheduledTask, TaskCounters
from barnabas.broker.storage.services.services import StorageServices
from barnabas.protocol.topic_partition import TopicPartition


class TasksForLater:
    """A scheduler without threads: what a log puts off (removing old files) is done by `run`, delays or not."""

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
        """Do what there is to do, once each."""
        while self._tasks:
            self._tasks.pop(0).action()


class OfflineServices(NamedTuple):
    """What logs of one command share, and what they put off."""

    services: StorageServices
    tasks: TasksForLater

    @classmethod
    def make(cls) -> OfflineServices:
        """With the machine's clock."""
        tasks = TasksForLater()
        return cls(StorageServices(SystemClock(), tasks, OpenFiles(), LogDirFailures()), tasks)


class CompactionResult(NamedTuple):
    """What became of one log. Records and bytes are what went, or would go."""

    clean_to: int
    """Below this offset a key has one record at most."""
    rounds: int
    records_gone: int
    bytes_gone: int
    bytes_left: int


class _Noted:
    """A throttler that holds nobody, and tells how far the work is."""

    def __init__(self, note: Callable[[int], object]) -> None:
        self._note = note

    def note(self, size_bytes: int) -> None:
        """`size_bytes` were read or written."""
        self._note(size_bytes)


def _nobody_wants_it(topic_partition: TopicPartition) -> None:
    """There is no broker that could."""


def offline_cleaner(config: CleanerConfig, note: Callable[[int], object]) -> Cleaner:
    """A cleaner that is never stopped; `note` is told bytes as they are read and written."""
    return Cleaner(
        offset_map_bytes=config.offset_map_bytes,
        load_factor=config.load_factor,
        io_buffer_bytes=config.io_buffer_bytes,
        throttler=_Noted(note),
        check_done=_nobody_wants_it,
    )


def compact_log(
    log: PartitionLog, checkpoint: int | None, cleaner: Cleaner, *, now_ms: int, max_rounds: int | None = None
) -> CompactionResult:
    """Clean an open log until nothing is dirty, or for `max_rounds`.

    Raises UncleanableLogError, CleaningOutOfRoom, OSError; the rounds before are done then.
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

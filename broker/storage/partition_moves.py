"""PartitionMoves: moves partitions to another log directory of this broker.

Each moving partition has a FutureLog. One background task feeds them in turn, a chunk of one partition at a time, at
replica.alter.log.dirs.io.max.bytes.per.second in all. A copy that has caught up takes over. The cleaner leaves a
partition alone while it moves: the segments that it would rewrite are copied already.

A second request changes a move: the partition's own directory cancels it, a third directory starts a new move. A move
that cannot continue (no room, or the metadata log refuses) is retried every second. A failed directory or a damaged
batch ends it with an ERROR and leaves the log as it was; the copy is deleted unless the log's directory is the one that
failed. Copies found at start continue, take over, or are given up: see `adopt`, `promote`, `discard`.

A move that had to be level with a fast producer would never end, so the last part is copied under the log's lock; each
time that it was too much, twice as much is allowed.
Source: Kafka ReplicaAlterLogDirsManager, ReplicaAlterLogDirsThread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from barnabas.broker.storage.cleaning.pausing import CleaningControl
from barnabas.broker.storage.directories.deletion_queue import DeletionQueue
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.files.partition_directory import (
    delete_directory_name,
    directory_name,
    stray_directory_name,
)
from barnabas.broker.storage.log.future_log import FutureLog
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.maintenance import Maintenance
from barnabas.broker.storage.services.services import StorageServices
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

MOVE_TASK = "replica-alter-log-dirs"

CHUNK_BYTES = 1024 * 1024
"""Size of one chunk (Kafka's replica.fetch.max.bytes): the cancellation of a move waits for at most one."""

RETRY_MS = 1000
"""Pause before a move is retried: Kafka's replica.fetch.backoff.ms."""

MAX_TAIL_BYTES = 256 * 1024
"""How much may be copied at the end with the log's lock held. It doubles after each attempt that was not enough, so
that a producer that is faster than the disk syncs cannot delay a move forever."""


class PartitionMove:
    """The move of one partition. Whoever works on it holds `lock`."""

    __slots__ = ("bytes_left", "current", "future", "is_over", "lock", "max_tail_bytes", "retry_at")

    def __init__(self, current: PartitionLog, future: FutureLog) -> None:
        self.current = current
        self.future = future
        self.lock = threading.Lock()
        self.is_over = False
        self.retry_at = 0.0
        self.max_tail_bytes = MAX_TAIL_BYTES
        self.bytes_left = current.size_bytes
        """As of the last chunk."""


class PartitionMoves:
    """All moves of a broker. Thread-safe. The counters are for the metrics."""

    def __init__(
        self,
        services: StorageServices,
        maintenance: Maintenance,
        deletions: DeletionQueue,
        *,
        max_bytes_per_second: Callable[[], int],
        assign: Callable[[PartitionLog, Path], None],
        cleaner: CleaningControl | None,
    ) -> None:
        """`max_bytes_per_second` returns replica.alter.log.dirs.io.max.bytes.per.second, which may change.

        `assign(log, log_dir)` records durably that a log is in another log directory now. It may raise BrokerError.
        """
        self.bytes_copied = 0
        self.completed = 0
        self.failed = 0
        self._services = services
        self._maintenance = maintenance
        self._deletions = deletions
        self._max_bytes_per_second = max_bytes_per_second
        self._assign = assign
        self._cleaner = cleaner
        self._moves: dict[TopicPartition, PartitionMove] = {}
        """Replaced as a whole, never changed in place: readers take no lock."""
        self._idle_futures: dict[TopicPartition, FutureLog] = {}
        """Copies without a log to copy from: its directory is offline."""
        self._lock = threading.Lock()
        self._is_scheduled = False
        self._turn = 0
        self._quota_time = 0.0
        """The monotonic time at which the bytes copied so far are within the limit."""

    # -- looking up

    @property
    def running(self) -> int:
        """Number of partitions that are being moved."""
        return len(self._moves)

    @property
    def bytes_left(self) -> int:
        """Bytes that the running moves have still to copy."""
        return sum(move.bytes_left for move in self._moves.values())

    def futures(self) -> list[FutureLog]:
        """Return all copies of this moment."""
        return [*(move.future for move in self._moves.values()), *self._idle_futures.values()]

    def is_future(self, log: ReadableLog) -> bool:
        """Return whether `log` is the copy of a partition."""
        future = self.future_of(log.topic_partition)
        return future is not None and future.log is log

    def future_of(self, topic_partition: TopicPartition) -> FutureLog | None:
        """Return the partition's copy, or None if it is not being moved."""
        move = self._moves.get(topic_partition)
        return self._idle_futures.get(topic_partition) if move is None else move.future

    def copy_of(self, log: ReadableLog) -> PartitionLog | None:
        """Return the copy that a move of `log` fills, None while it is not being moved."""
        move = self._moves.get(log.topic_partition)
        return None if move is None else move.future.log

    def is_running(self, topic_partition: TopicPartition) -> bool:
        """Return whether the partition is being moved."""
        return topic_partition in self._moves

    # -- beginning and ending

    def begin(self, current: PartitionLog, future: FutureLog) -> None:
        """Fill `future` until it replaces `current`. The partition must not be moving."""
        topic_partition = current.topic_partition
        if self._cleaner is not None:
            self._cleaner.abort_and_pause(topic_partition)
        with self._lock:
            assert topic_partition not in self._moves, f"{topic_partition} is being moved already"
            self._moves = {**self._moves, topic_partition: PartitionMove(current, future)}
        logger.info(
            "moving %s to another log directory: from=%s, to=%s, bytes=%s",
            topic_partition,
            current.directory,
            future.log.directory,
            current.size_bytes,
        )
        self._schedule(0)

    def adopt(self, current: PartitionLog | None, future: FutureLog) -> None:
        """Continue with a copy found at start. Without `current` (its directory is offline) the copy only waits."""
        if current is None:
            logger.warning("a copy waits for its log, which is not here: %s", future.log.directory)
            self._idle_futures[future.topic_partition] = future
        else:
            self.begin(current, future)

    def cancel(self, topic_partition: TopicPartition) -> bool:
        """Cancel the partition's move and delete its copy; return whether it was moving.

        Waits for the chunk that is being copied.
        """
        future = self._idle_futures.pop(topic_partition, None)
        move = self._moves.get(topic_partition)
        if move is not None:
            with move.lock:
                future = None if move.is_over else move.future
                self._end(move)
        if future is None:
            return False
        logger.info("move given up: %s, the copy is deleted: %s", topic_partition, future.log.directory)
        self.discard(future)
        return True

    def discard(self, future: FutureLog) -> None:
        """Delete a copy that is not needed. Raises nothing: a failed disk takes its log directory offline."""
        self._retire(future, delete_directory_name(future.topic_partition))
        self._deletions.add(future.log)

    def set_aside(self, future: FutureLog) -> None:
        """Rename a copy that belongs to no known partition `-stray`, and keep it."""
        self._retire(future, stray_directory_name(future.topic_partition))
        logger.warning("a copy is stray, its directory is kept: %s", future.log.directory)

    def promote(self, future: FutureLog) -> None:
        """Rename a copy to the name of its log, which is gone: a crash came between the renames. Raises OSError."""
        future.log.rename_directory(directory_name(future.topic_partition))
        logger.warning("a finished copy takes the place of its log, which has gone: %s", future.log.directory)

    def directory_failed(self, log_dir: Path) -> None:
        """End the moves from and to a failed log directory; a copy in a working one stays there for the next start."""
        for move in list(self._moves.values()):
            if log_dir in (move.current.log_dir, move.future.log.log_dir):
                with move.lock:
                    if not move.is_over:
                        self._fail(move, f"log directory {log_dir} is offline")
        for future in self.futures():
            if future.log.log_dir == log_dir:
                future.log.go_offline()

    # -- the work

    def step(self) -> int | None:
        """Work on the next partition; return the milliseconds until the next step, None when no partition is moving."""
        moves = list(self._moves.values())
        if not moves:
            return None
        now = self._services.clock.monotonic()
        wait = self._quota_time - now
        if wait > 0:
            return max(round(wait * 1000), 1)
        limit = self._max_bytes_per_second()
        if limit <= 0:
            return RETRY_MS
        ready = [move for move in moves if move.retry_at <= now]
        if not ready:
            return max(round((min(move.retry_at for move in moves) - now) * 1000), 1)
        self._turn += 1
        move = ready[self._turn % len(ready)]
        with move.lock:
            if not move.is_over:
                copied = self._work_on(move, min(CHUNK_BYTES, limit))
                self.bytes_copied += copied
                self._quota_time = max(self._quota_time, now) + copied / limit
        return 0

    def _run(self) -> None:
        delay_ms: int | None = RETRY_MS
        try:
            delay_ms = self.step()
        finally:
            with self._lock:
                self._is_scheduled = False
            if delay_ms is not None or self._moves:
                self._schedule(delay_ms or 0)

    def _schedule(self, delay_ms: int) -> None:
        with self._lock:
            if self._is_scheduled:
                return
            self._is_scheduled = True
        self._services.scheduler.schedule(MOVE_TASK, self._run, delay_ms=delay_ms)

    def _work_on(self, move: PartitionMove, max_bytes: int) -> int:
        """Copy a chunk, and take over when little is left; return the bytes copied."""
        current, future = move.current, move.future
        copied = 0
        try:
            copied = future.catch_up(current, max_bytes)
            move.bytes_left = future.bytes_behind(current)
            if copied and move.bytes_left > move.max_tail_bytes:
                return copied
            # Before the take-over: the log start offset must not go back if the process dies right after it.
            self._maintenance.checkpoint_log_starts()
            source = current.log_dir
            tail = move.max_tail_bytes
            if future.take_over(current, lambda: self._assign(current, future.log.log_dir), max_tail_bytes=tail):
                self._finish(move, source)
            else:
                move.max_tail_bytes = 2 * tail
        except (BrokerError, StorageError, OSError) as error:
            if self._can_go_on(move) and not isinstance(error, StorageError):
                logger.warning("move of %s is tried again in %s ms: %s", current.topic_partition, RETRY_MS, error)
                move.retry_at = self._services.clock.monotonic() + RETRY_MS / 1000
            else:
                self._fail(move, str(error))
        return copied

    def _can_go_on(self, move: PartitionMove) -> bool:
        return move.current.state is LogState.ONLINE and move.future.log.state is LogState.ONLINE

    def _finish(self, move: PartitionMove, source: Path) -> None:
        """Clean up after a take-over: `move.current` has the copy's files now, `move.future` the old ones."""
        self.completed += 1
        if self._cleaner is not None:
            self._cleaner.alter_checkpoint_dir(move.current.topic_partition, source, move.current.log_dir)
        self._end(move)
        self._deletions.add(move.future.log)
        self._maintenance.checkpoint_recovery_points()
        self._maintenance.checkpoint_log_starts()
        self._maintenance.checkpoint_high_watermarks()

    def _fail(self, move: PartitionMove, reason: str) -> None:
        """End a move that cannot continue. The lock of the move is held."""
        self.failed += 1
        logger.error("move of %s has failed, the log stays where it is: %s", move.current.topic_partition, reason)
        self._end(move)
        if move.future.log.state is not LogState.ONLINE or self._services.failures.is_offline(move.future.log.log_dir):
            return
        if move.current.state is LogState.ONLINE:
            self.discard(move.future)  # the next request starts from the beginning
        else:
            self._idle_futures[move.future.topic_partition] = move.future  # the next start may find the log again

    def _end(self, move: PartitionMove) -> None:
        """Stop working on a move and let the cleaner resume the partition. The lock of the move is held."""
        if move.is_over:
            return
        move.is_over = True
        topic_partition = move.current.topic_partition
        with self._lock:
            self._moves = {key: value for key, value in self._moves.items() if key != topic_partition}
        if self._cleaner is not None:
            self._cleaner.resume([topic_partition])

    def _retire(self, future: FutureLog, name: str) -> None:
        """Rename a copy's directory and take the copy out of service."""
        log = future.log
        try:
            log.rename_directory(name)
        except OSError as error:
            self._services.failures.report(log.log_dir, f"cannot rename {log.directory}", error)
        log.go_offline()

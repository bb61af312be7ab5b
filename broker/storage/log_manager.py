"""LogManager: the data directories, the logs in them, and the work that goes on behind them.

A start has phases, because the metadata log must be replayed before the others can be loaded:
    1. open_directories()   make, try and lock the directories
    2. open_metadata_log()  the caller replays it; it is no part of phase 3
    3. load_logs()          all other logs, in parallel; configurations and strays by what the metadata says
    4. start_tasks()        retention, flusher, checkpoints, deletions, producer expiration, the cleaner

and a stop has one order, in `shutdown`: high watermarks, the cleaner, flush and close the logs (producer snapshots),
recovery points, log start offsets, the metadata log, the clean-shutdown marker (only where all of it worked), the
locks.
Source: Kafka LogManager.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from barnabas.broker.storage.cleaning.cleaner_manager import CleanerManager
from barnabas.broker.storage.directories.closing import close_log, close_logs, write_clean_markers
from barnabas.broker.storage.directories.data_directory import DataDirectory
from barnabas.broker.storage.directories.deletion_queue import DeletionQueue
from barnabas.broker.storage.directories.loading import DirectoryLoader, FoundPartition
from barnabas.broker.storage.directories.log_creation import LogCreator, ensure_topic_id, make_partition_directory
from barnabas.broker.storage.directories.opening import open_data_directories
from barnabas.broker.storage.files.clean_shutdown import NO_BROKER_EPOCH
from barnabas.broker.storage.files.errors import StartupStorageError, StorageError
from barnabas.broker.storage.files.open_files import raise_descriptor_limit
from barnabas.broker.storage.files.partition_directory import (
    delete_directory_name,
    directory_name,
    stray_directory_name,
)
from barnabas.broker.storage.log.future_log import FutureLog
from barnabas.broker.storage.log.loading.loader import LoadRequest
from barnabas.broker.storage.log.opening import open_log
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.maintenance import Maintenance
from barnabas.broker.storage.partition_moves import PartitionMoves
from barnabas.broker.storage.served_logs import THREADS_PER_DIRECTORY, ServedLogs
from barnabas.broker.storage.services.clock import Clock
from barnabas.broker.storage.services.scheduler import Scheduler
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.log_config import LogConfig
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

DIRECTORY_FAILURE_TASK = "log-dir-failure"


class LogManager(ServedLogs[PartitionLog]):
    """Owner of all logs of a broker."""

    moves: PartitionMoves

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        scheduler: Scheduler | None = None,
        on_directory_failed: Callable[[Path, tuple[TopicPartition, ...]], None] | None = None,
    ) -> None:
        """`on_directory_failed(directory, its partitions)` is called on a background thread, once per directory."""
        super().__init__(config, clock=clock, scheduler=scheduler, on_failure=self._schedule_failure)
        self.found_futures: tuple[FutureLog, ...] = ()
        """The copies found at start; the caller knows from the metadata what becomes of them."""
        self.deletions = DeletionQueue(self.services, lambda: self.config.log_config.file_delete_delay_ms)
        if config.get_bool("log.cleaner.enable"):
            self.cleaner = CleanerManager(config, self.services, logs=self.logs, get=self.get)
        self.maintenance = Maintenance(self.services, self.logs, self._live, self.cleaner, copies=self._copies)
        self.moves = PartitionMoves(
            self.services,
            self.maintenance,
            self.deletions,
            max_bytes_per_second=lambda: self.config.get_int("replica.alter.log.dirs.io.max.bytes.per.second"),
            assign=self._assign,
            cleaner=self.cleaner,
        )
        self._creator = LogCreator(self.services, lambda: self.live_directories, self.logs_and_copies)
        self._on_directory_failed = on_directory_failed
        self._metadata_directory: DataDirectory | None = None
        self._assign_directory: Callable[[PartitionLog, Path], None] | None = None
        self._lock = threading.Lock()
        """Held while logs are created, removed or taken offline."""

    # -- start

    def open_directories(self) -> tuple[Path, ...]:
        """Make, try and lock the data directories; those that can be used.

        One that cannot is offline, but the metadata log's must work. Raises StartupStorageError when none can be used
        or another broker has one.
        """
        raise_descriptor_limit()
        self.directories, self._metadata_directory = open_data_directories(self.config, self.failures)
        return self.live_directories

    def open_metadata_log(
        self, topic_partition: TopicPartition, topic_id: bytes, config: LogConfig, *, log_start_offset: int = 0
    ) -> PartitionLog:
        """The metadata log, made if it is missing. It is recovered at every start, as Kafka's is: it is small.

        One that ends below `log_start_offset` begins anew there. This manager closes it, after all other logs.
        Raises StartupStorageError.
        """
        owner = self._metadata_directory
        assert owner is not None, "open_directories comes first"
        directory = owner.path / directory_name(topic_partition)
        try:
            make_partition_directory(directory, topic_id)
            request = LoadRequest(directory, topic_partition, config, False, 0, log_start_offset)
            self.metadata_log = open_log(request, self.services)
        except (OSError, StorageError) as error:
            raise StartupStorageError(directory, f"cannot open the metadata log: {error}") from error
        return self.metadata_log

    def load_logs(
        self,
        log_config_of: Callable[[str], LogConfig],
        is_stray: Callable[[FoundPartition], bool] | None = None,
        assign_directory: Callable[[PartitionLog, Path], None] | None = None,
    ) -> int:
        """Load all logs of the live directories in parallel; return how many. Raises StartupStorageError.

        The callbacks are the metadata's, and are called by any thread. `log_config_of(topic)` is also used for logs
        that are created later. `is_stray` returns whether a partition directory belongs to no partition of the
        metadata: it is renamed -stray and not served. `assign_directory(log, log_dir)` records durably that a log is
        in another log directory now, and raises BrokerError; without it no log can be moved.
        """
        self._log_config_of = log_config_of
        self._assign_directory = assign_directory
        loader = DirectoryLoader(
            self.services, log_config_of, is_stray, self.load_progress, self.config.get_int(THREADS_PER_DIRECTORY)
        )
        found = loader.load(self._live())
        self._logs = {**self._logs, **{log.topic_partition: log for log in found.logs}}
        for path in found.doomed:
            self.deletions.add(path)
        self.found_futures = tuple(found.futures)
        return len(found.logs)

    def start_tasks(self) -> None:
        """Begin the background work."""
        self.maintenance.start(self.config)
        self.deletions.start(self.config.get_int("log.initial.task.delay.ms"))
        if self.cleaner is not None:
            self.cleaner.start(self.live_directories)

    # -- logs

    def logs_and_copies(self) -> list[PartitionLog]:
        """Return all logs, and the copies that moves are filling."""
        return [*self._logs.values(), *self._copies()]

    def _copies(self) -> list[PartitionLog]:
        return [future.log for future in self.moves.futures()]

    def move(self, topic_partition: TopicPartition, log_dir: Path) -> bool:
        """Begin to move a log to `log_dir`; False when it is there, or on its way, already.

        A move to another directory is given up first. Raises BrokerError KAFKA_STORAGE_ERROR.
        """
        with self._lock:
            current = self._logs.get(topic_partition)
            if current is None:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no log of {topic_partition}")
            future = self.moves.future_of(topic_partition)
            if future is not None and (future.log.log_dir != log_dir or not self.moves.is_running(topic_partition)):
                self.moves.cancel(topic_partition)
                future = None
            if current.log_dir == log_dir or future is not None:
                return False
            if self.failures.offline:
                names = ", ".join(map(str, self.failures.offline))
                raise BrokerError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"{topic_partition} is not moved while a log directory is offline ({names})",
                )
            self.moves.begin(current, self._creator.create_future(current, log_dir))
            return True

    def promote(self, future: FutureLog) -> None:
        """Serve a copy as the log that it is of, which has gone. Raises OSError."""
        self.moves.promote(future)
        with self._lock:
            self._logs = {**self._logs, future.topic_partition: future.log}

    def get_or_create(
        self, topic_partition: TopicPartition, topic_id: bytes, *, is_new: bool = True, log_dir: Path | None = None
    ) -> PartitionLog:
        """The partition's log; if it is missing it is made, in `log_dir` or in the directory with the fewest logs.

        partition.metadata is on disk when this returns. Without `is_new` (the partition existed before this start)
        nothing is made while a directory is offline: the log may be there. Raises BrokerError KAFKA_STORAGE_ERROR.
        """
        with self._lock:
            log = self._logs.get(topic_partition)
            if log is None:
                config = self._log_config_of(topic_partition.topic)
                log = self._creator.create(topic_partition, topic_id, config, is_new=is_new, log_dir=log_dir)
                self._logs = {**self._logs, topic_partition: log}
            else:
                ensure_topic_id(log, topic_id)
            return log

    def delete(self, topic_partitions: Iterable[TopicPartition]) -> int:
        """Take logs out of service and rename their directories `-delete`; their bytes go after the delay.

        How many there were. Nothing is raised: a disk that fails takes its directory offline.
        """
        count = 0
        for topic_partition in topic_partitions:
            log = self._take(topic_partition, delete_directory_name(topic_partition))
            if log is not None:
                self.deletions.add(log)
                count += 1
                logger.info("deleting log %s, directory=%s", topic_partition, log.directory)
        if count:
            # A topic of the same name that is made next must not get the old one's offsets.
            self.maintenance.checkpoint_recovery_points()
            self.maintenance.checkpoint_log_starts()
        return count

    def set_aside_stray(self, topic_partition: TopicPartition) -> Path | None:
        """Take a log out of service and rename its directory `-stray`, where it is kept; its path."""
        log = self._take(topic_partition, stray_directory_name(topic_partition))
        if log is None:
            return None
        logger.warning("log is stray, its directory is kept: %s, directory=%s", topic_partition, log.directory)
        return log.directory

    def update_topic_config(self, topic: str, config: LogConfig) -> None:
        """Give the topic's logs another configuration."""
        for log in self.logs_and_copies():
            if log.topic_partition.topic == topic:
                self._update_config(log, config)
        if self.cleaner is not None:
            self.cleaner.wake()

    def update_broker_config(self, config: BrokerConfig) -> None:
        """The broker's configuration changed at runtime: every log gets its own anew, by `load_logs`' lookup."""
        self.config = config
        self.services.producer_expiration.ms = config.get_int("producer.id.expiration.ms")
        if self._own_scheduler is not None:
            self._own_scheduler.resize(config.get_int("background.threads"))
        for log in self.logs_and_copies():
            self._update_config(log, self._log_config_of(log.topic_partition.topic))
        if self.cleaner is not None:
            self.cleaner.reconfigure(config)

    def _update_config(self, log: PartitionLog, config: LogConfig) -> None:
        was_compact = log.config.compact
        log.update_config(config)
        if was_compact and not config.compact and self.cleaner is not None:
            self.cleaner.abort(log.topic_partition)  # from now on the retention task deletes its segments

    def _assign(self, log: PartitionLog, log_dir: Path) -> None:
        assert self._assign_directory is not None, "load_logs was given no assign_directory"
        self._assign_directory(log, log_dir)

    def _take(self, topic_partition: TopicPartition, new_name: str) -> PartitionLog | None:
        """Take a log out of the map and rename its directory; a move of it is given up, and a round of the cleaner."""
        with self._lock:
            log = self._logs.get(topic_partition)
            if log is None:
                return None
            self._logs = {key: value for key, value in self._logs.items() if key != topic_partition}
            self.load_progress.pop(topic_partition, None)
        self.moves.cancel(topic_partition)
        if self.cleaner is not None:
            self.cleaner.abort_and_pause(topic_partition)
            self.cleaner.remove_from_checkpoint(log.log_dir, topic_partition)
        try:
            log.rename_directory(new_name)
        except OSError as error:
            self.failures.report(log.log_dir, f"cannot rename {log.directory}", error)
        log.go_offline()
        if self.cleaner is not None:
            self.cleaner.resume((topic_partition,))
        return log

    # -- failures

    def _schedule_failure(self, log_dir: Path) -> None:
        self.scheduler.schedule(DIRECTORY_FAILURE_TASK, lambda: self._handle_failure(log_dir))

    def _handle_failure(self, log_dir: Path) -> None:
        affected = []
        for log in self.logs():
            if log.log_dir == log_dir:
                log.go_offline()
                affected.append(log.topic_partition)
        metadata_log = self.metadata_log
        if metadata_log is not None and metadata_log.log_dir == log_dir:
            metadata_log.go_offline()
        if self.cleaner is not None:
            self.cleaner.directory_failed(log_dir)
        self.moves.directory_failed(log_dir)
        for directory in self.directories:
            if directory.path == log_dir:
                directory.unlock()
        logger.error("log directory is offline: log_dir=%s, partitions=%s", log_dir, len(affected))
        if self._on_directory_failed is not None:
            self._on_directory_failed(log_dir, tuple(affected))

    # -- stop

    def shutdown(self, broker_epoch: int = NO_BROKER_EPOCH) -> bool:
        """Stop the background work and close everything in the one right order; whether all directories are clean.

        Nobody may append any more. What is not clean is recovered at the next start; nothing is raised. After a start
        that was refused before the logs were loaded nothing on disk is changed.
        """
        if self._own_scheduler is not None:
            self._own_scheduler.shutdown()
        if not any(directory.is_loaded for directory in self._live()):
            self._close_metadata_log()
            self._unlock(refused=True)
            return False
        self.maintenance.checkpoint_high_watermarks()
        if self.cleaner is not None:
            self.cleaner.shutdown()
        threads = self.config.get_int(THREADS_PER_DIRECTORY) * max(len(self.directories), 1)
        not_closed = close_logs(self.logs_and_copies(), threads)
        self.maintenance.checkpoint_recovery_points()
        self.maintenance.checkpoint_log_starts()
        metadata_closed = self._close_metadata_log()
        all_marked = write_clean_markers(self._live(), not_closed, broker_epoch)
        self._unlock()
        return all_marked and metadata_closed and not self.failures.offline

    def _close_metadata_log(self) -> bool:
        return self.metadata_log is None or close_log(self.metadata_log)

    def _unlock(self, *, refused: bool = False) -> None:
        for directory in self.directories:
            directory.unlock(refused=refused)
        if self._metadata_directory is not None:
            self._metadata_directory.unlock(refused=refused)

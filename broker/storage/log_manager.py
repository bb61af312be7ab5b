"""LogManager: the data directories, the logs in them, and their background work.

A start has phases, because the metadata log must be replayed before the other logs can be loaded:
    1. open_directories()   create, probe and lock the directories
    2. open_metadata_log()  the caller replays it; phase 3 leaves it out
    3. load_logs()          all other logs in parallel, with configurations and strays from the metadata
    4. start_tasks()        retention, flusher, checkpoints, deletions, producer expiration, the cleaner

A stop has one order, in `shutdown`: checkpoint high watermarks, stop the cleaner, flush and close the logs (with
producer snapshots), checkpoint recovery points and log start offsets, close the metadata log, write the clean-shutdown
markers (of directories where all of this worked), release the locks.

A standby that takes over does not stop its manager: `change_owner` gives the loaded logs to the broker.
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
from barnabas.broker.storage.directories.log_creation import LogCreator, create_partition_directory, ensure_topic_id
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
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.broker.storage.services.scheduler import Scheduler
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.log_config import LogConfig
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

DIRECTORY_FAILURE_TASK = "log-dir-failure"


class LogManager(ServedLogs[PartitionLog]):
    """Owner of all logs of a broker. Thread-safe after the start."""

    moves: PartitionMoves

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        scheduler: Scheduler | None = None,
        on_directory_failed: Callable[[Path, tuple[TopicPartition, ...]], None] | None = None,
    ) -> None:
        """Call `on_directory_failed(directory, its partitions)` on a background thread, once per failed directory.

        A later owner may replace it.
        """
        super().__init__(config, clock=clock, scheduler=scheduler, on_failure=self._schedule_failure)
        self.found_futures: tuple[FutureLog, ...] = ()
        """Copies of unfinished moves, found at start; the metadata decides what becomes of them."""
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
        self.on_directory_failed = on_directory_failed
        self._metadata_directory: DataDirectory | None = None
        self._assign_directory: Callable[[PartitionLog, Path], None] | None = None
        self._lock = threading.Lock()
        """Held while logs are created or removed."""
        self._has_tasks = False

    # -- start

    def open_directories(self) -> tuple[Path, ...]:
        """Create, probe and lock the data directories; return the usable ones.

        An unusable one is offline, but the metadata log's directory must work. Raises StartupStorageError if none is
        usable or another broker uses one.
        """
        raise_descriptor_limit()
        self.directories, self._metadata_directory = open_data_directories(self.config, self.failures)
        return self.live_directories

    def open_metadata_log(
        self, topic_partition: TopicPartition, topic_id: bytes, config: LogConfig, *, log_start_offset: int = 0
    ) -> PartitionLog:
        """Open the metadata log, creating it if missing. It is small, and recovered at every start as in Kafka.

        A log that ends below `log_start_offset` starts over there. This manager closes it, after all other logs.
        Raises StartupStorageError.
        """
        owner = self._metadata_directory
        assert owner is not None, "open_directories comes first"
        directory = owner.path / directory_name(topic_partition)
        try:
            create_partition_directory(directory, topic_id)
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

    def change_owner(
        self,
        log_config_of: Callable[[str], LogConfig],
        assign_directory: Callable[[PartitionLog, Path], None],
    ) -> None:
        """Serve the loaded logs under other metadata: the callbacks replace those of `load_logs`."""
        self._log_config_of = log_config_of
        self._assign_directory = assign_directory

    def start_tasks(self) -> None:
        """Start the background work, unless it runs: a standby's goes on when it has taken over."""
        if self._has_tasks:
            return
        self._has_tasks = True
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
        """Start to move a log to `log_dir`; return False if it is there or being moved there already.

        A move to another directory is cancelled first. Raises BrokerError UNKNOWN_TOPIC_OR_PARTITION or
        KAFKA_STORAGE_ERROR.
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
        """Serve a move's copy as the log, because the original is gone. Raises OSError."""
        self.moves.promote(future)
        with self._lock:
            self._logs = {**self._logs, future.topic_partition: future.log}

    def get_or_create(
        self, topic_partition: TopicPartition, topic_id: bytes, *, is_new: bool = True, log_dir: Path | None = None
    ) -> PartitionLog:
        """Return the partition's log; a missing one is created, see `LogCreator.create`.

        partition.metadata is on disk when this returns. Raises BrokerError KAFKA_STORAGE_ERROR.
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
        """Take logs out of service and rename their directories `-delete`, to be removed after the delay.

        Returns how many existed. Raises nothing: a disk failure takes the directory offline.
        """
        count = 0
        for topic_partition in topic_partitions:
            log = self._take(topic_partition, delete_directory_name(topic_partition))
            if log is not None:
                self.deletions.add(log)
                count += 1
                logger.info("deleting log %s, directory=%s", topic_partition, log.directory)
        if count:
            # A new topic of the same name must not get the old one's offsets.
            self.maintenance.checkpoint_recovery_points()
            self.maintenance.checkpoint_log_starts()
        return count

    def truncate(self, topic_partition: TopicPartition, offset: int) -> None:
        """Let a copied log end at `offset`, because its source does. Raises BrokerError; see LogTruncation."""
        self._truncate(topic_partition, offset, lambda log: log.truncate_to(offset))

    def restart(self, topic_partition: TopicPartition, offset: int) -> None:
        """Drop all records of a copied log; it begins again at `offset`. Raises BrokerError; see LogTruncation."""
        self._truncate(topic_partition, offset, lambda log: log.truncate_fully_and_start_at(offset))

    def _truncate(self, topic_partition: TopicPartition, offset: int, cut: Callable[[PartitionLog], object]) -> None:
        log = self._logs.get(topic_partition)
        if log is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no log of {topic_partition}")
        self.moves.cancel(topic_partition)
        if self.cleaner is None:
            cut(log)
        else:
            self.cleaner.abort_and_pause(topic_partition)
            try:
                cut(log)
                self.cleaner.maybe_truncate_checkpoint(log.log_dir, topic_partition, offset)
            finally:
                self.cleaner.resume((topic_partition,))
        self.maintenance.checkpoint_recovery_points()
        self.maintenance.checkpoint_log_starts()

    def set_aside_stray(self, topic_partition: TopicPartition) -> Path | None:
        """Take a log out of service and rename its directory `-stray` to keep it; return its new path, if any."""
        log = self._take(topic_partition, stray_directory_name(topic_partition))
        if log is None:
            return None
        logger.warning("log is stray, its directory is kept: %s, directory=%s", topic_partition, log.directory)
        return log.directory

    def update_topic_config(self, topic: str, config: LogConfig) -> None:
        """Change the configuration of the topic's logs."""
        for log in self.logs_and_copies():
            if log.topic_partition.topic == topic:
                self._update_config(log, config)
        if self.cleaner is not None:
            self.cleaner.wake()

    def update_broker_config(self, config: BrokerConfig) -> None:
        """Apply a changed broker configuration; every log's is looked up again by `log_config_of`."""
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
            self.cleaner.abort(log.topic_partition)  # from now on the retention task deletes its old segments

    def _assign(self, log: PartitionLog, log_dir: Path) -> None:
        assert self._assign_directory is not None, "load_logs was given no assign_directory"
        self._assign_directory(log, log_dir)

    def _take(self, topic_partition: TopicPartition, new_name: str) -> PartitionLog | None:
        """Remove a log from the map and rename its directory, after ending its move and its cleaning.

        After a shortage it keeps its name: as long as it is there, no other topic's log is created in its place.
        """
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
            if is_shortage(error) and log.directory.name != new_name:
                logger.warning("%s keeps its name: %s", log.directory, error)
            else:
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
        if self.on_directory_failed is not None:
            self.on_directory_failed(log_dir, tuple(affected))

    # -- stop

    def shutdown(self, broker_epoch: int = NO_BROKER_EPOCH, *, threads: int | None = None) -> bool:
        """Stop the background work and close everything; return whether all directories are marked as clean.

        `threads` close the logs, by default num.recovery.threads.per.data.dir for each directory.

        Appends must have ended. Raises nothing: a directory that is not clean is recovered at the next start. After a
        start that was refused before the logs were loaded, nothing on disk changes.
        """
        if self._own_scheduler is not None:
            self._own_scheduler.shutdown()
        if not any(directory.is_loaded for directory in self._live()):
            self.close_metadata_log()
            self._unlock(refused=True)
            return False
        self.maintenance.checkpoint_high_watermarks()
        if self.cleaner is not None:
            self.cleaner.shutdown()
        if threads is None:
            threads = self.config.get_int(THREADS_PER_DIRECTORY) * max(len(self.directories), 1)
        not_closed = close_logs(self.logs_and_copies(), threads)
        self.maintenance.checkpoint_recovery_points()
        self.maintenance.checkpoint_log_starts()
        metadata_closed = self.close_metadata_log()
        all_marked = write_clean_markers(self._live(), not_closed, broker_epoch)
        self._unlock()
        return all_marked and metadata_closed and not self.failures.offline

    def close_metadata_log(self) -> bool:
        """Flush and close the metadata log; return whether that worked. It can be opened again."""
        return self.metadata_log is None or close_log(self.metadata_log)

    def _unlock(self, *, refused: bool = False) -> None:
        for directory in self.directories:
            directory.unlock(refused=refused)
        if self._metadata_directory is not None:
            self._metadata_directory.unlock(refused=refused)

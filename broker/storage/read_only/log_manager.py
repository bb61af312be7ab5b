"""ReadOnlyLogManager: the logs of a broker with `read.only=true`.

It opens log directories without a lock or a probe file, and has no background work. A directory that another broker has
open is refused: this broker would not see what that one writes and deletes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

from barnabas.broker.storage.cleaning.cleaner_manager import CleanerManager
from barnabas.broker.storage.directories.data_directory import DataDirectory
from barnabas.broker.storage.directories.loading import FoundPartition
from barnabas.broker.storage.files.checkpoint_file import OffsetCheckpointFile
from barnabas.broker.storage.files.clean_shutdown import CLEAN_SHUTDOWN_FILE, NO_BROKER_EPOCH
from barnabas.broker.storage.files.errors import CorruptFileError, StartupStorageError, StorageError
from barnabas.broker.storage.files.open_files import raise_descriptor_limit
from barnabas.broker.storage.files.partition_directory import DirectoryKind, parse_directory_name
from barnabas.broker.storage.inspection.lock_probe import lock_holder
from barnabas.broker.storage.log.loading.loader import LoadProgress, LoadRequest
from barnabas.broker.storage.read_only.log import ReadOnlyLog, open_read_only_log
from barnabas.broker.storage.read_only.refusal import refuse_change
from barnabas.broker.storage.served_logs import THREADS_PER_DIRECTORY, ServedLogs
from barnabas.broker.storage.services.clock import Clock
from barnabas.broker.storage.services.scheduler import Scheduler
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.log_config import LogConfig
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.topic_name import CLUSTER_METADATA_TOPIC
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class ReadOnlyLogManager(ServedLogs[ReadOnlyLog]):
    """Owner of the logs of a broker that only reads."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        scheduler: Scheduler | None = None,
    ) -> None:
        """There is no callback for failed directories: a read that fails takes no directory offline."""
        super().__init__(config, clock=clock, scheduler=scheduler)
        if config.get_bool("log.cleaner.enable"):
            # Never started: it only describes how clean the compacted logs are.
            self.cleaner = CleanerManager(config, self.services, logs=tuple, get=self.get)

    def open_directories(self) -> tuple[Path, ...]:
        """Open the directories of log.dirs, all of which must exist; return them. Raises StartupStorageError."""
        raise_descriptor_limit()
        for path in self.config.log_dirs:
            try:
                next(path.iterdir(), None)
                holder = lock_holder(path)
            except OSError as error:
                raise StartupStorageError(path, f"cannot be read: {error}") from error
            if holder is not None:
                raise StartupStorageError(path, f"another broker is using this data directory, pid={holder}: stop it")
        self.directories = tuple(DataDirectory(path) for path in self.config.log_dirs)
        return self.live_directories

    def load_logs(
        self,
        log_config_of: Callable[[str], LogConfig],
        is_stray: Callable[[FoundPartition], bool] | None = None,
        *,
        topic: str | None = None,
    ) -> int:
        """Load all logs, or those of one topic, in parallel; return how many.

        A log that cannot be read is reported and left out.
        """
        self._log_config_of = log_config_of
        threads = self.config.get_int(THREADS_PER_DIRECTORY) * len(self.directories)
        found = [request for directory in self.directories for request in self._requests(directory)]
        requests = [request for request in found if topic is None or request.topic_partition.topic == topic]
        with ThreadPoolExecutor(threads, thread_name_prefix="log-reading") as pool:
            logs = [log for log in pool.map(self._open, requests) if log is not None]
        for log in logs:
            if is_stray is not None and is_stray(FoundPartition(log.topic_partition, log.topic_id, log.directory)):
                logger.warning("directory is stray and not served: %s", log.directory)
                log.close()
            elif log.topic_partition in self._logs:
                other = self._logs[log.topic_partition].directory
                logger.warning("%s is served from %s, not from %s as well", log.topic_partition, other, log.directory)
                log.close()
            else:
                self._logs[log.topic_partition] = log
        for directory in self.directories:
            directory.is_loaded = True
        return len(self._logs)

    def start_tasks(self) -> None:
        """Start nothing: every background task writes."""

    def shutdown(self, broker_epoch: int = NO_BROKER_EPOCH) -> bool:
        """Close all files. Returns true: nothing was written that could be unclean."""
        if self._own_scheduler is not None:
            self._own_scheduler.shutdown()
        for log in self.logs():
            log.close()
        return True

    def move(self, topic_partition: TopicPartition, log_dir: Path) -> NoReturn:
        """Raise BrokerError POLICY_VIOLATION, for AlterReplicaLogDirs."""
        refuse_change(f"{topic_partition} is not moved")

    def _requests(self, directory: DataDirectory) -> list[LoadRequest]:
        directory.had_clean_shutdown = (directory.path / CLEAN_SHUTDOWN_FILE).exists()
        recovery_points = _offsets(directory.recovery_points, "all logs are checked from their start")
        log_starts = _offsets(directory.log_start_offsets, "logs begin with their first segments")
        found = []
        for path in sorted(directory.path.iterdir()):
            parsed = parse_directory_name(path.name) if path.is_dir() else None
            if parsed is None or parsed.kind is not DirectoryKind.CURRENT:
                continue
            topic_partition = parsed.topic_partition
            if topic_partition.topic == CLUSTER_METADATA_TOPIC:
                continue
            found.append(
                LoadRequest(
                    directory=path,
                    topic_partition=topic_partition,
                    config=self._log_config_of(topic_partition.topic),
                    had_clean_shutdown=directory.had_clean_shutdown,
                    recovery_point=recovery_points.get(topic_partition, 0),
                    log_start_offset=log_starts.get(topic_partition, 0),
                )
            )
        directory.logs_total = directory.logs_loaded = len(found)
        return found

    def _open(self, request: LoadRequest) -> ReadOnlyLog | None:
        progress = self.load_progress[request.topic_partition] = LoadProgress()
        try:
            return open_read_only_log(request, self.services, progress)
        except (OSError, StorageError, DecodeError) as error:
            logger.error("%s is not served, the other logs are: %s", request.directory, error)
            return None


def _offsets(file: OffsetCheckpointFile, consequence: str) -> Mapping[TopicPartition, int]:
    try:
        return file.read()
    except CorruptFileError as error:
        logger.warning("unreadable checkpoint, %s: %s", consequence, error)
        return {}

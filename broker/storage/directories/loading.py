"""Loading all logs of the data directories: in parallel, num.recovery.threads.per.data.dir threads for each.

Two directories of one partition, and directories that are none, stop the start before anything is changed. Then the
clean-shutdown marker is taken away, and only then is a log touched. An error of the disk takes that directory offline
and the others go on.
Source: Kafka LogManager.loadLogs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.storage.directories.data_directory import DataDirectory
from barnabas.broker.storage.files.errors import StartupStorageError, StorageError
from barnabas.broker.storage.files.partition_directory import DirectoryKind, ParsedDirectoryName, stray_directory_name
from barnabas.broker.storage.log.future_log import FutureLog
from barnabas.broker.storage.log.loading.loader import LoadProgress, LoadRequest
from barnabas.broker.storage.log.opening import open_log
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.services.services import StorageServices
from barnabas.config.log_config import LogConfig
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.topic_name import CLUSTER_METADATA_TOPIC
from barnabas.protocol.topic_partition import TopicPartition

PROGRESS_INTERVAL_S = 10.0
"""How often a long loading says how far it is."""

logger = logging.getLogger(__name__)


class FoundPartition(NamedTuple):
    """A partition directory, as the caller that knows the metadata is asked about it."""

    topic_partition: TopicPartition
    topic_id: bytes | None
    directory: Path


@dataclass(slots=True)
class FoundLogs:
    """What the directories held."""

    logs: list[PartitionLog] = field(default_factory=list)
    futures: list[FutureLog] = field(default_factory=list)
    """The copies of moves that had not ended."""
    doomed: list[Path] = field(default_factory=list)
    """`-delete` directories: they wait for their removal."""
    strays: list[Path] = field(default_factory=list)
    """`-stray` directories, old ones and those just renamed."""


class DirectoryLoader:
    """Loads the logs once, at start."""

    def __init__(
        self,
        services: StorageServices,
        log_config_of: Callable[[str], LogConfig],
        is_stray: Callable[[FoundPartition], bool] | None,
        progress: dict[TopicPartition, LoadProgress],
        threads_per_directory: int,
    ) -> None:
        self._services = services
        self._log_config_of = log_config_of
        self._is_stray = is_stray
        self._progress = progress
        self._threads = threads_per_directory
        self._found = FoundLogs()
        self._owner: dict[TopicPartition, Path] = {}
        self._under_way: dict[Path, LoadProgress] = {}
        """The logs that are being loaded at the moment."""
        self._lock = threading.Lock()

    def load(self, directories: Sequence[DataDirectory]) -> FoundLogs:
        """Load them all. Raises StartupStorageError."""
        started = time.monotonic()
        pools: list[ThreadPoolExecutor] = []
        pending: list[tuple[DataDirectory, list[Future[None]]]] = []
        try:
            # All are listed before the first is touched: a start that is refused here costs the next one no recovery.
            for directory, partitions in self._list(directories):
                try:
                    jobs = self._jobs(directory, partitions)
                except OSError as error:
                    self._fail(directory, error)
                    continue
                pool = ThreadPoolExecutor(self._threads, thread_name_prefix=f"log-recovery-{directory.path}")
                pools.append(pool)
                pending.append((directory, [pool.submit(job) for job in jobs]))
            for directory, futures in pending:
                self._await_and_say([each for each, _ in pending], futures)
                self._await(directory, futures)
                directory.load_seconds = time.monotonic() - started
        finally:
            for pool in pools:
                pool.shutdown(cancel_futures=True)
        if self._found.logs:
            logger.info("loaded %s logs in %.0f ms", len(self._found.logs), (time.monotonic() - started) * 1000)
        return self._found

    def _await_and_say(self, directories: Sequence[DataDirectory], futures: Sequence[Future[None]]) -> None:
        """Wait until all are done, or one has failed; say now and then how far all directories are."""
        while True:
            done, left = wait(futures, PROGRESS_INTERVAL_S, FIRST_EXCEPTION)
            if not left or any(future.exception() for future in done):
                return
            with self._lock:
                under_way = dict(self._under_way)
            for directory in directories:
                logs = [
                    f"{path.name} ({progress.segments_left} of {progress.segments_total} segments left)"
                    for path, progress in under_way.items()
                    if path.parent == directory.path
                ]
                if logs:
                    logger.info(
                        "loading logs: loaded=%s of=%s log_dir=%s, under way: %s",
                        directory.logs_loaded,
                        directory.logs_total,
                        directory.path,
                        ", ".join(logs),
                    )

    def _await(self, directory: DataDirectory, futures: list[Future[None]]) -> None:
        whole = True
        for future in futures:
            try:
                future.result()
            except DecodeError as error:
                logger.error("a log of %s is not served, the others are: %s", directory.path, error)
                whole = False
            except (OSError, StorageError) as error:
                if isinstance(error, StartupStorageError):
                    raise
                self._fail(directory, error)
                return
        directory.is_loaded = whole

    def _list(
        self, directories: Sequence[DataDirectory]
    ) -> list[tuple[DataDirectory, list[tuple[Path, ParsedDirectoryName]]]]:
        """The partitions' directories of each data directory that can be listed. Raises StartupStorageError."""
        listed = []
        for directory in directories:
            try:
                partitions = directory.partition_directories()
            except OSError as error:
                self._fail(directory, error)
                continue
            listed.append((directory, partitions))
            for path, parsed in partitions:
                if parsed.kind is DirectoryKind.CURRENT and parsed.topic_partition.topic != CLUSTER_METADATA_TOPIC:
                    self._claim(parsed.topic_partition, path)
        return listed

    def _jobs(
        self, directory: DataDirectory, partitions: Sequence[tuple[Path, ParsedDirectoryName]]
    ) -> list[Callable[[], None]]:
        """One job per log of the directory. Raises OSError."""
        directory.take_clean_marker()
        recovery_points, log_starts = directory.read_checkpoints()
        jobs: list[Callable[[], None]] = []
        for path, parsed in partitions:
            if parsed.topic_partition.topic == CLUSTER_METADATA_TOPIC:
                continue
            match parsed.kind:
                case DirectoryKind.DELETE:
                    self._found.doomed.append(path)
                case DirectoryKind.STRAY:
                    self._found.strays.append(path)
                case DirectoryKind.FUTURE:
                    jobs.append(self._job(directory, path, parsed, recovery_points, log_starts))
                case DirectoryKind.CURRENT:
                    jobs.append(self._job(directory, path, parsed, recovery_points, log_starts))
        directory.logs_total = len(jobs)
        if jobs and not directory.had_clean_shutdown:
            logger.info("recovering %s logs: the last stop was not clean, log_dir=%s", len(jobs), directory.path)
        return jobs

    def _claim(self, topic_partition: TopicPartition, path: Path) -> None:
        other = self._owner.setdefault(topic_partition, path)
        if other != path:
            raise StartupStorageError(
                path, f"{topic_partition} is in two log directories, also in {other}: remove the one that is outdated"
            )

    def _job(
        self,
        directory: DataDirectory,
        path: Path,
        parsed: ParsedDirectoryName,
        recovery_points: Mapping[TopicPartition, int],
        log_starts: Mapping[TopicPartition, int],
    ) -> Callable[[], None]:
        topic_partition = parsed.topic_partition
        is_future = parsed.kind is DirectoryKind.FUTURE
        progress = LoadProgress()
        if not is_future:
            self._progress[topic_partition] = progress
        request = LoadRequest(
            directory=path,
            topic_partition=topic_partition,
            config=self._log_config_of(topic_partition.topic),
            had_clean_shutdown=directory.had_clean_shutdown,
            recovery_point=recovery_points.get(topic_partition, 0),
            log_start_offset=log_starts.get(topic_partition, 0),
        )

        def load() -> None:
            if self._services.failures.is_offline(directory.path):
                return
            with self._lock:
                self._under_way[path] = progress
            try:
                log = open_log(request, self._services, progress)
            except DecodeError as error:
                raise DecodeError(f"{path}: {error}") from error
            finally:
                with self._lock:
                    del self._under_way[path]
            found = FoundPartition(topic_partition, log.topic_id, path)
            if self._is_stray is not None and self._is_stray(found):
                log.rename_directory(stray_directory_name(topic_partition))
                log.close()
                logger.warning("directory is stray, kept as %s", log.directory)
                with self._lock:
                    self._found.strays.append(log.directory)
                    if not is_future:
                        self._progress.pop(topic_partition, None)
                    directory.logs_total -= 1
                return
            with self._lock:
                if is_future:
                    self._found.futures.append(FutureLog(log))
                else:
                    self._found.logs.append(log)
                directory.logs_loaded += 1

        return load

    def _fail(self, directory: DataDirectory, error: Exception) -> None:
        self._services.failures.report(directory.path, f"cannot load log directory {directory.path}", error)

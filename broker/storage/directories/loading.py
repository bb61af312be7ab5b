"""Loading of all logs, in parallel: num.recovery.threads.per.data.dir threads for each data directory.

A partition with two directories, and a directory that belongs to no partition, stop the start before anything is
changed. Then the clean-shutdown markers are removed, and only then is a log touched. A directory that is no partition's
of the metadata is renamed without being opened: Kafka recovers it first. A disk error takes that directory offline; the
others are loaded. Source: Kafka LogManager.loadLogs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.storage.directories.data_directory import DataDirectory
from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.files.errors import StartupStorageError, StorageError
from barnabas.broker.storage.files.partition_directory import DirectoryKind, ParsedDirectoryName, stray_directory_name
from barnabas.broker.storage.files.partition_metadata_file import read_partition_metadata
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
"""Interval of progress log lines while loading."""

logger = logging.getLogger(__name__)


class FoundPartition(NamedTuple):
    """A partition directory, for the callback that looks it up in the metadata."""

    topic_partition: TopicPartition
    topic_id: bytes | None
    directory: Path


class FoundLogs(NamedTuple):
    """Logs and special directories found at start."""

    logs: list[PartitionLog]
    futures: list[FutureLog]
    """Copies of unfinished moves."""
    doomed: list[Path]
    """`-delete` directories, which wait for their removal."""


class DirectoryLoader:
    """Loads all logs, once, at start."""

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
        self._found = FoundLogs([], [], [])
        self._owner: dict[TopicPartition, Path] = {}
        self._in_progress: dict[Path, LoadProgress] = {}
        """Logs that are being loaded now."""
        self._lock = threading.Lock()

    def load(self, directories: Sequence[DataDirectory]) -> FoundLogs:
        """Load all logs. Raises StartupStorageError."""
        started = self._services.clock.monotonic()
        pools: list[ThreadPoolExecutor] = []
        pending: list[tuple[DataDirectory, list[Future[None]]]] = []
        try:
            # List all before the first is touched: if the start is refused here, the next one needs no recovery.
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
                self._wait_with_progress([each for each, _ in pending], futures)
                self._finish(directory, futures)
                directory.load_seconds = self._services.clock.monotonic() - started
        finally:
            for pool in pools:
                pool.shutdown(cancel_futures=True)
        if self._found.logs:
            elapsed_ms = (self._services.clock.monotonic() - started) * 1000
            logger.info("loaded %s logs in %.0f ms", len(self._found.logs), elapsed_ms)
        return self._found

    def _wait_with_progress(self, directories: Sequence[DataDirectory], futures: Sequence[Future[None]]) -> None:
        """Wait until all are done or one has failed; log the progress of all directories meanwhile."""
        while True:
            done, left = wait(futures, PROGRESS_INTERVAL_S, FIRST_EXCEPTION)
            if not left or any(future.exception() for future in done):
                return
            with self._lock:
                in_progress = dict(self._in_progress)
            for directory in directories:
                logs = [
                    f"{path.name} ({progress.segments_left} of {progress.segments_total} segments left)"
                    for path, progress in in_progress.items()
                    if path.parent == directory.path
                ]
                if logs:
                    logger.info(
                        "loading logs: loaded=%s of=%s log_dir=%s, in progress: %s",
                        directory.logs_loaded,
                        directory.logs_total,
                        directory.path,
                        ", ".join(logs),
                    )

    def _finish(self, directory: DataDirectory, futures: list[Future[None]]) -> None:
        """Wait for a directory's logs and handle their errors. Raises StartupStorageError."""
        all_loaded = True
        for future in futures:
            try:
                future.result()
            except DecodeError as error:
                logger.error("a log of %s is not served, the others are: %s", directory.path, error)
                all_loaded = False
            except (OSError, StorageError) as error:
                if isinstance(error, StartupStorageError):
                    raise
                self._fail(directory, error)
                return
        directory.is_loaded = all_loaded

    def _list(
        self, directories: Sequence[DataDirectory]
    ) -> list[tuple[DataDirectory, list[tuple[Path, ParsedDirectoryName]]]]:
        """List the partition directories of each readable data directory. Raises StartupStorageError."""
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
        """Return a job per log of the directory. Raises OSError."""
        directory.take_clean_marker()
        recovery_points, log_starts = directory.read_checkpoints()
        jobs: list[Callable[[], None]] = []
        for path, parsed in partitions:
            if parsed.topic_partition.topic == CLUSTER_METADATA_TOPIC:
                continue
            if parsed.kind is DirectoryKind.DELETE:
                self._found.doomed.append(path)
            elif parsed.kind is not DirectoryKind.STRAY:
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
            # Asked before the log is opened, because opening cuts and writes: it may be anybody's directory or link.
            topic_id = read_partition_metadata(path)
            if self._is_stray is not None and self._is_stray(FoundPartition(topic_partition, topic_id, path)):
                _keep_as_stray(path, topic_partition)
                with self._lock:
                    if not is_future:
                        self._progress.pop(topic_partition, None)
                    directory.logs_total -= 1
                return
            with self._lock:
                self._in_progress[path] = progress
            try:
                log = open_log(request, self._services, progress, topic_id=topic_id)
            except DecodeError as error:
                raise DecodeError(f"{path}: {error}") from error
            finally:
                with self._lock:
                    del self._in_progress[path]
            with self._lock:
                if is_future:
                    self._found.futures.append(FutureLog(log))
                else:
                    self._found.logs.append(log)
                directory.logs_loaded += 1

        return load

    def _fail(self, directory: DataDirectory, error: Exception) -> None:
        self._services.failures.report(directory.path, f"cannot load log directory {directory.path}", error)


def _keep_as_stray(path: Path, topic_partition: TopicPartition) -> None:
    """Rename a directory, or a link to one, without a look at what is in it. Raises OSError."""
    kept = path.with_name(stray_directory_name(topic_partition))
    path.rename(kept)
    sync_directory(path.parent)
    logger.warning("directory is stray, kept as %s", kept)

"""Creation of logs: choice of the directory, and the first files.

partition.metadata is on disk before the log can get a record. Source: Kafka LogManager.getOrCreateLog.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.files.partition_directory import directory_name, future_directory_name
from barnabas.broker.storage.files.partition_metadata_file import (
    PARTITION_METADATA_FILE,
    read_partition_metadata,
    write_partition_metadata,
)
from barnabas.broker.storage.log.future_log import FutureLog
from barnabas.broker.storage.log.loading.loader import LoadRequest
from barnabas.broker.storage.log.opening import open_log
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.broker.storage.services.services import StorageServices
from barnabas.config.log_config import LogConfig
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_name import is_internal
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class LogCreator:
    """Creates logs in the live directories. The caller makes sure that a log is created only once."""

    def __init__(
        self,
        services: StorageServices,
        directories: Callable[[], Sequence[Path]],
        logs: Callable[[], Iterable[PartitionLog]],
    ) -> None:
        """`directories` returns the live ones, `logs` all logs in them, including the copies of moves."""
        self._services = services
        self._directories = directories
        self._logs = logs

    def create(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        config: LogConfig,
        *,
        is_new: bool,
        log_dir: Path | None,
    ) -> PartitionLog:
        """Create a log in `log_dir`, or in the directory with the fewest logs.

        Without `is_new` (the partition existed before this start) nothing is created while a directory is offline: the
        log may be there. Raises BrokerError KAFKA_STORAGE_ERROR.
        """
        offline = self._services.failures.offline
        if offline and not is_new:
            raise BrokerError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{topic_partition}: not created, it may be in an offline directory ({', '.join(map(str, offline))})",
            )
        for candidate in [log_dir] if log_dir is not None else self._by_logs():
            directory = candidate / directory_name(topic_partition)
            if self._services.failures.is_offline(candidate):
                continue
            try:
                log = self._open_new(LoadRequest(directory, topic_partition, config, True, 0, 0), topic_id)
            except (OSError, StorageError) as error:
                self._refuse_shortage(directory, error)
                self._services.failures.report(candidate, f"cannot create {directory}", error)
                continue
            # The 50 partitions of __consumer_offsets are logged in one line by the caller.
            level = logging.DEBUG if is_internal(topic_partition.topic) else logging.INFO
            logger.log(level, "created log %s, directory=%s", topic_partition, directory)
            return log
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic_partition}: no log directory is available")

    def create_future(self, current: PartitionLog, log_dir: Path) -> FutureLog:
        """Create an empty copy of a log in another directory, with the same first offset. Raises BrokerError."""
        topic_partition = current.topic_partition
        if current.topic_id is None:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic_partition} has no topic id yet")
        directory = log_dir / future_directory_name(topic_partition)
        start = current.segments[0].base_offset
        try:
            request = LoadRequest(directory, topic_partition, current.config, True, start, start)
            return FutureLog(self._open_new(request, current.topic_id))
        except (OSError, StorageError) as error:
            self._refuse_shortage(directory, error)
            self._services.failures.report(log_dir, f"cannot create {directory}", error)
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot create {directory}: {error}") from error

    def _open_new(self, request: LoadRequest, topic_id: bytes) -> PartitionLog:
        """Create a log. Raises OSError, StorageError.

        Raises BrokerError KAFKA_STORAGE_ERROR if the directory is another topic's, as that of a deleted topic that is
        to be removed.

        A directory that was created for it does not stay: its topic may be deleted meanwhile, and a later topic of the
        same name would get the old one's id. The files are also what a full disk lacks.
        """
        is_new = not request.directory.exists()
        try:
            if not is_new and read_partition_metadata(request.directory) not in (None, topic_id):
                message = f"{request.directory} is still that of another topic"
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, message)
            create_partition_directory(request.directory, topic_id)
            return open_log(request, self._services)
        except (OSError, StorageError):
            if is_new:
                import shutil  # here: a start that needs it is rare

                shutil.rmtree(request.directory, ignore_errors=True)
            raise

    def _refuse_shortage(self, directory: Path, error: Exception) -> None:
        """Raise BrokerError for a full disk or a lack of descriptors: these do not take the directory offline."""
        if isinstance(error, OSError) and is_shortage(error):
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot create {directory}: {error}") from error

    def _by_logs(self) -> list[Path]:
        """Return the live directories, the one with the fewest logs first."""
        counts = dict.fromkeys(self._directories(), 0)
        for log in self._logs():
            if log.log_dir in counts:
                counts[log.log_dir] += 1
        return sorted(counts, key=lambda path: counts[path])


def create_partition_directory(directory: Path, topic_id: bytes) -> None:
    """Create the directory and its partition.metadata durably, unless both exist. Raises OSError."""
    try:
        directory.mkdir()
    except FileExistsError:
        if (directory / PARTITION_METADATA_FILE).exists():
            return
    write_partition_metadata(directory, topic_id)
    sync_directory(directory.parent)


def ensure_topic_id(log: PartitionLog, topic_id: bytes) -> None:
    """Write the topic id of a log without one. Raises BrokerError KAFKA_STORAGE_ERROR if it has another one."""
    if log.topic_id == topic_id:
        return
    if log.topic_id is not None:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.topic_partition}: {log.directory} has another topic id")
    try:
        log.assign_topic_id(topic_id)
    except OSError as error:
        raise BrokerError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"{log.topic_partition}: cannot write its topic id: {error}"
        ) from error

"""ServedLogs: the common base of LogManager and ReadOnlyLogManager: a broker's logs, looked up and listed.

LogManager adds everything that changes logs; ReadOnlyLogManager adds only the opening and closing of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from barnabas.broker.storage.cleaning.cleaner_manager import CleanerManager
from barnabas.broker.storage.directories.data_directory import DataDirectory
from barnabas.broker.storage.directories.loading import FoundPartition
from barnabas.broker.storage.files.clean_shutdown import NO_BROKER_EPOCH
from barnabas.broker.storage.files.open_files import OpenFiles
from barnabas.broker.storage.log.loading.loader import LoadProgress
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.partition_moves import PartitionMoves
from barnabas.broker.storage.producers.expiration import ProducerExpiration
from barnabas.broker.storage.services.clock import Clock, SystemClock
from barnabas.broker.storage.services.log_dir_failure import LogDirFailures
from barnabas.broker.storage.services.scheduler import BackgroundScheduler, Scheduler
from barnabas.broker.storage.services.services import StorageServices
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.log_config import LogConfig
from barnabas.protocol.topic_partition import TopicPartition

LogT_co = TypeVar("LogT_co", bound=ReadableLog, covariant=True)

THREADS_PER_DIRECTORY = "num.recovery.threads.per.data.dir"


class ServedLogs(ABC, Generic[LogT_co]):
    """All logs of a broker and their log directories. Thread-safe once the start is over."""

    cleaner: CleanerManager | None = None
    """None without log.cleaner.enable: compacted logs only grow then."""
    moves: PartitionMoves | None = None
    """None if the broker only reads."""
    metadata_log: PartitionLog | None = None
    """None until it is open, and if the broker only reads."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        scheduler: Scheduler | None = None,
        on_failure: Callable[[Path], None] | None = None,
    ) -> None:
        """`on_failure` is called when a log directory fails: see LogDirFailures."""
        self.config = config
        self.directories: tuple[DataDirectory, ...] = ()
        """The directories that could be opened, in the order of log.dirs; one that fails later stays among them."""
        self.load_progress: dict[TopicPartition, LoadProgress] = {}
        """How far each log's loading is, during it and afterwards."""
        self.failures = LogDirFailures(on_failure)
        clock = clock or SystemClock()
        self._own_scheduler: BackgroundScheduler | None = None
        if scheduler is None:
            scheduler = self._own_scheduler = BackgroundScheduler(clock, config.get_int("background.threads"))
        self.scheduler: Scheduler = scheduler
        self.services = StorageServices(
            clock,
            scheduler,
            OpenFiles(),
            self.failures,
            ProducerExpiration(config.get_int("producer.id.expiration.ms")),
        )
        self._log_config_of: Callable[[str], LogConfig] = lambda _: self.config.log_config
        self._logs: dict[TopicPartition, LogT_co] = {}
        """Replaced as a whole, never changed: readers take no lock."""

    @abstractmethod
    def open_directories(self) -> tuple[Path, ...]:
        """Open the log directories; return those that can be used. Raises StartupStorageError."""

    @abstractmethod
    def load_logs(
        self,
        log_config_of: Callable[[str], LogConfig],
        is_stray: Callable[[FoundPartition], bool] | None = None,
    ) -> int:
        """Load all logs but the metadata log; return how many. Raises StartupStorageError."""

    @abstractmethod
    def start_tasks(self) -> None:
        """Start the background work, if there is any."""

    @abstractmethod
    def shutdown(self, broker_epoch: int = NO_BROKER_EPOCH) -> bool:
        """Stop the background work and close all logs; return whether all directories are clean."""

    @abstractmethod
    def move(self, topic_partition: TopicPartition, log_dir: Path) -> bool:
        """Begin to move a log to `log_dir`. Raises BrokerError."""

    @property
    def live_directories(self) -> tuple[Path, ...]:
        """The log directories that are in use."""
        return tuple(directory.path for directory in self._live())

    def get(self, topic_partition: TopicPartition) -> LogT_co | None:
        """Return the partition's log, or None. Logs of a failed directory stay and refuse (KAFKA_STORAGE_ERROR)."""
        return self._logs.get(topic_partition)

    def logs(self) -> list[LogT_co]:
        """Return all logs of this moment, without the metadata log."""
        return list(self._logs.values())

    def logs_and_copies(self) -> Sequence[LogT_co]:
        """Return all logs, and the copies that moves are filling."""
        return self.logs()

    def is_moving(self, log: ReadableLog) -> bool:
        """Return whether a log is being moved to another directory, during which retention leaves it alone."""
        return self.moves is not None and self.moves.is_running(log.topic_partition)

    def is_uncleanable(self, log: ReadableLog) -> bool:
        """Return whether the cleaner has given a log up."""
        cleaner = self.cleaner
        return cleaner is not None and cleaner.uncleanable.reason(log.log_dir, log.topic_partition) is not None

    def _live(self) -> list[DataDirectory]:
        return [directory for directory in self.directories if not self.failures.is_offline(directory.path)]

"""What the commands on logs share: which logs are meant, the directory's lock, and a log's configuration.

Those that write hold the lock of the data directory while they do, as a broker would: one that runs is never
disturbed, and none starts meanwhile. Index sizes and intervals are the topic's, as the metadata log has them; what a
broker's own configuration file says is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.broker.storage.directories.lock import DirectoryLock
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.files.partition_directory import ParsedDirectoryName, parse_directory_name
from barnabas.broker.storage.inspection.file_types import META_PROPERTIES_FILE
from barnabas.broker.storage.inspection.verify_directory import is_partition_directory, partition_directories
from barnabas.commands.failures import CommandFailure
from barnabas.config.log_config import LogConfig

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage


@contextmanager
def storage_failures() -> Iterator[None]:
    """What the log engine finds wrong with a path, as the command's one sentence."""
    try:
        yield
    except StorageError as error:
        raise CommandFailure(f"{error.path}: {error.message}") from error


@contextmanager
def held_lock(log_dir: Path) -> Iterator[None]:
    """The data directory's lock. Raises CommandFailure when a broker has it."""
    lock = DirectoryLock(log_dir)
    with storage_failures():
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def data_directory_of(directory: Path) -> Path:
    """The data directory of a partition's directory, or `directory` itself. Raises OSError."""
    return directory.absolute().parent if is_partition_directory(directory) else directory.absolute()


def logs_of(directory: Path) -> list[Path]:
    """The logs' directories: of a data directory all, of a partition's directory itself.

    None is an answer for a data directory alone, which has a meta.properties. Raises CommandFailure, OSError.
    """
    if is_partition_directory(directory):
        return [directory.absolute()]
    logs = partition_directories(directory.absolute())
    if not logs and not (directory / META_PROPERTIES_FILE).exists():
        raise CommandFailure(f"{directory} holds no log: name one of the broker's log.dirs, or a partition's directory")
    return logs


def named_log(directory: Path) -> ParsedDirectoryName:
    """Which partition a directory holds. Raises CommandFailure where its name does not say it, or it holds none."""
    parsed = parse_directory_name(directory.absolute().name)
    if parsed is None or not is_partition_directory(directory):
        raise CommandFailure(f"{directory} is no partition's directory (<topic>-<partition>)")
    return parsed


class LogConfigs:
    """The configurations of a data directory's logs."""

    def __init__(self, log_dir: Path, index_interval_bytes: int | None = None) -> None:
        """`index_interval_bytes` None: the topic's. Raises CommandFailure when the metadata log cannot be replayed."""
        from barnabas.broker.metadata.errors import MetadataError
        from barnabas.broker.metadata.log.log_replay import METADATA_DIRECTORY, replay_metadata_directory
        from barnabas.config.broker_config import BrokerConfig

        self._image: MetadataImage | None = None
        self.are_known = False
        """Whether `log_dir` has a metadata log, as one of several log.dirs has. Without it all configs are defaults."""
        try:
            replayed = replay_metadata_directory(log_dir / METADATA_DIRECTORY)
            self._image, self.are_known = replayed.image, replayed.exists
        except MetadataError as error:
            if index_interval_bytes is None:
                raise CommandFailure(f"{error}; --index-interval-bytes does without the topics' configs") from error
        self._broker = BrokerConfig.of()
        self._index_interval_bytes = index_interval_bytes

    def of(self, topic: str) -> LogConfig:
        """The configuration of a topic's logs."""
        overrides = {} if self._image is None else self._image.topic_configs(topic)
        config = self._broker.log_config.with_overrides(overrides)
        if self._index_interval_bytes is None:
            return config
        return replace(config, index_interval_bytes=self._index_interval_bytes)

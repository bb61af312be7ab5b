"""Directories of logs named on the command line: their logs, the data directory's lock, and the logs' configurations.

Commands that write hold the data directory's lock, as a broker does: so no broker runs meanwhile. The configurations
are those with which a broker would start there: the topics' and the dynamic ones of the metadata log over the static.
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
from barnabas.commands.stopped_broker import Directories, stored_broker_config
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.log_config import LogConfig
from barnabas.config.topic_config import unread_configs

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage


@contextmanager
def storage_failures() -> Iterator[None]:
    """Convert StorageError to CommandFailure with path and message."""
    try:
        yield
    except StorageError as error:
        raise CommandFailure(f"{error.path}: {error.message}") from error


@contextmanager
def held_lock(log_dir: Path) -> Iterator[None]:
    """Hold the data directory's lock. Raises CommandFailure if a broker has it."""
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
    """All logs' directories of a data directory, or the partition's directory itself.

    Raises CommandFailure if `directory` is neither: a data directory without logs still has a meta.properties. Raises
    OSError.
    """
    if is_partition_directory(directory):
        return [directory.absolute()]
    logs = partition_directories(directory.absolute())
    if not logs and not (directory / META_PROPERTIES_FILE).exists():
        raise CommandFailure(f"{directory} has no log: name one of the broker's log.dirs, or a partition's directory")
    return logs


def named_log(directory: Path) -> ParsedDirectoryName:
    """The partition of a directory, by its name. Raises CommandFailure if it is not a partition's directory."""
    parsed = parse_directory_name(directory.absolute().name)
    if parsed is None or not is_partition_directory(directory):
        raise CommandFailure(f"{directory} is not a partition's directory (<topic>-<partition>)")
    return parsed


class LogConfigs:
    """The configurations of a data directory's logs."""

    def __init__(
        self,
        log_dir: Path,
        index_interval_bytes: int | None = None,
        *,
        metadata_log_dir: Path | None = None,
        config_file: Path | None = None,
    ) -> None:
        """`index_interval_bytes` overrides the topic's. Raises CommandFailure if the metadata log is unreadable.

        The metadata log is in `metadata_log_dir` (None: `log_dir`). `config_file` is the broker's (None: that of the
        environment, if any).
        """
        from barnabas.broker.metadata.errors import MetadataError
        from barnabas.broker.metadata.log.log_replay import METADATA_DIRECTORY, replay_metadata_directory

        self._image: MetadataImage | None = None
        self.are_known = False
        """Whether there is a metadata log, as one of several log.dirs has. Without it, configs are defaults."""
        self._broker = BrokerConfig.of()
        self._index_interval_bytes = index_interval_bytes
        try:
            replayed = replay_metadata_directory((metadata_log_dir or log_dir) / METADATA_DIRECTORY)
        except MetadataError as error:
            if index_interval_bytes is None:
                raise CommandFailure(f"{error}; --index-interval-bytes works without the topics' configs") from error
            return
        if replayed.exists:
            self._image, self.are_known = replayed.image, True
            self._broker = stored_broker_config(Directories((log_dir,), config_file), replayed.image)

    def of(self, topic: str) -> LogConfig:
        """Return the configuration of a topic's logs."""
        overrides = {} if self._image is None else self._image.topic_configs(topic)
        config = self._broker.log_config.with_overrides(overrides)
        if self._index_interval_bytes is None:
            return config
        return replace(config, index_interval_bytes=self._index_interval_bytes)

    def has(self, topic: str) -> bool:
        """Return whether the metadata log has the topic."""
        return self._image is not None and topic in self._image.topics

    def unread(self, topic: str) -> str:
        """Return the stored values because of which the topic's logs are kept, with the reasons, as a sentence."""
        overrides = {} if self._image is None else self._image.topic_configs(topic)
        unread = unread_configs(self._broker, overrides)
        return "; ".join(f"{name}={value.text} in {value.origin}: {value.problem}" for name, value in unread.items())

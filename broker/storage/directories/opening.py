"""Opening of the data directories at start: each is created if missing, probed and locked.

An unusable directory is offline from the beginning and the broker starts with the others, except that the metadata
log's directory must work. Source: Kafka LogManager.createAndValidateLogDirs, lockLogDirs.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.broker.storage.directories.data_directory import DataDirectory
from barnabas.broker.storage.files.errors import StartupStorageError
from barnabas.broker.storage.services.log_dir_failure import LogDirFailures
from barnabas.config.broker_config import BrokerConfig


class OpenedDirectories(NamedTuple):
    """The usable directories of log.dirs, and the metadata log's, which may be one of them."""

    data: tuple[DataDirectory, ...]
    metadata: DataDirectory


def open_data_directories(config: BrokerConfig, failures: LogDirFailures) -> OpenedDirectories:
    """Open all directories of the configuration.

    Raises StartupStorageError if none is usable or another broker uses one; then all are unlocked again.
    """
    opened: list[DataDirectory] = []
    try:
        for path in config.log_dirs:
            directory = DataDirectory(path)
            try:
                directory.open()
            except OSError as error:
                failures.report(path, f"cannot use log directory {path}", error)
            else:
                opened.append(directory)
        if not opened:
            reasons = "; ".join(failures.offline.values())
            raise StartupStorageError(config.log_dirs[0], f"no log directory can be used: {reasons}")
        return OpenedDirectories(tuple(opened), _open_metadata_directory(config, failures, opened))
    except StartupStorageError:
        for directory in opened:
            directory.unlock(refused=True)
        raise


def _open_metadata_directory(
    config: BrokerConfig, failures: LogDirFailures, opened: list[DataDirectory]
) -> DataDirectory:
    path = config.metadata_log_dir
    for directory in opened:
        if directory.path == path:
            return directory
    directory = DataDirectory(path)
    try:
        if path in failures.offline:
            raise OSError(failures.offline[path])
        directory.open()
    except OSError as error:
        raise StartupStorageError(path, f"cannot use the metadata log's directory: {error}") from error
    return directory

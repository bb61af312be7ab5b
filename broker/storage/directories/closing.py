"""Closing the logs at a stop, and the clean-shutdown markers.

A directory gets its marker only if all its logs were loaded and closed; without one the next start recovers its logs.
Source: Kafka LogManager.shutdown.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from barnabas.broker.storage.directories.data_directory import DataDirectory
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.state import LogState

logger = logging.getLogger(__name__)


def close_logs(logs: Sequence[PartitionLog], threads: int) -> set[Path]:
    """Flush and close logs in parallel; return the log directories in which one could not be closed."""
    with ThreadPoolExecutor(threads, thread_name_prefix="log-closing") as pool:
        return {log.log_dir for log, is_closed in zip(logs, pool.map(close_log, logs), strict=True) if not is_closed}


def close_log(log: PartitionLog) -> bool:
    """Flush and close a log; return whether it is closed. A failure is logged and not raised."""
    try:
        log.close()
    except (StorageError, OSError) as error:
        logger.error("closing %s failed, the next start recovers it: %s", log.topic_partition, error)
        return False
    return log.state is LogState.CLOSED


def write_clean_markers(directories: Iterable[DataDirectory], not_closed: set[Path], broker_epoch: int) -> bool:
    """Mark the directories that are clean, all but those in `not_closed`; return whether every one is marked."""
    all_marked = True
    for directory in directories:
        if directory.path in not_closed or not directory.is_loaded:
            all_marked = False
            continue
        try:
            directory.write_clean_marker(broker_epoch)
        except OSError as error:
            all_marked = False
            logger.error("cannot mark the clean stop, the next start recovers: %s", error)
    return all_marked

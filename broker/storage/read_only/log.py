"""ReadOnlyLog: a log that can be read and nothing else; its type has no method that changes anything.

A failed read fails alone: the rest of a dying disk is still wanted, so no directory goes offline.
"""

from __future__ import annotations

import logging

from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.loading.loader import LoadProgress, LoadRequest
from barnabas.broker.storage.log.opening import open_log_as
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.log.reader import LogReader
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.read_only.loader import ReadOnlyLoader
from barnabas.broker.storage.services.services import StorageServices

logger = logging.getLogger(__name__)


class ReadOnlyLog(ReadableLog):
    """One log of a broker that only reads."""

    __slots__ = ()

    def __init__(self, core: LogCore) -> None:
        super().__init__(core, LogReader(core, self._log_disk_error))

    def close(self) -> None:
        """Close all files."""
        self.go_offline()
        self.core.state = LogState.CLOSED

    def _log_disk_error(self, what: str, error: OSError) -> None:
        logger.error("%s (%s): %s", what, self.topic_partition, error)


def open_read_only_log(request: LoadRequest, services: StorageServices, progress: LoadProgress) -> ReadOnlyLog:
    """Load the log of a directory. Raises OSError, CorruptRecordError, CorruptFileError (a bad partition.metadata)."""
    return open_log_as(ReadOnlyLog, request, services, progress, loader=ReadOnlyLoader)

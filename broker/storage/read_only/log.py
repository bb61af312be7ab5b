"""ReadOnlyLog: a PartitionLog that is read and refuses everything else with POLICY_VIOLATION (44).

A read that fails is that read's failure: on a disk that is dying the rest is still wanted, so no directory goes
offline.
"""

from __future__ import annotations

import logging
from typing import NoReturn

from barnabas.broker.storage.log.append import AppendOrigin, AppendResult
from barnabas.broker.storage.log.loader import LoadProgress, LoadRequest
from barnabas.broker.storage.log.opening import open_log_as
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.read_only.loader import ReadOnlyLoader
from barnabas.broker.storage.services.services import StorageServices
from barnabas.config.log_config import LogConfig
from barnabas.protocol.errors import BrokerError, ErrorCode

logger = logging.getLogger(__name__)


def refuse_change(what: str) -> NoReturn:
    """Raises BrokerError POLICY_VIOLATION."""
    raise BrokerError(ErrorCode.POLICY_VIOLATION, f"{what}: this broker only reads (read.only=true)")


class ReadOnlyLog(PartitionLog):
    """One log."""

    def append_as_leader(
        self, records: memoryview, *, leader_epoch: int, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> AppendResult:
        """Raises BrokerError POLICY_VIOLATION."""
        refuse_change(f"nothing is appended to {self.topic_partition}")

    def delete_records(self, offset: int) -> int:
        """Raises BrokerError POLICY_VIOLATION."""
        refuse_change(f"no records of {self.topic_partition} are deleted")

    def assign_epoch_start_offset(self, epoch: int, start_offset: int) -> None:
        """Nothing: nobody writes in this epoch."""

    def flush(self, up_to: int | None = None) -> int:
        """Nothing was written; what can be read is as durable as it is."""
        return self.log_end_offset

    def update_config(self, config: LogConfig) -> None:
        """Nothing that is read depends on it."""

    def close(self) -> None:
        """Let go of all files."""
        self.go_offline()
        self.state = "closed"

    def _fail(self, what: str, error: OSError) -> None:
        logger.error("%s (%s): %s", what, self.topic_partition, error)


def open_read_only_log(request: LoadRequest, services: StorageServices, progress: LoadProgress) -> ReadOnlyLog:
    """Load the log of a directory. Raises OSError, CorruptRecordError, CorruptFileError (a bad partition.metadata)."""
    return open_log_as(ReadOnlyLog, request, services, progress, loader=ReadOnlyLoader)

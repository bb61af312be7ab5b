"""The parts that the choice of a log and its cleaning share: one value for all cleaner threads of a broker."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.broker.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
from barnabas.broker.storage.cleaning.cleaning_states import CleaningStates
from barnabas.broker.storage.cleaning.cleaning_statistics import CleaningStatistics
from barnabas.broker.storage.cleaning.uncleanable import UncleanablePartitions
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.services.clock import Clock
from barnabas.broker.storage.services.log_dir_failure import LogDirFailures


class CleaningContext(NamedTuple):
    """Created by `CleanerManager`, used by `FilthiestLogChooser` and `CleaningPass`."""

    states: CleaningStates
    checkpoints: CleanerCheckpoints
    uncleanable: UncleanablePartitions
    statistics: CleaningStatistics
    failures: LogDirFailures
    clock: Clock

    def is_uncleanable(self, log: ReadableLog) -> bool:
        """Return whether the log's partition is marked as uncleanable in its log directory."""
        return self.uncleanable.reason(log.log_dir, log.topic_partition) is not None

    def clean_offset(self, log: ReadableLog) -> int | None:
        """Return the log's entry in cleaner-offset-checkpoint, or None."""
        return self.checkpoints.get(log.log_dir, log.topic_partition)

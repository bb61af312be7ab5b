"""What the cleaner knows of a log, to explain when it is cleaned."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.broker.storage.files.checkpoint_file import CLEANER_CHECKPOINT, OffsetCheckpointFile
from barnabas.broker.storage.log.readable_log import ReadableLog


class CleanerFacts(NamedTuple):
    """What the cleaner knows. `state`, `error` and `is_postponed` of the log, the rest of all logs since the start.

    `bytes_per_second` and `kept_share` (0 to 1) are None before the first round.
    """

    is_enabled: bool
    checkpoint: int | None
    state: str
    error: str | None
    filthier_logs: int
    bytes_per_second: float | None
    kept_share: float | None
    is_throttled: bool = False
    """A thread sleeps, because it has read and written as much as log.cleaner.io.max.bytes.per.second allows."""
    is_postponed: bool = False
    """A round lacked disk space, descriptors or memory, or got nowhere, and is repeated later."""


def facts_without_cleaner(log: ReadableLog, *, is_enabled: bool) -> CleanerFacts:
    """Return the facts of a log that no cleaner works on, by the checkpoint in its directory.

    Raises OSError, StorageError.
    """
    checkpoint = OffsetCheckpointFile(log.log_dir / CLEANER_CHECKPOINT).read().get(log.topic_partition)
    return CleanerFacts(is_enabled, checkpoint, "idle", None, 0, None, None)

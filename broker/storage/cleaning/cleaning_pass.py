"""One pass of a cleaner thread: clean the filthiest log, if one is due, then delete old segments of compacted logs.

Ends of a round, and their consequences:

    done            the checkpoint is raised, a line is logged
    aborted         other work needs the log, or the thread is to end: nothing; the log will be chosen again
    out of room     (or descriptors, or memory) the partition waits for log.cleaner.backoff.ms, others are cleaned
    disk error      the directory goes offline
    anything else   the partition is marked as uncleanable until the broker restarts, which prevents a hot loop

Segments that a round has swapped in before it ended stay: they have the old ones' records except superseded ones.
Source: Kafka LogCleaner.CleanerThread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.storage.cleaning.choosing import FilthiestLogChooser
from barnabas.broker.storage.cleaning.cleaning_context import CleaningContext
from barnabas.broker.storage.cleaning.errors import CleaningAborted, CleaningOutOfRoom, UncleanableLogError
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.services.log_dir_failure import is_shortage

if TYPE_CHECKING:
    from barnabas.broker.storage.cleaning.rewriting.cleaner import CleanResult, LogToClean

logger = logging.getLogger(__name__)


class LogCleaner(Protocol):
    """Runs one round: `cleaner.Cleaner`, or a substitute in tests."""

    def clean(self, cleanable: LogToClean) -> CleanResult:
        """Clean one log; see `Cleaner.clean`."""
        ...


class CleaningPass:
    """The repeated work of all cleaner threads."""

    def __init__(
        self,
        chooser: FilthiestLogChooser,
        context: CleaningContext,
    ) -> None:
        self._chooser = chooser
        self._context = context

    def run(
        self, create_cleaner: Callable[[], LogCleaner], backoff_seconds: float, is_stopping: Callable[[], bool]
    ) -> bool:
        """Run one pass; return whether a log was cleaned, so that there may be more to do."""
        cleanable = self._chooser.choose()
        if cleanable is not None:
            self._clean(create_cleaner, cleanable, backoff_seconds)
        for log in self._chooser.compacted_logs():
            if is_stopping():
                break
            self._delete_old_segments(log)
        return cleanable is not None

    def _clean(self, create_cleaner: Callable[[], LogCleaner], cleanable: LogToClean, backoff_seconds: float) -> None:
        """Clean a claimed log and release the claim."""
        log = cleanable.log
        started = self._context.clock.monotonic()
        result: CleanResult | None = None
        try:
            result = create_cleaner().clean(cleanable)
        except CleaningAborted as reason:
            self._context.statistics.round_aborted()
            logger.info("cleaning of %s was stopped: %s", log.topic_partition, reason)
        except Exception as error:  # noqa: BLE001 - any error marks the partition, and the others are cleaned
            self._handle_failure(log, error, backoff_seconds)
        finally:
            if result is None:
                self._context.states.release(log.topic_partition)
        if result is None:
            return
        clean_to = result.next_dirty_offset
        if not self._context.states.release(
            log.topic_partition, lambda: self._context.checkpoints.set(log.log_dir, log.topic_partition, clean_to)
        ):
            self._context.statistics.round_aborted()
            return  # the log is about to be changed by whatever aborted the round: no checkpoint
        self._context.statistics.round_ended(result.stats, self._context.clock.monotonic() - started)
        self._log_round(cleanable, result, self._context.clock.monotonic() - started)
        if clean_to <= cleanable.first_dirty_offset:
            # Otherwise it would be chosen again immediately, for ever.
            self._chooser.postpone(log.topic_partition, backoff_seconds)

    def _handle_failure(self, log: PartitionLog, error: Exception, backoff_seconds: float) -> None:
        if isinstance(error, CleaningOutOfRoom) or (isinstance(error, OSError) and is_shortage(error)):
            self._context.statistics.round_out_of_room()
            self._chooser.postpone(log.topic_partition, backoff_seconds)
            logger.warning(
                "cleaning of %s ran out of room and is retried: %s, retry_seconds=%s",
                log.topic_partition,
                error,
                backoff_seconds,
            )
        elif log.state is not LogState.ONLINE:
            logger.info(
                "cleaning of %s ended because its log is no longer online: state=%s, %s",
                log.topic_partition,
                log.state.value,
                error,
            )
        elif isinstance(error, OSError):
            self._context.failures.report(log.log_dir, f"cannot clean {log.topic_partition}", error)
        else:
            self._mark(log, "cannot be cleaned", error)

    def _delete_old_segments(self, log: PartitionLog) -> None:
        if not self._context.states.claim(log.topic_partition):
            return
        try:
            log.delete_old_segments()
        except Exception as error:  # noqa: BLE001 - as above
            if log.state is LogState.ONLINE:
                self._mark(log, "retention cannot be applied", error)
            else:
                logger.error("retention of %s failed, the other logs are not affected: %s", log.topic_partition, error)
        finally:
            self._context.states.release(log.topic_partition)

    def _mark(self, log: PartitionLog, what: str, error: Exception) -> None:
        self._context.statistics.round_failed()
        self._context.uncleanable.mark(log.log_dir, log.topic_partition, f"{what}: {error}")
        logger.error(
            "%s %s, neither compaction nor retention touch it until the broker restarts: %s",
            log.topic_partition,
            what,
            error,
            # A damaged log is no bug of ours; any other error needs its traceback.
            exc_info=None if isinstance(error, UncleanableLogError) else error,
        )

    def _log_round(self, cleanable: LogToClean, result: CleanResult, seconds: float) -> None:
        stats = result.stats
        logger.info(
            "cleaned %s: from=%s, to=%s, read_bytes=%s, kept_bytes=%s, read_records=%s, kept_records=%s, "
            "map_utilization=%.2f, map_seconds=%.3f, seconds=%.3f",
            cleanable.log.topic_partition,
            cleanable.first_dirty_offset,
            result.next_dirty_offset,
            stats.bytes_read,
            stats.bytes_written,
            stats.messages_read,
            stats.messages_written,
            stats.map_utilization,
            stats.elapsed_map_ms / 1000,
            seconds,
        )
        if stats.invalid_messages_read:
            logger.warning(
                "cleaning of %s dropped records without a key, which a compacted log cannot keep: records=%s",
                cleanable.log.topic_partition,
                stats.invalid_messages_read,
            )

"""Choice of the next log to clean: the one with the highest dirty ratio of those that are due.

Candidates are compacted logs that are free, not marked as uncleanable and not postponed for lack of room. Measuring
takes no lock; the chosen log is measured again after it was claimed, because it may have been truncated meanwhile.
Source: Kafka LogCleanerManager.grabFilthiestCompactedLog.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from barnabas.broker.storage.cleaning.cleanable_part import CleanablePart, measure_cleanable_part
from barnabas.broker.storage.cleaning.cleaning_context import CleaningContext
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.storage.cleaning.rewriting.cleaner import LogToClean

logger = logging.getLogger(__name__)


class FilthiestLogChooser:
    """Chooses and claims logs, for all cleaner threads."""

    def __init__(
        self,
        logs: Callable[[], Iterable[PartitionLog]],
        context: CleaningContext,
    ) -> None:
        self._logs = logs
        self._context = context
        self._waiting: dict[TopicPartition, float] = {}
        """Until when (monotonic clock) a partition is postponed."""

    def choose(self) -> LogToClean | None:
        """Claim the filthiest log that is due, or return None. The caller releases the claim."""
        now_ms = self._context.clock.wall_ms()
        measured: dict[TopicPartition, CleanablePart] = {}
        candidates: list[tuple[CleanablePart, PartitionLog]] = []
        for log in self._logs():
            if not log.config.compact or log.state is not LogState.ONLINE:
                continue
            part = self._measure(log, now_ms)
            if part is None:
                continue
            measured[log.topic_partition] = part
            if part.is_reset and self._context.states.is_free(log.topic_partition):
                self._write_reset(log, part)
            if part.is_due(log.config.min_cleanable_dirty_ratio) and self._may_clean(log):
                candidates.append((part, log))
        self._context.statistics.looked(now_ms, measured)
        candidates.sort(key=lambda candidate: candidate[0].dirty_ratio, reverse=True)
        for _, log in candidates:
            chosen = self._claim(log, now_ms)
            if chosen is not None:
                return chosen
        return None

    def postpone(self, topic_partition: TopicPartition, seconds: float) -> None:
        """Do not choose the partition for some time: its round ran out of room or got nowhere."""
        self._waiting[topic_partition] = self._context.clock.monotonic() + seconds

    def is_postponed(self, topic_partition: TopicPartition) -> bool:
        """Return whether the partition is postponed now."""
        due = self._waiting.get(topic_partition)
        return due is not None and self._context.clock.monotonic() < due

    def compacted_logs(self) -> list[PartitionLog]:
        """Return the logs whose old segments the cleaner deletes: compacted, online, not uncleanable."""
        return [
            log
            for log in self._logs()
            if log.config.compact and log.state is LogState.ONLINE and not self._context.is_uncleanable(log)
        ]

    def _may_clean(self, log: PartitionLog) -> bool:
        if self.is_postponed(log.topic_partition):
            return False
        self._waiting.pop(log.topic_partition, None)
        return self._context.states.is_free(log.topic_partition) and not self._context.is_uncleanable(log)

    def _claim(self, log: PartitionLog, now_ms: int) -> LogToClean | None:
        if not self._context.states.claim(log.topic_partition):
            return None
        part = self._measure(log, now_ms) if log.state is LogState.ONLINE and log.config.compact else None
        if part is None or not part.is_due(log.config.min_cleanable_dirty_ratio):
            self._context.states.release(log.topic_partition)
            return None
        from barnabas.broker.storage.cleaning.rewriting.cleaner import LogToClean  # late, on the cleaner's thread

        return LogToClean(
            log=log,
            first_dirty_offset=part.first_dirty_offset,
            first_uncleanable_offset=part.first_uncleanable_offset,
            now_ms=now_ms,
        )

    def _measure(self, log: PartitionLog, now_ms: int) -> CleanablePart | None:
        """Measure a log; None if it is gone or cannot be read. Then its disk is reported, or the log is marked."""
        checkpoint = self._context.clean_offset(log)
        try:
            return measure_cleanable_part(log, checkpoint, now_ms)
        except OSError as error:
            if log.state is LogState.ONLINE and not is_shortage(error) and log.directory.exists():
                self._context.failures.report(
                    log.log_dir, f"cannot measure {log.topic_partition} for the cleaner", error
                )
        except Exception as error:
            if not self._context.is_uncleanable(log) and log.state is LogState.ONLINE:
                logger.exception("cannot measure %s for the cleaner, it is not cleaned any more", log.topic_partition)
                self._context.uncleanable.mark(log.log_dir, log.topic_partition, f"cannot be measured: {error}")
        return None

    def _write_reset(self, log: PartitionLog, part: CleanablePart) -> None:
        checkpoint = self._context.clean_offset(log)
        if not log.config.delete:  # with retention, the log start passes the checkpoint every day
            logger.warning(
                "the clean offset of %s is outside of the log, all of it is dirty again: checkpoint=%s, "
                "log_start_offset=%s, log_end_offset=%s",
                log.topic_partition,
                checkpoint,
                log.log_start_offset,
                log.log_end_offset,
            )
        self._context.checkpoints.set(log.log_dir, log.topic_partition, part.first_dirty_offset)

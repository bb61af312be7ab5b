"""Periodic work on all logs: retention, flushes, checkpoints, expiration of producers.

Each is a named task with Kafka's name and interval. A failure of one log does not stop the task for the others. A
checkpoint is written only if it changes, so an idle broker does not touch its disk.
Source: Kafka LogManager, ReplicaManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from barnabas.broker.storage.cleaning.cleaner_manager import CleanerManager
from barnabas.broker.storage.directories.data_directory import DataDirectory
from barnabas.broker.storage.files.checkpoint_file import OffsetCheckpointFile
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.broker.storage.services.services import StorageServices
from barnabas.config.broker_config import BrokerConfig
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

LOG_RETENTION_TASK = "log-retention"
LOG_FLUSHER_TASK = "log-flusher"
RECOVERY_POINT_TASK = "recovery-point-checkpoint"
LOG_START_OFFSET_TASK = "log-start-offset-checkpoint"
HIGH_WATERMARK_TASK = "high-watermark-checkpoint"
PRODUCER_EXPIRATION_TASK = "producer-id-expiration"


class Maintenance:
    """The tasks; each run covers the logs and directories at that time."""

    def __init__(
        self,
        services: StorageServices,
        logs: Callable[[], Iterable[PartitionLog]],
        directories: Callable[[], Iterable[DataDirectory]],
        cleaner: CleanerManager | None = None,
        *,
        copies: Callable[[], Iterable[PartitionLog]] = tuple,
    ) -> None:
        """`copies` returns the logs that moves are filling: flushed and checkpointed, but kept from retention."""
        self._services = services
        self._logs = logs
        self._copies = copies
        self._directories = directories
        self._cleaner = cleaner

    def start(self, config: BrokerConfig) -> None:
        """Schedule all tasks."""
        first = config.get_int("log.initial.task.delay.ms")
        for name, action, interval in (
            (LOG_RETENTION_TASK, self.run_retention, "log.retention.check.interval.ms"),
            (LOG_FLUSHER_TASK, self.flush_dirty_logs, "log.flush.scheduler.interval.ms"),
            (RECOVERY_POINT_TASK, self.checkpoint_recovery_points, "log.flush.offset.checkpoint.interval.ms"),
            (LOG_START_OFFSET_TASK, self.checkpoint_log_starts, "log.flush.start.offset.checkpoint.interval.ms"),
            (PRODUCER_EXPIRATION_TASK, self.expire_producers, "producer.id.expiration.check.interval.ms"),
        ):
            self._services.scheduler.schedule(name, action, delay_ms=first, period_ms=config.get_int(interval))
        self._services.scheduler.schedule(
            HIGH_WATERMARK_TASK,
            self.checkpoint_high_watermarks,
            period_ms=config.get_int("replica.high.watermark.checkpoint.interval.ms"),
        )

    def run_retention(self) -> int:
        """Apply retention to all logs that are not compacted; return the number of deleted segments."""
        if self._cleaner is None:
            return self._delete_old_segments(log for log in self._logs() if not log.config.compact)
        # The cleaner does it for compacted logs; the two must not overlap when a topic's cleanup.policy changes.
        paused = self._cleaner.pause_for_retention()
        try:
            return self._delete_old_segments(paused)
        finally:
            self._cleaner.resume(log.topic_partition for log in paused)

    def _delete_old_segments(self, logs: Iterable[PartitionLog]) -> int:
        deleted = 0
        for log in logs:
            if log.state is not LogState.ONLINE:
                continue
            try:
                deleted += log.delete_old_segments()
            except BrokerError as error:
                logger.error("retention of %s failed, the other logs are not affected: %s", log.topic_partition, error)
        return deleted

    def flush_dirty_logs(self) -> None:
        """Sync the logs whose flush.ms has passed since their last sync."""
        now = self._services.clock.wall_ms()
        for log in self._online():
            if now - log.last_flush_ms >= log.config.flush_ms:
                try:
                    log.flush()
                except StorageError as error:
                    level = logging.DEBUG if log.is_retired else logging.ERROR
                    logger.log(
                        level, "flush of %s failed, the other logs are not affected: %s", log.topic_partition, error
                    )

    def expire_producers(self) -> int:
        """Remove expired producers from all logs; return how many."""
        return sum(log.remove_expired_producers() for log in self._online())

    def checkpoint_recovery_points(self) -> None:
        """Write recovery-point-offset-checkpoint of every directory."""
        for directory, logs in self._by_directory():
            offsets = {log.topic_partition: log.recovery_begin for log in logs}
            self._write(directory, directory.recovery_points, offsets)

    def checkpoint_log_starts(self) -> None:
        """Write log-start-offset-checkpoint of every directory, with starts above the first segment's base only."""
        for directory, logs in self._by_directory():
            offsets = {
                log.topic_partition: log.log_start_offset
                for log in logs
                if log.log_start_offset > log.segments[0].base_offset
            }
            self._write(directory, directory.log_start_offsets, offsets)

    def checkpoint_high_watermarks(self) -> None:
        """Write replication-offset-checkpoint of every directory."""
        for directory, logs in self._by_directory():
            offsets = {log.topic_partition: log.high_watermark for log in logs}
            self._write(directory, directory.high_watermarks, offsets)

    def _online(self) -> list[PartitionLog]:
        return [log for log in (*self._logs(), *self._copies()) if log.state is LogState.ONLINE]

    def _by_directory(self) -> list[tuple[DataDirectory, list[PartitionLog]]]:
        by_path: dict[object, list[PartitionLog]] = {}
        for log in (*self._logs(), *self._copies()):
            by_path.setdefault(log.log_dir, []).append(log)
        return [(directory, by_path.get(directory.path, [])) for directory in self._directories()]

    def _write(
        self, directory: DataDirectory, checkpoint: OffsetCheckpointFile, offsets: Mapping[TopicPartition, int]
    ) -> None:
        try:
            checkpoint.write(offsets)
        except OSError as error:
            if is_shortage(error):
                logger.warning("checkpoint %s is postponed: %s", checkpoint.path, error)
            else:
                self._services.failures.report(directory.path, f"cannot write {checkpoint.path}", error)

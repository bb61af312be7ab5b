"""PartitionLog: the records of one partition, and the invariants that hold for them.

    log_start_offset <= recovery_point <= high_watermark = log_end_offset (a single node commits what it has written)

- Offsets are given in the order of appends; a batch is there as a whole or not at all.
- What lies below the recovery point is durable; of the segment that holds it the indexes need not be, because recovery
  begins there. A roll makes the old segment and its indexes durable in the background.
- One lock serializes appends and changes of the segment map. It is never held across a scan, an unlink or an fsync of
  records; a new leader epoch and a truncation, which are rare, are synced under it. Reads take no lock: they use the
  immutable map and `_end`, which an append replaces as a whole when it is done.
- An I/O error takes the data directory offline; a full disk does not: the half batch is cut off again and the next
  append tries anew.

Source: Kafka UnifiedLog, LocalLog.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.files.partition_metadata_file import write_partition_metadata
from barnabas.broker.storage.log.reader import LogReader
from barnabas.broker.storage.log.retention import RetentionRule, deletable_segments, rules_of
from barnabas.broker.storage.log.truncation import LogTruncation
from barnabas.broker.storage.log.validator import ClientBatchRules
from barnabas.broker.storage.producers.entry import LastRecord
from barnabas.broker.storage.segment.deletion import delete_later
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.replacement import Replacement, SegmentsChangedError, remove_staged
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.config.log_config import LogConfig
from barnabas.protocol.errors import BrokerError, ErrorCode

logger = logging.getLogger(__name__)

EPOCH_FLUSH_TASK = "leader-epoch-cache-flush"


class PartitionLog(LogReader, LogTruncation):
    """One log. Made by LogManager; attributes may be read by any thread without a lock."""

    # -- the end of its life

    def close(self) -> None:
        """Make everything durable, write a producer snapshot, trim and close all files. Raises StorageError.

        Nothing happens unless the log is online.
        """
        if self.state != "online":
            return
        self.flush()
        with self._lock:
            try:
                self._producers.map_end_offset = self.log_end_offset
                self._producers.take_snapshot(durably=True)
                self._active.seal()
                # The clean-shutdown marker says that indexes can be trusted, so they must be on disk before it.
                self._active.sync(with_indexes=True)
                sync_directory(self.directory)
            except OSError as error:
                self.state = "offline"
                if not is_shortage(error):
                    self._fail("cannot close the log", error)
                raise StorageError(self.directory, f"cannot close {self.topic_partition}: {error}") from error
            else:
                self.state = "closed"
            finally:
                for segment in self._segments:
                    segment.release()

    def go_offline(self) -> None:
        """Let go of all files and write nothing: the disk has failed."""
        with self._lock:
            if self.state == "closed":
                return
            self.state = "offline"
            for segment in self._segments:
                segment.release()

    # -- retention

    def delete_old_segments(self) -> int:
        """Apply the retention rules; how many segments went. Raises BrokerError KAFKA_STORAGE_ERROR."""
        return sum(self._delete_by(rule) for rule in rules_of(self.config))

    def delete_records(self, offset: int) -> int:
        """Move the log start offset up to `offset` (-1: the high watermark); the new one. Segments go with retention.

        Raises BrokerError OFFSET_OUT_OF_RANGE above the high watermark.
        """
        with self._lock:
            self._ensure_online()
            if offset == -1:
                offset = self.high_watermark
            if offset < 0 or offset > self.high_watermark:
                raise BrokerError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"{self.topic_partition}: log start cannot go to {offset}, high watermark {self.high_watermark}",
                )
            self._move_log_start(offset)
            return self.log_start_offset

    def remove_expired_producers(self) -> int:
        """Forget producers that have been silent for producer.id.expiration.ms; how many."""
        with self._lock:
            return self._producers.remove_expired(self._wall_ms())

    def _delete_by(self, rule: RetentionRule) -> int:
        while True:
            view = self._segments.view
            end = self._end
            try:
                doomed = deletable_segments(
                    rule,
                    view,
                    self.config,
                    log_start_offset=self.log_start_offset,
                    high_watermark=self.high_watermark,
                    log_end_offset=end.offset,
                    now_ms=self._wall_ms(),
                )
                if not doomed:
                    return 0
                with self._lock:
                    self._ensure_online()
                    drops_active = len(doomed) == len(view.segments)
                    if self._segments.view is not view or (drops_active and self._end is not end):
                        continue  # rolled or appended meanwhile: look again
                    if drops_active:
                        self._roll(self.log_end_offset)
                    after = self._segments.view.segments[len(doomed)]
                    self._move_log_start(after.base_offset)
                    self._segments.remove(doomed)
                    self._unsynced_sealed = [segment for segment in self._unsynced_sealed if segment not in doomed]
                    snapshots = [
                        path
                        for segment in doomed
                        if (path := self._producers.mark_snapshot_deleted(segment.base_offset)) is not None
                    ]
                logger.info(
                    "deleting %s segments of %s by %s: log_start_offset=%s, delay_ms=%s",
                    len(doomed),
                    self.topic_partition,
                    rule.value,
                    self.log_start_offset,
                    self.config.file_delete_delay_ms,
                )
                self._remove_later(doomed, snapshots)
            except FileNotFoundError as error:
                logger.warning(
                    "retention of %s finds a file missing, nothing is deleted: %s", self.topic_partition, error
                )
                return 0
            except OSError as error:
                if is_shortage(error):
                    logger.warning("retention of %s waits: %s", self.topic_partition, error)
                    return 0
                self._fail("cannot delete old segments", error)
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic_partition}: {error}") from error
            else:
                return len(doomed)

    def _remove_later(self, segments: Sequence[LogSegment], snapshots: Iterable[Path]) -> None:
        """They are out of the map already. Raises OSError."""
        delete_later(segments, snapshots, self.log_dir, self._services, self.config.file_delete_delay_ms)

    def _move_log_start(self, offset: int) -> None:
        """Raise the log start offset. The lock is held."""
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self.recovery_point = max(self.recovery_point, offset)
        self.durable_offset = max(self.durable_offset, offset)
        self._producers.on_log_start_moved(offset)
        if self._epochs.truncate_from_start(offset):
            self._services.scheduler.schedule(EPOCH_FLUSH_TASK, self._write_epochs)

    def _write_epochs(self) -> None:
        if self.state != "online":
            return
        try:
            self._epochs.write()
        except FileNotFoundError:
            logger.debug("the directory of %s was renamed meanwhile", self.topic_partition)
        except OSError as error:
            if not is_shortage(error):
                self._fail("cannot write the leader epochs", error)

    # -- compaction

    def create_segment(self, base_offset: int, stage: str) -> LogSegment:
        """A new segment of this log that is in no map yet, in place of what an earlier attempt left. Raises OSError."""
        remove_staged(self.directory, base_offset, stage)
        services = self._services
        segment = LogSegment.create(
            os.fspath(self.directory), base_offset, self.config, services.clock, services.open_files, stage=stage
        )
        segment.open_indexes()
        return segment

    def last_records(self) -> dict[int, LastRecord]:
        """What the log knows of its producers' last batches, by producer id; compaction must not lose them."""
        with self._lock:
            return self._producers.last_records()

    def replace_segments(self, new: Sequence[LogSegment], old: Sequence[LogSegment]) -> None:
        """Put sealed, synced `.cleaned` segments in the place of `old` ones: segment_replacement.py says how.

        Reads go on meanwhile. Raises SegmentsChangedError when an old one is not in the log any more, OSError: a
        shortage before anything was replaced, or else the directory goes offline.
        """
        stage = Replacement(self.directory, new, old)
        try:
            stage.prepare()
            with self._lock:
                if self.state != "online" or not stage.is_due(self._segments.view, self._active):
                    stage.undo()
                    raise SegmentsChangedError(f"{self.topic_partition}: segments went while they were cleaned")
                stage.swap_in(self._segments, self.log_dir, self._services, self.config.file_delete_delay_ms)
                self._unsynced_sealed = [segment for segment in self._unsynced_sealed if segment not in old]
                snapshots = [
                    path
                    for segment in stage.gone
                    if (path := self._producers.mark_snapshot_deleted(segment.base_offset)) is not None
                ]
            delete_later([], snapshots, self.log_dir, self._services, self.config.file_delete_delay_ms)
            stage.finish()
        except OSError as error:
            if stage.is_begun or not is_shortage(error):
                self._fail("cannot replace segments", error)
            else:
                stage.undo()
            raise

    # -- the directory

    def update_config(self, config: LogConfig) -> None:
        """Use another configuration from now on; index sizes and the index interval hold for new segments."""
        with self._lock:
            self.config = config
            self._rules = ClientBatchRules(self.topic_partition, config)
            self._segment_bytes = config.segment_bytes
            self._flush_messages = config.flush_messages
            if self.state == "online":
                try:
                    self._active.update_segment_ms(config.max_segment_ms)
                except OSError as error:
                    self._fail("cannot read the first batch", error)

    def assign_topic_id(self, topic_id: bytes) -> None:
        """Write partition.metadata for a log that has none. Raises OSError, StorageError if it has another id."""
        if self.topic_id is None:
            write_partition_metadata(self.directory, topic_id)
            self.topic_id = topic_id
        elif self.topic_id != topic_id:
            raise StorageError(self.directory, f"{self.topic_partition} belongs to another topic id")

    def rename_directory(self, name: str) -> None:
        """Rename the log's directory within its data directory; open files go on. Raises OSError."""
        with self._lock:
            self._rename(name)

    def delete_directory(self) -> None:
        """Remove the directory and all that is in it; the log was retired before. Raises OSError."""
        self.go_offline()
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.directory)
            sync_directory(self.log_dir)

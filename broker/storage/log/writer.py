"""How records get into a log: appends and rolls.

Order of an append: epoch cache, size check, producer check, roll, write, indexes, end offset. (Kafka rolls before the
producer check: a repeated batch can leave an empty segment there.) Source: Kafka UnifiedLog, LocalLog.
"""

from __future__ import annotations

import logging
import os
import struct
from collections.abc import Sequence
from pathlib import Path

from barnabas.broker.storage.files.file_names import SEGMENT_SUFFIXES, file_name
from barnabas.broker.storage.log.append import AppendOrigin, AppendResult
from barnabas.broker.storage.log.flushing import LogFlushing
from barnabas.broker.storage.log.read import LogEnd
from barnabas.broker.storage.log.trusted_append import (
    append_with_row,
    check_trusted_batches,
    end_marker_of,
    note_appended,
)
from barnabas.broker.storage.producers.entry import BatchMetadata
from barnabas.broker.storage.segment.log_segment import MAX_RELATIVE_OFFSET, AppendedBatch, LogSegment
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.layout import LOG_OVERHEAD

logger = logging.getLogger(__name__)

FLUSH_LOG_TASK = "flush-log"

_pack_placement = struct.Struct(">qii").pack_into  # base offset, length, partition leader epoch
_new_tuple = tuple.__new__


class LogWriter(LogFlushing):
    """The writing half of a PartitionLog."""

    def append_as_leader(
        self, records: memoryview, *, leader_epoch: int, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> AppendResult:
        """Store one client batch, or whole batches of another origin; `records` is patched in place.

        The page cache has it when this returns; `flush_due` asks for a group commit before the answer. Raises
        BrokerError: the codes of log_validator, RECORD_LIST_TOO_LARGE (18) above segment.bytes,
        OUT_OF_ORDER_SEQUENCE_NUMBER (45) and INVALID_PRODUCER_EPOCH (47), INVALID_TXN_STATE (48),
        KAFKA_STORAGE_ERROR (56). Costs about 5 us.
        """
        if origin is not AppendOrigin.CLIENT:
            return self._append_trusted(records, leader_epoch, origin)
        now_ms = self._wall_ms()
        (
            data,
            length,
            last_offset_delta,
            record_count,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            log_append_time_ms,
        ) = self._rules.check(records, now_ms)
        size = length + LOG_OVERHEAD
        with self._lock:
            if self.state != "online":
                self._refuse_state()
            base_offset = self.log_end_offset
            last_offset = base_offset + last_offset_delta
            try:
                if leader_epoch != self._latest_epoch:
                    self._assign_epoch(leader_epoch, base_offset)
                if size > self._segment_bytes:
                    self._refuse_size(size)
                if producer_id >= 0:
                    repeated = self._producers.check_batch(
                        producer_id, producer_epoch, base_sequence, last_offset_delta
                    )
                    if repeated is not None:
                        return self._repeated_result(repeated, size)
                segment = self._active
                position = segment.log.size_bytes
                if position and (
                    position + size > self._segment_bytes
                    or segment.index_is_full
                    or (now_ms if segment.rolls_by_wall_clock else max_timestamp) > segment.roll_after
                    or last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
                ):
                    segment = self._roll(base_offset)
                    position = 0
                _pack_placement(data, 0, base_offset, length, leader_epoch)
                segment.append(data, size, last_offset, max_timestamp)
            except OSError as error:
                self._refuse_append(error)
            next_offset = last_offset + 1
            self._end = _new_tuple(LogEnd, (next_offset, segment, position + size, base_offset, position))
            self.log_end_offset = next_offset
            if producer_id >= 0:
                self._producers.note_batch(
                    producer_id,
                    producer_epoch,
                    base_sequence,
                    last_offset,
                    last_offset_delta,
                    max_timestamp,
                    appended_ms=now_ms,
                )
            result: AppendResult = _new_tuple(
                AppendResult,
                (
                    base_offset,
                    last_offset,
                    log_append_time_ms,
                    self.log_start_offset,
                    size,
                    record_count,
                    next_offset - self.durable_offset >= self._flush_messages,
                    False,
                ),
            )
            return result

    def _append_trusted(self, records: memoryview, leader_epoch: int, origin: AppendOrigin) -> AppendResult:
        """Store batches of this broker itself: any number, control batches too; offsets and epoch are stamped."""
        batches = check_trusted_batches(self.topic_partition, records, self.config, origin)
        size = len(records)
        now_ms = self._wall_ms()
        end = end_marker_of(self.topic_partition, batches)
        max_timestamp = max(batch.max_timestamp for batch in batches)
        offsets = sum(batch.last_offset_delta + 1 for batch in batches)
        with self._lock:
            self._ensure_online()
            base_offset = self.log_end_offset
            next_offset = base_offset + offsets
            try:
                if leader_epoch != self._latest_epoch:
                    self._assign_epoch(leader_epoch, base_offset)
                if size > self._segment_bytes:
                    self._refuse_size(size)
                if end is not None:
                    self._producers.check_marker(batches[0].producer_id, batches[0].producer_epoch, end.marker)
                segment = self._active
                if segment.size_bytes and (
                    segment.size_bytes + size > self._segment_bytes
                    or segment.index_is_full
                    or (now_ms if segment.rolls_by_wall_clock else max_timestamp) > segment.roll_after
                    or next_offset - 1 - segment.base_offset > MAX_RELATIVE_OFFSET
                ):
                    segment = self._roll(base_offset)
                position = segment.size_bytes
                placed = self._place(batches, base_offset, leader_epoch)
                row = None
                if end is not None:
                    row = self._producers.aborted_by(batches[0].producer_id, end.marker, base_offset)
                append_with_row(segment, records, placed, row)
            except OSError as error:
                self._refuse_append(error)
            last = batches[-1]
            # Before the end of the log: read_committed must not see a transaction that has just begun.
            note_appended(self._producers, batches, end, now_ms)
            self._first_unstable_offset = self._producers.first_unstable_offset
            self._end = LogEnd(next_offset, segment, position + size, base_offset, position)
            self.log_end_offset = next_offset
            return AppendResult(
                base_offset,
                last.last_offset,
                -1,
                self.log_start_offset,
                size,
                sum(batch.record_count for batch in batches),
                next_offset - self.durable_offset >= self._flush_messages,
            )

    @staticmethod
    def _place(batches: Sequence[RecordBatch], base_offset: int, leader_epoch: int) -> list[AppendedBatch]:
        placed = []
        for batch in batches:
            batch.stamp_offset_and_epoch(base_offset, leader_epoch)
            placed.append(AppendedBatch(batch.position, batch.size_bytes, batch.last_offset, batch.max_timestamp))
            base_offset = batch.next_offset
        return placed

    def assign_epoch_start_offset(self, epoch: int, start_offset: int) -> None:
        """Record that leader `epoch` writes from `start_offset` on; durable when this returns. Raises BrokerError."""
        with self._lock:
            self._ensure_online()
            try:
                self._assign_epoch(epoch, start_offset)
            except OSError as error:
                self._refuse_append(error)

    def _assign_epoch(self, epoch: int, start_offset: int) -> None:
        self._epochs.assign(epoch, start_offset)
        self._latest_epoch = self._epochs.latest_epoch

    def _repeated_result(self, repeated: BatchMetadata, size: int) -> AppendResult:
        return AppendResult(
            repeated.first_offset,
            repeated.last_offset,
            repeated.timestamp if self.config.timestamp_type == "LogAppendTime" else -1,
            self.log_start_offset,
            size,
            repeated.offset_delta + 1,
            # The first answer may have been lost before its group commit: the repeat must not overtake it.
            self._flush_messages == 1 and repeated.last_offset >= self.durable_offset,
            is_duplicate=True,
        )

    def roll(self) -> LogSegment:
        """Begin a segment at the log end offset unless the active one is empty; the active one. Raises BrokerError."""
        with self._lock:
            self._ensure_online()
            if self._active.size_bytes == 0:
                return self._active
            try:
                return self._roll(self.log_end_offset)
            except OSError as error:
                self._refuse_append(error)

    def _roll(self, new_base: int) -> LogSegment:
        """Seal the active segment and begin one at `new_base`. The lock is held. Raises OSError; may be tried again."""
        old = self._active
        assert new_base > old.base_offset, f"{self}: cannot roll at {new_base}, the active segment begins there"
        for suffix in SEGMENT_SUFFIXES:
            path = self.directory / file_name(new_base, suffix)
            if path.exists():
                logger.warning("a file of the new segment exists already, deleting it: %s", path)
                path.unlink()
        old.seal()
        segment = LogSegment.create(
            os.fspath(self.directory), new_base, self.config, self._services.clock, self._services.open_files
        )
        self._segments.add(segment)
        self._active = segment
        self._end = LogEnd(self.log_end_offset, segment, 0, -1, 0)
        self._producers.map_end_offset = new_base
        snapshot = self._take_snapshot_at_roll()
        self._unsynced_sealed = [*self._unsynced_sealed, old]
        self._services.scheduler.schedule(FLUSH_LOG_TASK, lambda: self._flush_rolled(new_base, snapshot))
        return segment

    def _take_snapshot_at_roll(self) -> Path | None:
        """A snapshot at the new base, not synced yet: the lock is held. Raises OSError."""
        try:
            return self._producers.take_snapshot(durably=False)
        except OSError as error:
            if not is_shortage(error):
                raise
            logger.warning("no producer snapshot of %s at this roll: %s", self.topic_partition, error)
            return None

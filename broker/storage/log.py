"""PartitionLog: the records of one partition, and the invariants that hold for them.

    log_start_offset <= recovery_point <= high_watermark = log_end_offset (a single node commits what it has written)

- Offsets are given in the order of appends; a batch is there as a whole or not at all.
- What lies below the recovery point is durable, its indexes with it. A roll makes the old segment durable in the
  background, and the recovery point its end.
- One lock serializes appends and changes of the segment map. It is never held across an fsync, a scan or an unlink.
  Reads take no lock: they use the immutable map and `_end`, which an append replaces as a whole when it is done.
- An I/O error takes the data directory offline; a full disk does not: the half batch is cut off again and the next
  append tries anew.

Order of an append: epoch cache, size check, producer check, roll, write, indexes, end offset. (Kafka rolls before the
producer check: a repeated batch can leave an empty segment there.) Source: Kafka UnifiedLog, LocalLog.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from barnabas.broker.storage.append import AppendOrigin, AppendResult
from barnabas.broker.storage.durable_files import sync_directory
from barnabas.broker.storage.file_names import SEGMENT_SUFFIXES, file_name
from barnabas.broker.storage.file_records import FileSlice
from barnabas.broker.storage.leader_epoch import EpochEntry
from barnabas.broker.storage.log_dir_failure import is_disk_full
from barnabas.broker.storage.log_loader import LoadedLog
from barnabas.broker.storage.log_lookup import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    FoundOffset,
    find_by_timestamp,
    find_max_timestamp,
)
from barnabas.broker.storage.log_read import LogEnd, read_slice
from barnabas.broker.storage.log_segment import MAX_RELATIVE_OFFSET, AppendedBatch, LogSegment
from barnabas.broker.storage.log_validator import ClientBatchRules, check_trusted_batches
from barnabas.broker.storage.partition_metadata_file import write_partition_metadata
from barnabas.broker.storage.producer_state import BatchMetadata
from barnabas.broker.storage.retention import RetentionRule, deletable_segments, rules_of
from barnabas.broker.storage.segment_deletion import delete_later
from barnabas.broker.storage.services import StorageServices
from barnabas.broker.storage.storage_errors import CorruptFileError, StorageError
from barnabas.config.log_config import LogConfig
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.layout import LOG_OVERHEAD
from barnabas.protocol.topic_partition import TopicPartition

_log = logging.getLogger(__name__)

FLUSH_LOG_TASK = "flush-log"
EPOCH_FLUSH_TASK = "leader-epoch-cache-flush"

_pack_placement = struct.Struct(">qii").pack_into  # base offset, length, partition leader epoch
_new_tuple = tuple.__new__


class PartitionLog:
    """One log. Made by LogManager; attributes may be read by any thread without a lock."""

    def __init__(
        self,
        loaded: LoadedLog,
        *,
        topic_partition: TopicPartition,
        topic_id: bytes | None,
        directory: Path,
        config: LogConfig,
        services: StorageServices,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.directory = directory
        self.log_dir = directory.parent
        self.config = config
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.last_flush_ms = services.clock.wall_ms()
        self.state = "online"
        """online, offline (its directory failed) or closed."""
        self._services = services
        self._wall_ms = services.clock.wall_ms
        self._lock = threading.Lock()
        self._segments = loaded.segments
        self._active = loaded.segments.last
        self._epochs = loaded.leader_epochs
        self._latest_epoch = loaded.leader_epochs.latest_epoch
        self._producers = loaded.producer_state
        self._first_unstable_offset = loaded.producer_state.first_unstable_offset
        self.durable_offset = loaded.recovery_point
        """Batches below this are synced."""
        self._rules = ClientBatchRules(topic_partition, config)
        self._segment_bytes = config.segment_bytes
        self._flush_messages = config.flush_messages
        size = self._active.size_bytes
        self._end = LogEnd(self.log_end_offset, self._active, size, -1, size)
        """What readers go by; replaced as a whole by each append and roll."""

    def __repr__(self) -> str:
        return f"PartitionLog({self.topic_partition}, {self.log_start_offset}..{self.log_end_offset}, {self.directory})"

    @property
    def high_watermark(self) -> int:
        """The end of what consumers see: on a single node everything that is written."""
        return self.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """The end of what read_committed consumers see: where the oldest open transaction begins, or everything."""
        unstable = self._first_unstable_offset
        return self.log_end_offset if unstable is None else min(unstable, self.log_end_offset)

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments' batches."""
        return self._segments.size_bytes

    @property
    def segment_count(self) -> int:
        """How many segments there are."""
        return len(self._segments)

    @property
    def segments(self) -> tuple[LogSegment, ...]:
        """The segments at this moment, the active one last."""
        return self._segments.view.segments

    @property
    def index_entries(self) -> int:
        """Offset index entries of the active segment."""
        return max(self._active.offset_index.entries, 0)

    @property
    def latest_leader_epoch(self) -> int:
        """The epoch that writes now, or -1."""
        return self._latest_epoch

    @property
    def producer_count(self) -> int:
        """How many producer ids are remembered."""
        return len(self._producers.producers)

    @property
    def unflushed_records(self) -> int:
        """Offsets that a crash of the machine could take."""
        return self.log_end_offset - self.durable_offset

    # -- append

    def append_as_leader(
        self, records: memoryview, *, leader_epoch: int, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> AppendResult:
        """Store one client batch, or whole batches of another origin; `records` is patched in place.

        The page cache has it when this returns; `flush_due` asks for a group commit before the answer. Raises
        BrokerError: the codes of log_validator, RECORD_LIST_TOO_LARGE (18) above segment.bytes,
        OUT_OF_ORDER_SEQUENCE_NUMBER (45) and INVALID_PRODUCER_EPOCH (47), KAFKA_STORAGE_ERROR (56). Costs about 5 us.
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
                    producer_id, producer_epoch, base_sequence, last_offset, last_offset_delta, max_timestamp
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
                segment = self._active
                if segment.size_bytes and (
                    segment.size_bytes + size > self._segment_bytes
                    or segment.index_is_full
                    or (now_ms if segment.rolls_by_wall_clock else max_timestamp) > segment.roll_after
                    or next_offset - 1 - segment.base_offset > MAX_RELATIVE_OFFSET
                ):
                    segment = self._roll(base_offset)
                position = segment.size_bytes
                segment.append_many(records, self._place(batches, base_offset, leader_epoch))
            except OSError as error:
                self._refuse_append(error)
            last = batches[-1]
            self._end = LogEnd(next_offset, segment, position + size, base_offset, position)
            self.log_end_offset = next_offset
            for batch in batches:
                if batch.producer_id >= 0 and not batch.is_control:
                    self._producers.note_batch(
                        batch.producer_id,
                        batch.producer_epoch,
                        batch.base_sequence,
                        batch.last_offset,
                        batch.last_offset_delta,
                        batch.max_timestamp,
                        is_transactional=batch.is_transactional,
                    )
            self._first_unstable_offset = self._producers.first_unstable_offset
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

    # -- roll

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
                _log.warning("a file of the new segment exists already, deleting it: %s", path)
                path.unlink()
        old.seal()
        segment = LogSegment.create(
            os.fspath(self.directory), new_base, self.config, self._services.clock, self._services.open_files
        )
        self._segments.add(segment)
        self._active = segment
        self._end = LogEnd(self.log_end_offset, segment, 0, -1, 0)
        self._producers.map_end_offset = new_base
        snapshot = self._producers.take_snapshot(durably=False)
        self._services.scheduler.schedule(FLUSH_LOG_TASK, lambda: self._flush_rolled(new_base, snapshot))
        return segment

    def _flush_rolled(self, end_offset: int, snapshot: Path | None) -> None:
        if self.state != "online":
            return
        if snapshot is not None:
            try:
                with contextlib.suppress(FileNotFoundError), snapshot.open("rb") as file:
                    os.fsync(file.fileno())
            except OSError as error:
                self._fail("cannot sync a producer snapshot", error)
        self.flush(end_offset)

    # -- read

    def read(self, offset: int, max_bytes: int, *, upper_bound: int, at_least_one_batch: bool) -> FileSlice | None:
        """Stored batches from the one that contains `offset` on, of one segment; None when there are none to read.

        The slice ends before `upper_bound` and has at most `max_bytes`, which may cut its last batch, but never its
        first: that one comes whole if `at_least_one_batch`, and else, if it does not fit, nothing comes. Raises
        BrokerError OFFSET_OUT_OF_RANGE (1), KAFKA_STORAGE_ERROR (56), CORRUPT_MESSAGE (2). Takes no lock.
        """
        end = self._end
        end_offset = end.offset
        if offset < self.log_start_offset or offset > end_offset:
            self._refuse_offset(offset, end_offset)
        if offset >= upper_bound or offset == end_offset:
            return None
        if self.state != "online":
            self._refuse_state()
        try:
            return read_slice(
                self._segments.view,
                end,
                offset,
                max_bytes,
                upper_bound=upper_bound,
                at_least_one_batch=at_least_one_batch,
            )
        except FileNotFoundError as error:
            if offset < self.log_start_offset:
                self._refuse_offset(offset, end_offset)  # retention was faster
            self._refuse_missing(error)
        except OSError as error:
            self._refuse_read(error)
        except (CorruptRecordError, CorruptFileError) as error:
            _log.error("cannot read %s at offset=%s: %s", self.topic_partition, offset, error)
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{self.topic_partition}: offset {offset}: {error}") from error

    def offset_for_timestamp(self, timestamp: int, *, upper_bound: int | None = None) -> FoundOffset | None:
        """The first record at or after `timestamp` (ms), or a special value: -1 latest, -2 earliest, -3 maximum.

        Latest is `upper_bound` (the high watermark if None); a record at or above it is not found. Raises BrokerError.
        """
        bound = self.log_end_offset if upper_bound is None else min(upper_bound, self.log_end_offset)
        if timestamp == LATEST_TIMESTAMP:
            return FoundOffset(-1, bound, self._latest_epoch)
        if timestamp == EARLIEST_TIMESTAMP:
            first = self._epochs.earliest_entry
            start = self.log_start_offset
            return FoundOffset(-1, start, first.epoch if first is not None and first.start_offset <= start else -1)
        self._ensure_online()
        try:
            if timestamp == MAX_TIMESTAMP:
                found = find_max_timestamp(self._segments.view)
            else:
                found = find_by_timestamp(self._segments.view, timestamp, self.log_start_offset)
        except FileNotFoundError as error:
            self._refuse_missing(error)
        except OSError as error:
            self._refuse_read(error)
        except (CorruptRecordError, CorruptFileError) as error:
            _log.error("cannot look up timestamp=%s in %s: %s", timestamp, self.topic_partition, error)
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{self.topic_partition}: {error}") from error
        return found if found is not None and found.offset < bound else None

    def offset_for_max_timestamp(self) -> FoundOffset | None:
        """The first record that carries the largest timestamp. Raises BrokerError."""
        return self.offset_for_timestamp(MAX_TIMESTAMP)

    def leader_epoch_for(self, offset: int) -> int:
        """The leader epoch that wrote `offset`, or -1."""
        return self._epochs.epoch_for(offset)

    def end_offset_for_epoch(self, epoch: int) -> EpochEntry | None:
        """Where a leader epoch ended (the greatest known one not above it)."""
        return self._epochs.end_offset_for(epoch, self.log_end_offset)

    # -- durability

    def flush(self, up_to: int | None = None) -> int:
        """Make what is appended below `up_to` (default: everything) durable; the offset up to which it is.

        Sealed segments are synced with their indexes, the active one without: recovery reads it again anyway. Raises
        StorageError after taking the directory offline: a failed fsync is never retried.
        """
        if self.state == "offline":
            raise StorageError(self.directory, f"cannot sync {self.topic_partition}: it is offline")
        target = self.log_end_offset if up_to is None else min(up_to, self.log_end_offset)
        start = self.recovery_point
        if target <= start:
            return start
        active_base = self._active.base_offset
        segments = self._segments.view.overlapping(start, target)
        try:
            for segment in segments:
                segment.sync(with_indexes=segment.base_offset < active_base)
            if segments[-1].base_offset >= start:
                sync_directory(self.directory)  # new files: their names must last, too
        except FileNotFoundError as error:
            if self.state != "online" or self.log_start_offset > start:
                return self.recovery_point  # deleted meanwhile: nothing is left to be made durable
            raise StorageError(self.directory, f"a file of {self.topic_partition} is missing: {error}") from error
        except OSError as error:
            self._fail("cannot sync the log", error)
            raise StorageError(self.directory, f"cannot sync {self.topic_partition}: {error}") from error
        with self._lock:
            self.durable_offset = max(self.durable_offset, target)
            if target > self.recovery_point:
                self.recovery_point = target
                self.last_flush_ms = self._wall_ms()
        return target

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
                if not is_disk_full(error):
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
                    snapshots = [
                        path
                        for segment in doomed
                        if (path := self._producers.mark_snapshot_deleted(segment.base_offset)) is not None
                    ]
                _log.info(
                    "deleting %s segments of %s by %s: log_start_offset=%s, delay_ms=%s",
                    len(doomed),
                    self.topic_partition,
                    rule.value,
                    self.log_start_offset,
                    self.config.file_delete_delay_ms,
                )
                delete_later(doomed, snapshots, self.log_dir, self._services, self.config.file_delete_delay_ms)
            except FileNotFoundError as error:
                _log.warning(
                    "retention of %s finds a file missing, nothing is deleted: %s", self.topic_partition, error
                )
                return 0
            except OSError as error:
                if is_disk_full(error):
                    _log.warning("retention of %s waits for room on the disk: %s", self.topic_partition, error)
                    return 0
                self._fail("cannot delete old segments", error)
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic_partition}: {error}") from error
            else:
                return len(doomed)

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
        with self._lock:
            if self.state != "online":
                return
            try:
                self._epochs.write()
            except OSError as error:
                if not is_disk_full(error):
                    self._fail("cannot write the leader epochs", error)

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
            target = self.log_dir / name
            os.rename(self.directory, target)
            sync_directory(self.log_dir)
            self.directory = target
            for segment in self._segments:
                segment.move_to(os.fspath(target))
            self._epochs.move_to(target)
            self._producers.move_to(target)

    def delete_directory(self) -> None:
        """Remove the directory and all that is in it; the log was retired before. Raises OSError."""
        self.go_offline()
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.directory)
            sync_directory(self.log_dir)

    # -- refusals

    def _ensure_online(self) -> None:
        if self.state != "online":
            self._refuse_state()

    def _refuse_state(self) -> NoReturn:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic_partition} is {self.state}")

    def _refuse_size(self, size: int) -> NoReturn:
        raise BrokerError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{self.topic_partition}: the batch has {size} bytes, segment.bytes is {self._segment_bytes}",
        )

    def _refuse_offset(self, offset: int, end_offset: int) -> NoReturn:
        raise BrokerError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{self.topic_partition}: offset {offset} is outside of [{self.log_start_offset}, {end_offset}]",
        )

    def _refuse_append(self, error: OSError) -> NoReturn:
        if not is_disk_full(error):
            self._fail("cannot append", error)
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic_partition}: cannot append: {error}") from error

    def _refuse_missing(self, error: FileNotFoundError) -> NoReturn:
        """A file is gone: the topic's directory was just renamed, or somebody removed it. The disk is not to blame."""
        if self.state == "online" and self.directory.exists():
            _log.error("a file of %s is missing: %s", self.topic_partition, error)
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic_partition}: a file is gone") from error

    def _refuse_read(self, error: OSError) -> NoReturn:
        if self.state == "online":
            self._fail("cannot read", error)
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic_partition}: cannot read: {error}") from error

    def _fail(self, what: str, error: OSError) -> None:
        """The disk has failed: this log stops at once, the others of its directory as soon as the handler runs."""
        if self.state == "online":
            self.state = "offline"
        self._services.failures.report(self.log_dir, f"{what} ({self.topic_partition})", error)

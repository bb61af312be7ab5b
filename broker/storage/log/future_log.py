"""FutureLog: the copy of a log in another log directory of the same broker, which then takes the log's place.

Directory `<topic>-<partition>.<32 hex>-future`. It is fed with stored batches as they are: offsets, leader epochs,
timestamps and producer fields stay; segments roll and are indexed by the rules of an append. It begins where the log
begins and has the log's holes; and it is recovered as any log is, so a move goes on after a crash.

Taking over happens under the log's lock, in an order in which every crash leaves what the next start understands, be
it ours or Apache Kafka's:

    1. the last batches are copied, and are as durable as they were
    2. the metadata log names the new directory (the caller's `assign`)
    3. the old directory becomes `-delete`
    4. `-future` becomes `<topic>-<partition>`
    5. the two PartitionLog objects exchange their files

After 1 the copy is complete, so a start may take either; after 2 Kafka promotes the copy (recoverAbandonedFutureLogs)
and so do we after 3. No moment has the partition in two directories. (Kafka renames in the order 4, 3 and does not
start after a crash in between.) Since the log's object stays what it was to everybody who holds it, appends wait for
the lock and go on, waiting fetches and flushes do not notice, and slices that are being sent keep the old files open.

Source: Kafka LogManager.replaceCurrentWithFutureLog, ReplicaAlterLogDirsThread, UnifiedLog.appendAsFollower.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.partition_directory import delete_directory_name, directory_name
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.producer_rebuild import note_stored_batch
from barnabas.broker.storage.log.read import LogEnd
from barnabas.broker.storage.log.retention import RetentionRule
from barnabas.broker.storage.segment.deletion import remove_now
from barnabas.broker.storage.segment.log_segment import MAX_RELATIVE_OFFSET, LogSegment
from barnabas.broker.storage.segment.old_format_slice import OldFormatSlice
from barnabas.broker.storage.segment.scan import StoredEntry
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.kernels.scanned import ProducerBatch
from barnabas.protocol.records.layout import LOG_OVERHEAD, MAGIC_POSITION
from barnabas.protocol.records.legacy.messages import LegacyMessage, is_legacy_magic

logger = logging.getLogger(__name__)


class FutureLog(PartitionLog):
    """The copy. One thread feeds it; maintenance may flush it meanwhile.

    It begins where its log begins, and no retention rule is applied to it: were its start ahead, readers would wait for
    ever at an offset between the two once it has taken over.
    """

    def catch_up(self, current: PartitionLog, max_bytes: int) -> int:
        """Copy the next batches of `current`: about `max_bytes`, one batch at least; 0 once there are no more.

        Raises BrokerError KAFKA_STORAGE_ERROR of either log, CorruptFileError when what is stored is damaged.
        """
        self._follow_start(current.log_start_offset)
        end = current.log_end_offset
        offset = max(self.log_end_offset, current.log_start_offset)
        if offset >= end:
            self._skip_to(end)
            return 0
        found = current.read(offset, max_bytes, upper_bound=end, at_least_one_batch=True)
        if isinstance(found, OldFormatSlice):
            found = found.records  # as they are stored, not as a client gets them
        if found is None:
            self._skip_to(end)  # the log's end lies behind its last batch: nothing is stored in between
            return 0
        return self.append_as_follower(memoryview(found.read()))

    def delete_old_segments(self) -> int:
        """Apply the retention rules, if this is the log by now (it was promoted at start); see the class."""
        return 0 if self._is_copy else super().delete_old_segments()

    def bytes_behind(self, current: PartitionLog) -> int:
        """Bytes of `current` that are not copied yet. Raises OSError, CorruptRecordError."""
        offset = max(self.log_end_offset, current.log_start_offset)
        end = current.log_end_offset
        if offset >= end:
            return 0
        behind = 0
        for segment in current._segments.view.overlapping(offset, end):
            size = segment.size_bytes
            found = segment.find_batch(offset, size) if segment.base_offset < offset else None
            if segment.base_offset >= offset:
                behind += size
            elif found is not None:
                behind += size - found.position
        return behind

    def append_as_follower(self, records: memoryview) -> int:
        """Store whole batches with the offsets and epochs that they have; what is cut at the end is left; the bytes.

        Raises CorruptFileError, BrokerError KAFKA_STORAGE_ERROR; batches before a bad one are stored.
        """
        appended = 0
        with self._lock:
            self._ensure_online()
            try:
                while (entry := _whole_entry(records, appended)) is not None:
                    entry.ensure_valid()
                    self._append_stored(records[appended : appended + entry.size_bytes], entry)
                    appended += entry.size_bytes
            except CorruptRecordError as error:
                raise CorruptFileError(
                    self.directory, f"{self.topic_partition}: damaged after offset {self.log_end_offset}: {error}"
                ) from error
            except OSError as error:
                self._refuse_append(error)
            self._first_unstable_offset = self._producers.first_unstable_offset
        return appended

    def take_over(self, current: PartitionLog, assign: Callable[[], None], *, max_tail_bytes: int) -> bool:
        """Take the place of `current`; False when it is more than `max_tail_bytes` ahead: catch up, and try again.

        Appends wait while the tail is copied.

        Afterwards `current` has this log's files and directory, and this log has the old ones, in a `-delete`
        directory. `assign` says durably where the partition is; what it raises leaves both as they were. Raises
        BrokerError, StorageError; OSError after the directory that failed was taken offline.
        """
        self.flush()
        if self._epochs.replace_entries(current._epochs.entries):
            self._epochs.write()
        with current._lock:
            if current.size_bytes and current.log_end_offset > self.log_end_offset:
                copied = 0
                while copied <= max_tail_bytes and (step := self.catch_up(current, max_tail_bytes)):
                    copied += step
            self.catch_up(current, 1)
            if self.log_end_offset != current.log_end_offset:
                return False
            if current.durable_offset > self.durable_offset:
                self.flush()
            if self._epochs.replace_entries(current._epochs.entries):
                self._epochs.write()
            assign()
            with self._lock:
                self._rename_both(current)
                current._exchange_files(self)
                self.state = "offline"  # what it holds now is only there to be deleted
        return True

    def _follow_start(self, log_start_offset: int) -> None:
        if log_start_offset > self.log_start_offset:
            with self._lock:
                self._move_log_start(min(log_start_offset, self.log_end_offset))
            self._delete_by(RetentionRule.START_OFFSET)

    @property
    def _is_copy(self) -> bool:
        return self.directory.name != directory_name(self.topic_partition)

    def _remove_later(self, segments: Sequence[LogSegment], snapshots: Iterable[Path]) -> None:
        """At once: nobody reads a copy, and what is to go after a delay would not be found once it is renamed."""
        if self._is_copy:
            remove_now(segments, snapshots)
        else:
            super()._remove_later(segments, snapshots)

    def _skip_to(self, end_offset: int) -> None:
        """Let the log end at `end_offset`, behind a hole."""
        if end_offset <= self.log_end_offset:
            return
        with self._lock:
            self._ensure_online()
            try:
                self._begin_segment(end_offset)
            except OSError as error:
                self._refuse_append(error)
            self.log_end_offset = end_offset
            self._end = LogEnd(end_offset, self._active, 0, -1, 0)

    def _append_stored(self, data: memoryview, entry: StoredEntry) -> None:
        """Write one batch, or one message of an old format. The lock is held. Raises OSError, CorruptRecordError."""
        last_offset = entry.last_offset
        base_offset = entry.base_offset if isinstance(entry, RecordBatch) else self.log_end_offset
        if base_offset < self.log_end_offset or last_offset < base_offset:
            raise CorruptRecordError(f"offsets {base_offset}..{last_offset} behind {self.log_end_offset}")
        if isinstance(entry, RecordBatch) and entry.partition_leader_epoch > self._latest_epoch:
            self._assign_epoch(entry.partition_leader_epoch, base_offset)
        segment = self._segment_for(entry, base_offset)
        position = segment.size_bytes
        size = entry.size_bytes
        segment.append(data, size, last_offset, entry.max_timestamp)
        if not isinstance(entry, RecordBatch):
            segment.expect_old_messages()
        elif entry.producer_id >= 0:
            batch = _producer_batch(entry, position)
            note_stored_batch(
                self._producers,
                segment.log.handle(),
                batch,
                segment.transaction_index,
                appended_ms=self._wall_ms(),  # it was stored before that: nobody is forgotten here who is known there
            )
        self._end = LogEnd(last_offset + 1, segment, position + size, base_offset, position)
        self.log_end_offset = last_offset + 1

    def _segment_for(self, entry: StoredEntry, base_offset: int) -> LogSegment:
        """The active segment, or a new one where an append would roll. Raises OSError."""
        segment = self._active
        if entry.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
            return self._begin_segment(base_offset)
        if segment.size_bytes:
            now_or_then = self._wall_ms() if segment.rolls_by_wall_clock else entry.max_timestamp
            if (
                segment.size_bytes + entry.size_bytes > self._segment_bytes
                or segment.index_is_full
                or now_or_then > segment.roll_after
            ):
                return self._begin_segment(base_offset)
        return segment

    def _begin_segment(self, base_offset: int) -> LogSegment:
        return self._active if self._active.base_offset == base_offset else self._roll(base_offset)

    def _rename_both(self, current: PartitionLog) -> None:
        """Steps 3 and 4. Both locks are held. Raises OSError, after the directory that failed was taken offline."""
        try:
            current._rename(delete_directory_name(self.topic_partition))
        except OSError as error:
            current._fail("cannot rename the directory of a log that was moved", error)
            raise
        try:
            self._rename(directory_name(self.topic_partition))
        except OSError as error:
            with contextlib.suppress(OSError):  # if not even this works, the next start promotes the copy
                current._rename(directory_name(self.topic_partition))
            self._fail("cannot rename the directory of a copy", error)
            raise
        logger.info("moved %s to %s, the old directory is %s", self.topic_partition, self.directory, current.directory)


def _whole_entry(records: memoryview, position: int) -> StoredEntry | None:
    """The batch or old message at `position`; None when it is cut, or there is none. Raises CorruptRecordError."""
    present = len(records) - position
    if present < LOG_OVERHEAD or present < LOG_OVERHEAD + int.from_bytes(records[position + 8 : position + 12], "big"):
        return None
    if is_legacy_magic(records[position + MAGIC_POSITION]):
        return LegacyMessage(records, position)
    return RecordBatch(records, position)


def _producer_batch(batch: RecordBatch, position: int) -> ProducerBatch:
    """What producer state takes of a batch that was written at `position` of its segment."""
    return ProducerBatch(
        position,
        batch.size_bytes,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.last_offset,
        batch.last_offset_delta,
        batch.max_timestamp,
        batch.record_count,
        batch.is_transactional,
        batch.is_control,
    )

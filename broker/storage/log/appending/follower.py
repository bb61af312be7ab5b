"""FollowerAppender: appends stored batches as they are, with the offsets and leader epochs that they have.

Segments roll and are indexed by the rules of a leader's append. Source: Kafka UnifiedLog.appendAsFollower.
"""

from __future__ import annotations

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.loading.producer_rebuild import note_stored_batch
from barnabas.broker.storage.log.read import LogEnd
from barnabas.broker.storage.log.roller import LogRoller
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.scan import StoredEntry
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.kernels.scanned import ProducerBatch
from barnabas.protocol.records.layout import LOG_OVERHEAD, MAGIC_POSITION
from barnabas.protocol.records.legacy.messages import LegacyMessage, is_legacy_magic


class FollowerAppender:
    """Appends to one log that is a copy of another."""

    __slots__ = ("_core", "_roller")

    def __init__(self, core: LogCore, roller: LogRoller) -> None:
        self._core = core
        self._roller = roller

    def append_as_follower(self, records: memoryview) -> int:
        """Append the whole batches in `records`; return their bytes. A batch that is cut at the end is left out.

        Raises CorruptFileError, BrokerError KAFKA_STORAGE_ERROR; batches before a damaged one are stored.
        """
        core = self._core
        appended = 0
        with core.lock:
            core.ensure_online()
            try:
                while (entry := _whole_entry(records, appended)) is not None:
                    entry.ensure_valid()
                    self._append(records[appended : appended + entry.size_bytes], entry)
                    appended += entry.size_bytes
            except CorruptRecordError as error:
                raise CorruptFileError(
                    core.directory, f"{core.topic_partition}: damaged after offset {core.log_end_offset}: {error}"
                ) from error
            except OSError as error:
                core.refuse_append(error)
            core.first_unstable_offset = core.producers.first_unstable_offset
        return appended

    def skip_to(self, end_offset: int) -> None:
        """Let the log end at `end_offset`, after a hole. Raises BrokerError KAFKA_STORAGE_ERROR."""
        core = self._core
        if end_offset <= core.log_end_offset:
            return
        with core.lock:
            core.ensure_online()
            try:
                segment = self._begin_segment(end_offset)
            except OSError as error:
                core.refuse_append(error)
            core.log_end_offset = end_offset
            core.end = LogEnd(end_offset, segment, 0, -1, 0)

    def _append(self, data: memoryview, entry: StoredEntry) -> None:
        """Write one batch, or one message of an old format. The lock is held. Raises OSError, CorruptRecordError."""
        core = self._core
        last_offset = entry.last_offset
        base_offset = entry.base_offset if isinstance(entry, RecordBatch) else core.log_end_offset
        if base_offset < core.log_end_offset or last_offset < base_offset:
            raise CorruptRecordError(f"offsets {base_offset}..{last_offset} behind {core.log_end_offset}")
        if isinstance(entry, RecordBatch) and entry.partition_leader_epoch > core.latest_epoch:
            core.assign_epoch(entry.partition_leader_epoch, base_offset)
        size = entry.size_bytes
        segment = core.active
        if segment.should_roll(size, last_offset, entry.max_timestamp, core.wall_ms(), core.config.segment_bytes):
            segment = self._begin_segment(base_offset)
        position = segment.size_bytes
        segment.append(data, size, last_offset, entry.max_timestamp)
        if not isinstance(entry, RecordBatch):
            segment.expect_old_messages()
        elif entry.producer_id >= 0:
            batch = _producer_batch(entry, position)
            note_stored_batch(
                core.producers,
                segment.log.handle(),
                batch,
                segment.transaction_index,
                # Later than the append to the original: no producer expires here before it expires there.
                appended_ms=core.wall_ms(),
            )
        core.end = LogEnd(last_offset + 1, segment, position + size, base_offset, position)
        core.log_end_offset = last_offset + 1

    def _begin_segment(self, base_offset: int) -> LogSegment:
        active = self._core.active
        return active if active.base_offset == base_offset else self._roller.roll_at(base_offset)


def _whole_entry(records: memoryview, position: int) -> StoredEntry | None:
    """Return the batch or old message at `position`; None if it is cut, or at the end. Raises CorruptRecordError."""
    present = len(records) - position
    if present < LOG_OVERHEAD or present < LOG_OVERHEAD + int.from_bytes(records[position + 8 : position + 12], "big"):
        return None
    if is_legacy_magic(records[position + MAGIC_POSITION]):
        return LegacyMessage(records, position)
    return RecordBatch(records, position)


def _producer_batch(batch: RecordBatch, position: int) -> ProducerBatch:
    """Return the fields that producer state needs of a batch at `position` of its segment."""
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

"""TrustedAppender: appends of this broker's own writers, that is of the metadata log and of the coordinators.

Their batches are stored as they were built: offsets and epoch are stamped, timestamps and codecs stay. One append may
have several batches, and the metadata log's control batches. End markers of transactions: MarkerAppender.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from barnabas.broker.storage.log.append import AppendOrigin, AppendResult
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.read import LogEnd
from barnabas.broker.storage.log.roller import LogRoller
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.segment.log_segment import AppendedBatch
from barnabas.config.log_config import LogConfig
from barnabas.protocol.crc32c import crc32c
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.batch import RecordBatch, iter_batches
from barnabas.protocol.records.errors import CorruptRecordError, InvalidRecordError
from barnabas.protocol.records.layout import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    TRANSACTIONAL_MASK,
)
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.storage.kernels._append import AppendKernel

_unpack_header = HEADER.unpack_from
_pack_placement = struct.Struct(">qii").pack_into
"""Writes base offset, length and partition leader epoch."""

_new_tuple = tuple.__new__
_ONLINE = LogState.ONLINE

_UNUSUAL_MASK = ~(CODEC_MASK | TRANSACTIONAL_MASK)
"""Attributes of a batch that does not take the short path: control batches, append times."""


class TrustedAppender:
    """Appends whole batches to one log."""

    __slots__ = ("_core", "_kernel", "_roller")

    def __init__(self, core: LogCore, roller: LogRoller, kernel: AppendKernel | None = None) -> None:
        self._core = core
        self._kernel = kernel
        self._roller = roller

    def append(self, records: memoryview, leader_epoch: int, origin: AppendOrigin) -> AppendResult:
        """Append the batches in `records`, which are patched in place.

        Raises BrokerError: CORRUPT_MESSAGE (2), MESSAGE_TOO_LARGE (10), RECORD_LIST_TOO_LARGE (18), KAFKA_STORAGE_ERROR
        (56), INVALID_RECORD (87) for an end marker, INVALID_PRODUCER_EPOCH (47) for a fenced producer's offsets.
        """
        now_ms = self._core.wall_ms()
        kernel = self._kernel
        if kernel is not None:
            appended = kernel.append_trusted_batch(records, leader_epoch, now_ms)
            if appended is not None:
                return appended
        size = len(records)
        if size < HEADER_SIZE:
            return self._append_many(records, leader_epoch, origin, now_ms)
        header = _unpack_header(records)
        _, length, _, magic, crc, attributes, last_offset_delta, _, _, _, _, _, record_count = header
        if (
            length + LOG_OVERHEAD != size
            or magic != MAGIC_V2
            or attributes & _UNUSUAL_MASK
            or record_count <= 0
            or last_offset_delta < 0
            or size > self._core.config.max_message_bytes
            or crc32c(records[ATTRIBUTES_POSITION:]) != crc
        ):
            return self._append_many(records, leader_epoch, origin, now_ms)
        return self._append_one(records, size, header, leader_epoch, now_ms)

    def _append_one(
        self, records: memoryview, size: int, header: tuple[int, ...], leader_epoch: int, now_ms: int
    ) -> AppendResult:
        """Append a single batch of records, as coordinators write them: a third of the cost of the general path."""
        _, length, _, _, _, attributes, last_offset_delta, _, max_timestamp, producer_id, epoch, sequence, count = (
            header
        )
        core = self._core
        config = core.config
        with core.lock:
            if core.state is not _ONLINE:
                core.refuse_state()
            base_offset = core.log_end_offset
            last_offset = base_offset + last_offset_delta
            try:
                if leader_epoch != core.latest_epoch:
                    core.assign_epoch(leader_epoch, base_offset)
                if size > config.segment_bytes:
                    refuse_size(core.topic_partition, size, config.segment_bytes)
                if producer_id >= 0:
                    core.producers.check_epoch(producer_id, epoch)
                segment = core.active
                position = segment.log.size_bytes
                if segment.should_roll(size, last_offset, max_timestamp, now_ms, config.segment_bytes):
                    segment = self._roller.roll_at(base_offset)
                    position = 0
                _pack_placement(records, 0, base_offset, length, leader_epoch)
                segment.append(records, size, last_offset, max_timestamp)
            except OSError as error:
                core.refuse_append(error)
            opens_transaction = False
            if producer_id >= 0:
                opens_transaction = core.producers.note_batch(
                    producer_id,
                    epoch,
                    sequence,
                    last_offset,
                    last_offset_delta,
                    max_timestamp,
                    is_transactional=bool(attributes & TRANSACTIONAL_MASK),
                    appended_ms=now_ms,
                )
                # Before the end of the log: read_committed must not see a transaction that has just begun.
                core.first_unstable_offset = core.producers.open_transactions.first_offset
            next_offset = last_offset + 1
            core.end = _new_tuple(LogEnd, (next_offset, segment, position + size, base_offset, position))
            core.log_end_offset = next_offset
            result: AppendResult = _new_tuple(
                AppendResult,
                (
                    base_offset,
                    last_offset,
                    -1,
                    core.log_start_offset,
                    size,
                    count,
                    next_offset - core.durable_offset >= config.acks_all_flush_messages,
                    False,
                    opens_transaction,
                ),
            )
            return result

    def _append_many(self, records: memoryview, leader_epoch: int, origin: AppendOrigin, now_ms: int) -> AppendResult:
        """Append any number of batches, control batches too."""
        core = self._core
        batches = _checked_batches(core.topic_partition, records, core.config, origin)
        size = len(records)
        max_timestamp = max(batch.max_timestamp for batch in batches)
        offsets = sum(batch.last_offset_delta + 1 for batch in batches)
        config = core.config
        with core.lock:
            core.ensure_online()
            base_offset = core.log_end_offset
            next_offset = base_offset + offsets
            try:
                if leader_epoch != core.latest_epoch:
                    core.assign_epoch(leader_epoch, base_offset)
                if size > config.segment_bytes:
                    refuse_size(core.topic_partition, size, config.segment_bytes)
                for batch in batches:
                    if batch.producer_id >= 0:
                        core.producers.check_epoch(batch.producer_id, batch.producer_epoch)
                segment = core.active
                if segment.should_roll(size, next_offset - 1, max_timestamp, now_ms, config.segment_bytes):
                    segment = self._roller.roll_at(base_offset)
                position = segment.size_bytes
                segment.append_many(records, _placed(batches, base_offset, leader_epoch))
            except OSError as error:
                core.refuse_append(error)
            for batch in batches:
                if batch.producer_id >= 0:
                    core.producers.note_data(batch, appended_ms=now_ms)
            core.first_unstable_offset = core.producers.first_unstable_offset
            core.end = LogEnd(next_offset, segment, position + size, base_offset, position)
            core.log_end_offset = next_offset
            return AppendResult(
                base_offset,
                batches[-1].last_offset,
                -1,
                core.log_start_offset,
                size,
                sum(batch.record_count for batch in batches),
                next_offset - core.durable_offset >= config.acks_all_flush_messages,
                opens_transaction=base_offset in core.producers.open_transactions,
            )


def refuse_size(topic_partition: TopicPartition, size: int, segment_bytes: int) -> NoReturn:
    """Raise BrokerError RECORD_LIST_TOO_LARGE for an append that is larger than a segment."""
    raise BrokerError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"{topic_partition}: the batch has {size} bytes, segment.bytes is {segment_bytes}",
    )


def _checked_batches(
    topic_partition: TopicPartition, records: memoryview, config: LogConfig, origin: AppendOrigin
) -> list[RecordBatch]:
    """Return the batches in `records`, checked. Raises BrokerError."""
    batches: list[RecordBatch] = []
    try:
        batches.extend(iter_batches(records))
        for batch in batches:
            batch.ensure_valid()
    except (CorruptRecordError, InvalidRecordError) as error:
        raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{topic_partition}: {error}") from error
    if not batches or sum(batch.size_bytes for batch in batches) != len(records):
        raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{topic_partition}: {len(records)} bytes are not whole batches")
    largest = max(batch.size_bytes for batch in batches)
    if origin is AppendOrigin.COORDINATOR and largest > config.max_message_bytes:
        raise BrokerError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{topic_partition}: a batch has {largest} bytes, max.message.bytes is {config.max_message_bytes}",
        )
    if any(batch.is_control and batch.producer_id >= 0 for batch in batches):
        raise BrokerError(ErrorCode.INVALID_RECORD, f"{topic_partition}: an end marker among other batches")
    return batches


def _placed(batches: Sequence[RecordBatch], base_offset: int, leader_epoch: int) -> list[AppendedBatch]:
    """Stamp offsets and epoch; return what the segment needs to index the batches."""
    placed = []
    for batch in batches:
        batch.stamp_offset_and_epoch(base_offset, leader_epoch)
        placed.append(AppendedBatch(batch.position, batch.size_bytes, batch.last_offset, batch.max_timestamp))
        base_offset = batch.next_offset
    return placed

"""MarkerAppender: appends the end markers of transactions.

The row of an aborted transaction must be in the segment's index if, and only if, its marker is in the log. The row is
written first: if the disk is full, a row is easily cut off again, a batch is not. Source: Kafka UnifiedLog,
ProducerAppendInfo.appendEndTxnMarker.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.storage.index.transaction_index import AbortedTxn
from barnabas.broker.storage.kernels.kernel import append_commit
from barnabas.broker.storage.log.append import AppendResult, TransactionEnd
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.read import LogEnd
from barnabas.broker.storage.log.roller import LogRoller
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.protocol.records.end_marker import MARKER_BATCH_BYTES
from barnabas.protocol.records.layout import LOG_OVERHEAD

if TYPE_CHECKING:
    from barnabas.broker.storage.kernels._append import AppendKernel

_new_tuple = tuple.__new__
_ONLINE = LogState.ONLINE

_LENGTH = MARKER_BATCH_BYTES - LOG_OVERHEAD
_pack_placement = struct.Struct(">qii").pack_into
"""Writes base offset, length and partition leader epoch."""


class MarkerAppender:
    """Appends end markers to one log."""

    __slots__ = ("_append_commit", "_core", "_roller")

    def __init__(self, core: LogCore, roller: LogRoller, kernel: AppendKernel | None = None) -> None:
        self._core = core
        self._append_commit = None if kernel is None or append_commit is None else partial(append_commit, kernel)
        self._roller = roller

    def append_marker(self, end: TransactionEnd, *, leader_epoch: int, timestamp_ms: int | None = None) -> AppendResult:
        """Append the marker that ends the producer's transaction, if one is open; a marker without one is stored, too.

        `timestamp_ms` None: now. Raises BrokerError INVALID_PRODUCER_EPOCH (47), TRANSACTION_COORDINATOR_FENCED (52),
        KAFKA_STORAGE_ERROR (56); then nothing was appended.
        """
        core = self._core
        producer_id, producer_epoch, marker = end.producer_id, end.producer_epoch, end.marker
        now_ms = core.wall_ms()
        config = core.config
        log_append_time = config.timestamp_type == "LogAppendTime"
        timestamp = now_ms if timestamp_ms is None or log_append_time else timestamp_ms
        compiled = self._append_commit
        if compiled is not None and marker.is_commit:
            data = end.batch(timestamp, log_append_time=log_append_time)
            appended = compiled(end, data, leader_epoch, timestamp, now_ms, log_append_time)
            if appended is not None:
                return appended
        producers = core.producers
        with core.lock:
            if core.state is not _ONLINE:
                core.refuse_state()
            producers.check_marker(producer_id, producer_epoch, marker, end.transaction_version)
            base_offset = core.log_end_offset
            data = end.batch(timestamp, log_append_time=log_append_time)
            row = None if marker.is_commit else producers.aborted_by(producer_id, marker, base_offset)
            try:
                if leader_epoch != core.latest_epoch:
                    core.assign_epoch(leader_epoch, base_offset)
                segment = core.active
                if segment.should_roll(MARKER_BATCH_BYTES, base_offset, timestamp, now_ms, config.segment_bytes):
                    segment = self._roller.roll_at(base_offset)
                position = segment.log.size_bytes
                _pack_placement(data, 0, base_offset, _LENGTH, leader_epoch)
                if row is None:
                    segment.append(data, MARKER_BATCH_BYTES, base_offset, timestamp)
                else:
                    _append_with_row(segment, data, base_offset, timestamp, row)
            except OSError as error:
                core.refuse_append(error)
            producers.note_marker(producer_id, producer_epoch, marker, timestamp)
            core.first_unstable_offset = producers.open_transactions.first_offset
            next_offset = base_offset + 1
            core.end = _new_tuple(LogEnd, (next_offset, segment, position + MARKER_BATCH_BYTES, base_offset, position))
            core.log_end_offset = next_offset
            result: AppendResult = _new_tuple(
                AppendResult,
                (
                    base_offset,
                    base_offset,
                    timestamp if log_append_time else -1,
                    core.log_start_offset,
                    MARKER_BATCH_BYTES,
                    1,
                    next_offset - core.durable_offset >= config.acks_all_flush_messages,
                    False,
                    False,
                ),
            )
            return result


def _append_with_row(segment: LogSegment, data: bytearray, offset: int, timestamp: int, row: AbortedTxn) -> None:
    """Append the marker, and the index row of the transaction that it aborts. Raises OSError."""
    segment.transaction_index.append(row)
    try:
        segment.append(data, MARKER_BATCH_BYTES, offset, timestamp)
    except OSError:
        segment.transaction_index.truncate_to(row.last_offset)
        raise

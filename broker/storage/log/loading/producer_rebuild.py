"""Rebuilds producer state from the newest usable snapshot and the batches after it.

Used when a log is loaded, while it is recovered, and after a truncation. The time of a producer's last append is not on
disk. The last write to the segment with its last batch stands in for it, because the batch is not younger. So a
producer of old records that continues after a restart is still known, and a silent one expires a day after its segment
was full, however often the broker starts: with the time of the start instead, a broker that starts every night would
never forget. Source: Kafka UnifiedLog.rebuildProducerState.
"""

from __future__ import annotations

import logging

from barnabas.broker.storage.files.open_files import FileHandle
from barnabas.broker.storage.index.transaction_index import TransactionIndex
from barnabas.broker.storage.producers.entry import NO_TIMESTAMP
from barnabas.broker.storage.producers.state import ProducerState
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.log_segments import LogSegments
from barnabas.broker.storage.segment.scan import read_batch, scan_segment
from barnabas.protocol.errors import DecompressionError
from barnabas.protocol.records.end_marker import decode_end_marker
from barnabas.protocol.records.errors import InvalidRecordError
from barnabas.protocol.records.kernels.scan import BatchScan
from barnabas.protocol.records.kernels.scanned import ProducerBatch
from barnabas.protocol.records.reader import read_records

logger = logging.getLogger(__name__)


def rebuild_producer_state(
    state: ProducerState,
    segments: LogSegments,
    log_start_offset: int,
    end_offset: int,
    now_ms: int,
    *,
    after_clean_stop: bool,
) -> None:
    """Rebuild `state` for a log that ends at `end_offset`, and write its snapshots. Raises OSError.

    After a clean stop without any snapshot no batch is read: the directory comes from a version of Kafka that wrote
    no snapshots. Empty snapshots are written, which save the next start a scan of the whole log.
    """
    bases = segments.view.base_offsets
    if after_clean_stop and not state.snapshot_offsets:
        for offset in (*bases[-2:], end_offset):
            state.map_end_offset = offset
            state.take_snapshot(durably=True)
        return
    known_already = state.is_empty and state.map_end_offset >= end_offset

    def written_ms(last_offset: int) -> int:
        view = segments.view
        if not view.segments:
            return now_ms  # the first segment is being recovered: it is in the list once it is whole
        # The segment of the batch, or the first one if retention removed that.
        holder = view.segments[max(view.floor_index(last_offset), 0)]
        return min(now_ms, holder.last_modified_ms()) if holder.size_bytes else now_ms

    state.truncate_and_reload(log_start_offset, end_offset, now_ms, written_ms)
    if end_offset > state.map_end_offset and not known_already:
        for segment in segments.view.overlapping(state.map_end_offset, end_offset):
            state.map_end_offset = max(segment.base_offset, state.map_end_offset, log_start_offset)
            if segment.base_offset in bases[-2:]:
                state.take_snapshot(durably=True)
            _replay(state, segment, state.map_end_offset, min(now_ms, segment.last_modified_ms()))
    state.map_end_offset = end_offset
    state.take_snapshot(durably=True)


def note_stored_batch(
    state: ProducerState,
    file: FileHandle,
    batch: ProducerBatch,
    index: TransactionIndex | None = None,
    *,
    appended_ms: int = NO_TIMESTAMP,
) -> None:
    """Add one batch with a producer id to `state`; an abort marker gets its row in `index`, if one is given.

    A marker that cannot be read although its CRC is right ends no transaction: read_committed consumers wait there, and
    no record is lost. Raises CorruptRecordError, OSError.
    """
    if not batch.is_control:
        state.note_data(batch, appended_ms=appended_ms)
        return
    if batch.record_count <= 0:
        return  # the cleaner has removed the whole transaction
    control = read_batch(file, batch.position, batch.size_bytes)
    try:
        record = read_records(control)[0]
        marker = decode_end_marker(record.key, record.value)
    except (DecompressionError, InvalidRecordError) as error:
        logger.warning("ignoring the end marker of offset=%s: %s", batch.last_offset, error)
        return
    row = state.aborted_by(batch.producer_id, marker, control.base_offset)
    if row is not None and index is not None:
        index.append(row)
    state.note_marker(batch.producer_id, batch.producer_epoch, marker, record.timestamp)


def _replay(state: ProducerState, segment: LogSegment, start_offset: int, written_ms: int) -> None:
    file = segment.log.handle()
    scan = BatchScan(
        segment.base_offset,
        position=segment.index_position(start_offset),
        check_crc=False,
        producers_from=start_offset,
    )
    for batches in scan_segment(scan, file, segment.size_bytes):
        for batch in batches:
            note_stored_batch(state, file, batch, appended_ms=written_ms)

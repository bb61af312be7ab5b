"""Producer state from what lies on disk: the newest usable snapshot, and the batches after it.

Used when a log is loaded, and while one is recovered. Source: Kafka UnifiedLog.rebuildProducerState.
"""

from __future__ import annotations

from barnabas.broker.storage.log_segment import LogSegment
from barnabas.broker.storage.log_segments import LogSegments
from barnabas.broker.storage.open_files import FileHandle
from barnabas.broker.storage.producer_state import ProducerState
from barnabas.broker.storage.segment_scan import iter_headers, read_batch
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.reader import read_records

_COORDINATOR_EPOCH = slice(2, 6)
"""An end marker's value: int16 version, int32 coordinator epoch."""


def rebuild_producer_state(
    state: ProducerState,
    segments: LogSegments,
    log_start_offset: int,
    end_offset: int,
    now_ms: int,
    *,
    after_clean_stop: bool,
) -> None:
    """Bring `state` to a log that ends at `end_offset`, and write the snapshots that go with it. Raises OSError.

    After a clean stop without any snapshot there is nothing to know: the directory comes from a version that wrote
    none. Empty snapshots then spare the next start a scan of everything.
    """
    bases = segments.view.base_offsets
    if after_clean_stop and not state.snapshot_offsets:
        for offset in (*bases[-2:], end_offset):
            state.map_end_offset = offset
            state.take_snapshot(durably=True)
        return
    known_already = state.is_empty and state.map_end_offset >= end_offset
    state.truncate_and_reload(log_start_offset, end_offset, now_ms)
    if end_offset > state.map_end_offset and not known_already:
        for segment in segments.view.overlapping(state.map_end_offset, end_offset):
            state.map_end_offset = max(segment.base_offset, state.map_end_offset, log_start_offset)
            if segment.base_offset in bases[-2:]:
                state.take_snapshot(durably=True)
            _replay(state, segment, state.map_end_offset, end_offset)
    state.map_end_offset = end_offset
    state.take_snapshot(durably=True)


def note_stored_batch(state: ProducerState, file: FileHandle, position: int, header: RecordBatch) -> None:
    """Remember one batch of the log that has a producer id. Raises CorruptRecordError, OSError."""
    if not header.is_control:
        state.note_batch(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.last_offset,
            header.last_offset_delta,
            header.max_timestamp,
            is_transactional=header.is_transactional,
        )
        return
    if header.record_count <= 0:
        return  # the cleaner has removed the whole transaction
    marker = read_records(read_batch(file, position, header.size_bytes))[0]
    coordinator_epoch = int.from_bytes((marker.value or b"")[_COORDINATOR_EPOCH], "big", signed=True)
    state.note_marker(header.producer_id, header.producer_epoch, coordinator_epoch, marker.timestamp)


def _replay(state: ProducerState, segment: LogSegment, start_offset: int, end_offset: int) -> None:
    file = segment.log.handle()
    position = segment.index_position(start_offset)
    for batch_position, header in iter_headers(file, position, segment.size_bytes):
        if header.last_offset < start_offset:
            continue
        if header.base_offset >= end_offset:
            return
        if header.producer_id >= 0:
            note_stored_batch(state, file, batch_position, header)

"""Recovering one segment: reading it through, cutting it at the first batch that is not what was written.

Everything that can be derived is derived anew: both indexes (by the rule of an append, plus the closing time entry),
producer state, leader epochs. A batch is good when its size fits the file, its CRC is right, and its offsets go on from
the one before within what an index can hold. Source: Kafka LogSegment.recover.
"""

from __future__ import annotations

import logging

from barnabas.broker.storage.leader_epoch import LeaderEpochFile
from barnabas.broker.storage.log_segment import MAX_RELATIVE_OFFSET, LogSegment
from barnabas.broker.storage.producer_rebuild import note_stored_batch
from barnabas.broker.storage.producer_state import ProducerState
from barnabas.broker.storage.segment_scan import OldFormatError, iter_batches_checked
from barnabas.protocol.records.errors import CorruptRecordError

_log = logging.getLogger(__name__)


def recover_segment(segment: LogSegment, state: ProducerState, epochs: LeaderEpochFile) -> int:
    """Recover it; the number of bytes that were cut off. Raises OSError; OldFormatError, then nothing was cut."""
    segment.log.activate()
    segment.begin_index_rebuild()
    file = segment.log.handle()
    valid_bytes = 0
    bytes_since_entry = 0
    next_offset = segment.base_offset
    try:
        for position, batch in iter_batches_checked(file, 0, segment.size_bytes):
            if batch.base_offset < next_offset or batch.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
                raise CorruptRecordError(
                    f"batch at position {position} has offsets {batch.base_offset}..{batch.last_offset}, "
                    f"expected from {next_offset}"
                )
            bytes_since_entry = segment.index_batch(
                position, batch.size_bytes, batch.last_offset, batch.max_timestamp, bytes_since_entry
            )
            if batch.partition_leader_epoch > epochs.latest_epoch:
                epochs.note_recovered(batch.partition_leader_epoch, batch.base_offset)
            if batch.producer_id >= 0:
                note_stored_batch(state, file, position, batch)
            next_offset = batch.next_offset
            state.map_end_offset = next_offset
            valid_bytes = position + batch.size_bytes
    except OldFormatError:
        raise
    except CorruptRecordError as error:
        _log.warning("invalid batch in %s at position=%s: %s", segment.log.path, valid_bytes, error)
    dropped_bytes = segment.log.truncate_to(valid_bytes)
    segment.end_index_rebuild()
    segment.log.seal()
    return dropped_bytes

"""Recovers one segment: reads it through and cuts it at the first damaged or torn batch.

Everything derived from the batches is rebuilt in one pass over the bytes (kernels/scan): both indexes by the rule of an
append, plus the closing time entry; aborted transactions; producer state; leader epochs. A batch is good when its size
fits the file, its CRC is right, and its offsets continue from the batch before. A good batch beyond the reach of an
index is not cut: the segment has to be split.

Before anything is cut, the file is read again, from the disk where possible: a read that returns wrong bytes once must
not cost records. A disk whose reads differ takes its directory offline. Source: Kafka LogSegment.recover, which reads
once.
"""

from __future__ import annotations

import errno
import logging
import os

from barnabas.broker.storage.files.leader_epoch import LeaderEpochFile
from barnabas.broker.storage.log.loading.producer_rebuild import note_stored_batch
from barnabas.broker.storage.producers.state import ProducerState
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.scan import iter_headers, scan_segment
from barnabas.broker.storage.segment.split import SegmentOverflowError, plan_split
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.kernels.scan import BatchScan
from barnabas.protocol.records.kernels.scanned import ScanFault

logger = logging.getLogger(__name__)


def recover_segment(
    segment: LogSegment, state: ProducerState, epochs: LeaderEpochFile, *, next_base_offset: int | None
) -> int:
    """Recover a segment; return the number of bytes that were cut off. The next segment is at `next_base_offset`.

    Raises OSError, also if two reads of a damaged file differ; SegmentOverflowError. The `.log` is unchanged then.
    """
    segment.log.activate()
    segment.transaction_index.reset()
    file = segment.log.handle()
    scan = segment.new_scan(check_crc=True, latest_epoch=epochs.latest_epoch)
    for batches in scan_segment(scan, file, segment.size_bytes):
        for batch in batches:
            note_stored_batch(state, file, batch, segment.transaction_index)
    if scan.fault is ScanFault.OVERFLOW and (
        pieces := plan_split(file, segment.base_offset, segment.size_bytes, next_base_offset)
    ):
        raise SegmentOverflowError(segment, pieces)
    if scan.fault is not None:
        _ensure_read_right(segment, scan, segment.new_scan(check_crc=True, latest_epoch=epochs.latest_epoch))
    if scan.fault not in (None, ScanFault.TORN):
        assert scan.fault is not None
        logger.warning(
            "the batch at position=%s of %s %s: cutting the segment there",
            scan.position,
            segment.log.path,
            scan.fault.value,
        )
    for epoch, start_offset in scan.epochs:
        epochs.note_recovered(epoch, start_offset)
    state.map_end_offset = max(state.map_end_offset, _end_of_batches(segment, scan))
    dropped_bytes = segment.log.truncate_to(scan.position)
    segment.replace_indexes(scan)
    segment.log.seal()
    return dropped_bytes


def _ensure_read_right(segment: LogSegment, scan: BatchScan, again: BatchScan) -> None:
    """Scan a damaged segment `again`. Raises OSError if the damage is not there, or somewhere else."""
    file = segment.log.handle()
    os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    for _ in scan_segment(again, file, segment.size_bytes):
        pass
    if (again.fault, again.position, again.next_offset) != (scan.fault, scan.position, scan.next_offset):
        message = f"two reads differ: damage at position {scan.position}, then at {again.position} ({again.fault})"
        raise OSError(errno.EIO, message, segment.log.path)


def _end_of_batches(segment: LogSegment, scan: BatchScan) -> int:
    """Return the offset after the last batch of version 2: older messages have no producers, Kafka skips them here."""
    if not segment.holds_old_messages:
        return scan.next_offset
    entries = (entry for _, entry in iter_headers(segment.log.handle(), 0, scan.position))
    return max((entry.next_offset for entry in entries if isinstance(entry, RecordBatch)), default=segment.base_offset)

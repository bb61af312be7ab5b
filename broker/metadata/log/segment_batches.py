"""The complete batches of one segment of the metadata log, and the check whether the rest may be dropped.

The last segment may end in one unfinished append: a batch that is cut off, one whose pages never reached the disk (its
CRC is wrong), or zeros. Opening the log drops it. Anything else is damage, and dropping the rest would lose topics: a
bad batch before good ones, at the end of a segment that is not the last, or at the end of a log that was closed
cleanly; and a misplaced batch. The CRC does not cover a batch's offset and leader epoch, but Raft's log has no gaps and
its epochs never decrease, so both are checked against the batch before.

A segment that a snapshot covers is not replayed, but it is checked: the metadata log is recovered from its
start, and recovery, ours and Kafka's, would cut the segment at its damage and drop the later segments with acknowledged
changes.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.storage.files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records import MAGIC_V2, RecordBatch
from barnabas.protocol.records.kernels.scan import BatchScan
from barnabas.protocol.records.layout import LOG_OVERHEAD, MAGIC_POSITION

_NO_EPOCH = -1

logger = logging.getLogger(__name__)


class SegmentBatches(NamedTuple):
    """A segment's complete batches, and the bytes of an unfinished append."""

    whole: memoryview
    tail: bytes


def read_whole_batches(path: Path, base_offset: int, *, is_last: bool, was_closed: bool) -> SegmentBatches:
    """Read a segment; a torn append at its end is logged. Raises MetadataError for a damaged one.

    `was_closed`: the last stop was clean, so a batch of full length cannot lack pages.
    """
    data = _read(path)
    whole_bytes = _whole_bytes(path, data, base_offset)
    tail = memoryview(data)[whole_bytes:]
    if tail:
        cut = f"restore the file, or give up the rest by cutting it to {whole_bytes} bytes"
        give_up = f"{cut} and removing {path.parent.parent / CLEAN_SHUTDOWN_FILE}" if was_closed else cut
        if not is_last:
            raise _damaged(path, whole_bytes, "and later segments follow")
        if _has_whole_batch(tail):
            raise _damaged(path, whole_bytes, "and whole records follow", remedy=give_up)
        if was_closed and _is_of_full_length(tail):
            raise _damaged(path, whole_bytes, "although the last stop was clean", remedy=give_up)
        logger.warning("%s ends in a torn append, ignoring it: position=%d bytes=%d", path, whole_bytes, len(tail))
    return SegmentBatches(memoryview(data)[:whole_bytes], bytes(tail))


def find_damage(path: Path, base_offset: int) -> str | None:
    """Return a sentence if a segment that a snapshot covers is damaged. Raises MetadataError."""
    data = _read(path)
    scan = BatchScan(base_offset)
    scan.feed(data, len(data))
    if scan.position == len(data):
        return None
    what = "and opening the log would drop the segments after it; a snapshot covers its records"
    return f"{_damaged(path, scan.position, what)}, so that it may be moved away, with its indexes"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise MetadataError(f"{path} cannot be read: {error}") from error


def _whole_bytes(path: Path, data: bytes, base_offset: int) -> int:
    """Return the size of the undamaged batches at the start. Raises MetadataError for a misplaced batch."""
    position, next_offset, epoch = 0, base_offset, _NO_EPOCH
    while True:
        try:
            batch = RecordBatch(data, position)
            batch.ensure_valid()
        except DecodeError:
            return position
        if batch.base_offset != next_offset or batch.partition_leader_epoch < epoch:
            raise _damaged(
                path,
                position,
                f"where a batch has offset {batch.base_offset} and leader epoch {batch.partition_leader_epoch} after "
                f"offset {next_offset - 1} and epoch {epoch}",
            )
        position, next_offset, epoch = position + batch.size_bytes, batch.next_offset, batch.partition_leader_epoch


def _has_whole_batch(tail: memoryview) -> bool:
    """Return whether a complete batch follows anywhere after the damaged one at the start of `tail`."""
    data = bytes(tail)
    magic_position = data.find(MAGIC_V2, MAGIC_POSITION + 1)
    while magic_position >= 0:
        try:
            RecordBatch(data, magic_position - MAGIC_POSITION).ensure_valid()
            return True
        except DecodeError:
            magic_position = data.find(MAGIC_V2, magic_position + 1)
    return False


def _is_of_full_length(tail: memoryview) -> bool:
    """Return whether `tail` is one damaged batch with exactly as many bytes as its length field requires."""
    return len(tail) > LOG_OVERHEAD and int.from_bytes(tail[8:LOG_OVERHEAD], "big") + LOG_OVERHEAD == len(tail)


def _damaged(path: Path, position: int, what: str, *, remedy: str = "") -> MetadataError:
    return MetadataError(f"{path} is damaged at position {position}, {what}", remedy=remedy)

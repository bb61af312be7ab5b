"""The whole batches of one segment of the metadata log, and whether what follows them may be given up.

Of the last segment one append may be unfinished: a batch that is cut off, one whose pages never reached the disk (its
CRC is wrong), or zeros. Opening the log drops it. Anything else is damage, and dropping what follows it would lose
topics: a batch that is wrong with whole ones behind it, or at the end of a segment that others follow, or at the end of
a log that was closed cleanly; and a batch out of its place. The CRC does not cover a batch's offset and leader epoch,
but Raft's log has no gaps and its epochs never go back, so that these are checked against the batch before.

A segment that a snapshot stands for is not replayed, but looked through all the same: the recovery of the log would
cut it at its damage and drop the segments behind it, and so would Kafka's.
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
    """A segment's whole batches, and what is left of an append that did not end."""

    whole: memoryview
    tail: bytes


def read_whole_batches(path: Path, base_offset: int, *, is_last: bool, was_closed: bool) -> SegmentBatches:
    """The segment's bytes; a torn append at their end is said. Raises MetadataError for one that is damaged.

    `was_closed`: the last stop was clean, so that no batch of full length can lack its pages.
    """
    data = _read(path)
    whole_bytes = _whole_bytes(path, data, base_offset)
    tail = memoryview(data)[whole_bytes:]
    if tail:
        cut = f"restore the file, or give up what follows by cutting it to {whole_bytes} bytes"
        give_up = f"{cut} and removing {path.parent.parent / CLEAN_SHUTDOWN_FILE}" if was_closed else cut
        if not is_last:
            raise _damaged(path, whole_bytes, "and later segments follow")
        if _has_whole_batch(tail):
            raise _damaged(path, whole_bytes, "and whole records follow", remedy=give_up)
        if was_closed and _is_of_full_length(tail):
            raise _damaged(path, whole_bytes, "although the last stop was clean", remedy=give_up)
        logger.warning(
            "%s ends in a torn append, which does not count: position=%d bytes=%d", path, whole_bytes, len(tail)
        )
    return SegmentBatches(memoryview(data)[:whole_bytes], bytes(tail))


def find_damage(path: Path, base_offset: int) -> str | None:
    """A sentence where a segment that a snapshot stands for is not whole from end to end. Raises MetadataError."""
    data = _read(path)
    scan = BatchScan(base_offset)
    scan.feed(data, len(data))
    if scan.position == len(data):
        return None
    what = "and opening the log would drop the segments behind it; a snapshot stands for what is in it"
    return f"{_damaged(path, scan.position, what)}, so that it may be moved away, with its indexes"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise MetadataError(f"{path} cannot be read: {error}") from error


def _whole_bytes(path: Path, data: bytes, base_offset: int) -> int:
    """Bytes of the whole, undamaged batches at the front. Raises MetadataError for one that is out of its place."""
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
                f"where a batch says offset {batch.base_offset} and leader epoch {batch.partition_leader_epoch} after "
                f"offset {next_offset - 1} and epoch {epoch}",
            )
        position, next_offset, epoch = position + batch.size_bytes, batch.next_offset, batch.partition_leader_epoch


def _has_whole_batch(tail: memoryview) -> bool:
    """Whether a whole batch lies behind the damaged one at the front of `tail`, wherever that one ends."""
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
    """Whether the damaged batch at the front of `tail` has all the bytes that its length says, and ends there."""
    return len(tail) > LOG_OVERHEAD and int.from_bytes(tail[8:LOG_OVERHEAD], "big") + LOG_OVERHEAD == len(tail)


def _damaged(path: Path, position: int, what: str, *, remedy: str = "") -> MetadataError:
    return MetadataError(f"{path} is damaged at position {position}, {what}", remedy=remedy)

"""Splitting a segment that holds more than its indexes can: offsets beyond int32 of its base, or bytes beyond 2 GiB.

No broker of today writes one, but the cleaner of old Kafka brokers did: it joined segments without a look at the span
of their offsets. Recovery finds it. A base offset is outside of its batch's CRC, so one flipped bit looks the same;
what follows tells them apart: after true batches the offsets go on rising up to the next segment.

The pieces are written as `.cleaned`, made durable, and become `.swap` from the last to the first: until the first one
has its new name, a `.cleaned` below every `.swap` makes the loader drop them all; from then on the loader finishes what
was begun. So the split itself only writes the pieces, and loading starts again with them.
Source: Kafka LocalLog.splitOverflowedSegment, LogLoader.retryOnOffsetOverflow.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.files.file_names import CLEANED_SUFFIX, LOG_SUFFIX, SWAP_SUFFIX, file_name
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.scan import first_offset_of, iter_headers, scan_segment
from barnabas.protocol.records.kernels.scan import BatchScan
from barnabas.protocol.records.kernels.scanned import ScanFault

logger = logging.getLogger(__name__)


class SegmentPiece(NamedTuple):
    """A part of a segment's file that can be a segment."""

    base_offset: int
    position: int
    size_bytes: int


class SegmentOverflowError(Exception):
    """A segment has to be split before it can be recovered."""

    def __init__(self, segment: LogSegment, pieces: Sequence[SegmentPiece]) -> None:
        super().__init__(f"{segment.log.path} holds more than its indexes can")
        self.segment = segment
        self.pieces = pieces


def plan_split(segment: LogSegment, next_base_offset: int | None) -> list[SegmentPiece]:
    """The pieces of an overflowed segment, which is followed by that at `next_base_offset` (None: by none).

    The first begins at the segment's own base, even if it is empty. Empty when what does not fit is no true batch: the
    rest of the file is not whole, the next segment begins below its end, or nothing at all follows it. Raises OSError.
    """
    pieces: list[SegmentPiece] = []
    base_offset, position = segment.base_offset, 0
    file, end = segment.log.handle(), segment.size_bytes
    while True:
        scan = BatchScan(base_offset)
        for _ in scan_segment(scan, file, end, origin=position):
            pass
        if scan.fault is not ScanFault.OVERFLOW:
            break
        if scan.position == 0 and pieces:
            return []
        pieces.append(SegmentPiece(base_offset, position, scan.position))
        position += scan.position
        base_offset = first_offset_of(file, *next(iter_headers(file, position, end)))
    pieces.append(SegmentPiece(base_offset, position, scan.position))
    if scan.fault is not None:
        return []
    if next_base_offset is None:
        is_lone_batch = next(iter_headers(file, position, end))[1].size_bytes == scan.position
        return [] if is_lone_batch else pieces
    return pieces if scan.next_offset <= next_base_offset else []


def split_segment(segment: LogSegment, pieces: Sequence[SegmentPiece]) -> None:
    """Write the pieces as finished `.swap` files beside the segment. Raises OSError."""
    logger.warning("splitting %s into %s segments: %s", segment.log.path, len(pieces), pieces)
    source = segment.log.handle()
    directory = Path(segment.log.path).parent
    modified_ns = os.stat(segment.log.path).st_mtime_ns
    for piece in pieces:
        path = directory / file_name(piece.base_offset, LOG_SUFFIX, CLEANED_SUFFIX)
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            copied = 0
            while copied < piece.size_bytes:
                copied += os.sendfile(target, source.fd, piece.position + copied, piece.size_bytes - copied)
            os.utime(target, ns=(modified_ns, modified_ns))
            os.fsync(target)
        finally:
            os.close(target)
    sync_directory(directory)
    for piece in reversed(pieces):
        name = file_name(piece.base_offset, LOG_SUFFIX)
        os.rename(directory / (name + CLEANED_SUFFIX), directory / (name + SWAP_SUFFIX))
        sync_directory(directory)

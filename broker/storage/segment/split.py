"""Splitting an overflowed segment: one with offsets beyond base + 2^31 - 1, or with more than 2 GiB.

No current broker writes one, but the cleaner of old Kafka brokers did: it merged segments without checking the range of
their offsets. Recovery detects it. A base offset is not covered by its batch's CRC, so a flipped bit looks the same;
the following batches tell the two apart: after valid batches the offsets keep rising up to the next segment.

The pieces are written as `.cleaned` files, synced, and renamed to `.swap` from the last to the first. Until the first
one is renamed, there is a `.cleaned` below every `.swap`, and the loader drops them all; after that the loader finishes
the split. So the split only writes the pieces, and loading starts again with them.
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
from barnabas.broker.storage.files.open_files import FileHandle
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.scan import first_offset_of, iter_headers, scan_segment
from barnabas.protocol.records.kernels.scan import BatchScan
from barnabas.protocol.records.kernels.scanned import ScanFault

logger = logging.getLogger(__name__)


class SegmentPiece(NamedTuple):
    """Part of a segment's file that fits into a segment of its own."""

    base_offset: int
    position: int
    size_bytes: int


class SegmentOverflowError(Exception):
    """The segment must be split before it can be recovered."""

    def __init__(self, segment: LogSegment, pieces: Sequence[SegmentPiece]) -> None:
        super().__init__(f"{segment.log.path} has more offsets or bytes than its indexes can address")
        self.segment = segment
        self.pieces = pieces


def plan_split(file: FileHandle, base_offset: int, end: int, next_base_offset: int | None) -> list[SegmentPiece]:
    """Return the pieces to split a segment into.

    `file`: its `.log` file, of `end` bytes; `base_offset`: its own; `next_base_offset`: the next segment's (None: it is
    the last). The first piece begins at the segment's own base offset, even if it is empty. Returns no pieces if the
    overflow is damage and not a valid batch: the rest of the file is not whole, it overlaps the next segment, or it is
    a single last batch. Raises OSError.
    """
    pieces: list[SegmentPiece] = []
    position = 0
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
    """Write the pieces as complete `.swap` files beside the segment. Raises OSError."""
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

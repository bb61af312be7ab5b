"""The names of a partition's files: `<base offset, 20 digits>.<kind>[.<stage>]`.

Kinds: log, index, timeindex, txnindex, snapshot. A stage is work in progress: `.cleaned` is being written, `.swap` is
complete and about to replace, `.deleted` is waiting for its removal. Source: Kafka LogFileUtils.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"

DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

SEGMENT_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
"""What belongs to one segment, and is renamed and removed with it."""


class FileKind(Enum):
    """What a partition's file holds; the value is the suffix."""

    LOG = LOG_SUFFIX
    OFFSET_INDEX = OFFSET_INDEX_SUFFIX
    TIME_INDEX = TIME_INDEX_SUFFIX
    TRANSACTION_INDEX = TRANSACTION_INDEX_SUFFIX
    SNAPSHOT = SNAPSHOT_SUFFIX


class ParsedFileName(NamedTuple):
    """`offset`: the segment's base offset, or the offset that a snapshot covers. `stage`: "" or one of the stages."""

    offset: int
    kind: FileKind
    stage: str


_OFFSET_DIGITS = 20
_ENDS = {
    kind.value + stage: (kind, stage)
    for kind in FileKind
    for stage in ("", DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX)
}


def file_name(offset: int, suffix: str, stage: str = "") -> str:
    """`file_name(109, LOG_SUFFIX)` is `00000000000000000109.log`."""
    return f"{offset:020d}{suffix}{stage}"


def parse_file_name(name: str) -> ParsedFileName | None:
    """The parts of a segment's or snapshot's file name; None for any other file (checkpoints, partition.metadata)."""
    end = _ENDS.get(name[_OFFSET_DIGITS:])
    digits = name[:_OFFSET_DIGITS]
    if end is None or not (digits.isascii() and digits.isdigit()):
        return None
    return ParsedFileName(int(digits), *end)

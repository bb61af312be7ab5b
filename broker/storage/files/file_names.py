"""The names of a partition's files: `<base offset, 20 digits>.<kind>[.<stage>]`.

Kinds: log, index, timeindex, txnindex, snapshot. A stage marks work in progress: a `.cleaned` file is being written, a
`.swap` file is complete and about to replace others, a `.deleted` file waits for its removal. Source: Kafka
LogFileUtils.
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
"""The files of one segment; they are renamed and removed together."""


class FileKind(Enum):
    """Kind of a file in a partition directory; the value is the suffix."""

    LOG = LOG_SUFFIX
    OFFSET_INDEX = OFFSET_INDEX_SUFFIX
    TIME_INDEX = TIME_INDEX_SUFFIX
    TRANSACTION_INDEX = TRANSACTION_INDEX_SUFFIX
    SNAPSHOT = SNAPSHOT_SUFFIX


class ParsedFileName(NamedTuple):
    """`offset` is the segment's base offset, or the end offset of a snapshot. `stage` is "" or one of the stages."""

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
    """Return a file's name: `file_name(109, LOG_SUFFIX)` is `00000000000000000109.log`."""
    return f"{offset:020d}{suffix}{stage}"


def parse_file_name(name: str) -> ParsedFileName | None:
    """Split the name of a segment's file or a snapshot; return None for other files, such as checkpoints."""
    end = _ENDS.get(name[_OFFSET_DIGITS:])
    digits = name[:_OFFSET_DIGITS]
    if end is None or not (digits.isascii() and digits.isdigit()):
        return None
    return ParsedFileName(int(digits), *end)

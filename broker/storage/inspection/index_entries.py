"""The entries of index files, as they lie there: nothing is opened for appends, nothing is believed.

The active segment's indexes have their maximum size, and so have those that a crash left: the unused room is zeros,
which is told apart from entries here. See offset_index and time_index for the formats, and for `.txnindex`:
    34 bytes a row: int16 version (0), int64 producer id, first offset, last offset, last stable offset
Source: Kafka OffsetIndex, TimeIndex, TransactionIndex, AbortedTxn.
"""

from __future__ import annotations

from pathlib import Path
from struct import Struct
from typing import Generic, NamedTuple, TypeVar

from barnabas.broker.storage.offset_index import OffsetPosition
from barnabas.broker.storage.time_index import TimestampOffset

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_TRANSACTION_ROW = Struct(">hqqqq")

assert _OFFSET_ENTRY.size == 8
assert _TIME_ENTRY.size == 12
TRANSACTION_ROW_BYTES = 34

assert _TRANSACTION_ROW.size == TRANSACTION_ROW_BYTES

Entry = TypeVar("Entry")


class AbortedTransaction(NamedTuple):
    """A row of a transaction index."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class IndexContent(NamedTuple, Generic[Entry]):
    """What a file holds: entries, then `unused_bytes` of zeros; `odd_bytes` at the end make no whole entry."""

    entries: list[Entry]
    used_bytes: int
    unused_bytes: int
    odd_bytes: int


def read_offset_index(path: Path, base_offset: int) -> IndexContent[OffsetPosition]:
    """Of a `.index` file. Raises OSError."""
    content, unused, odd = _split(path, _OFFSET_ENTRY.size)
    entries = [
        OffsetPosition(base_offset + relative, position) for relative, position in _OFFSET_ENTRY.iter_unpack(content)
    ]
    return IndexContent(entries, len(content), unused, odd)


def read_time_index(path: Path, base_offset: int) -> IndexContent[TimestampOffset]:
    """Of a `.timeindex` file. Raises OSError."""
    content, unused, odd = _split(path, _TIME_ENTRY.size)
    entries = [TimestampOffset(time, base_offset + relative) for time, relative in _TIME_ENTRY.iter_unpack(content)]
    return IndexContent(entries, len(content), unused, odd)


def read_transaction_index(path: Path) -> IndexContent[AbortedTransaction]:
    """Of a `.txnindex` file, which is never preallocated. Raises OSError."""
    content = path.read_bytes()
    odd = len(content) % _TRANSACTION_ROW.size
    rows = [AbortedTransaction(*row) for row in _TRANSACTION_ROW.iter_unpack(content[: len(content) - odd])]
    return IndexContent(rows, len(content) - odd, 0, odd)


def _split(path: Path, entry_size: int) -> tuple[bytes, int, int]:
    """The entries' bytes, how many bytes of zeros follow, and how many make no entry.

    An entry of zeros is none: the first batch is never indexed, so no position is 0. Only a file of one single entry is
    taken at its word: a record of the year 1970 can be in a time index.
    """
    content = path.read_bytes()
    odd = len(content) % entry_size
    whole = len(content) - odd
    if whole == entry_size and entry_size == _TIME_ENTRY.size:
        return content[:whole], 0, odd
    used = len(content[:whole].rstrip(b"\0"))
    used += -used % entry_size
    return content[:used], whole - used, odd

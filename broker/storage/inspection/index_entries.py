"""Raw entries of index files, read without opening an index and without any check.

The indexes of an active segment, and those left by a crash, have their maximum size; the unused space is zeros, which
are separated from entries here. See offset_index, time_index and transaction_index for the formats.
Source: Kafka OffsetIndex, TimeIndex, TransactionIndex.
"""

from __future__ import annotations

from pathlib import Path
from struct import Struct
from typing import Generic, NamedTuple, TypeVar

from barnabas.broker.storage.index.offset_index import OffsetPosition
from barnabas.broker.storage.index.time_index import TimestampOffset
from barnabas.broker.storage.index.transaction_index import ROW_BYTES, AbortedTxn, iter_rows

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")

assert _OFFSET_ENTRY.size == 8
assert _TIME_ENTRY.size == 12

Entry = TypeVar("Entry")


class IndexContent(NamedTuple, Generic[Entry]):
    """Content of a file: entries, then `unused_bytes` of zeros, then `odd_bytes`, less than an entry."""

    entries: list[Entry]
    used_bytes: int
    unused_bytes: int
    odd_bytes: int


def read_offset_index(path: Path, base_offset: int) -> IndexContent[OffsetPosition]:
    """Read a `.index` file. Raises OSError."""
    content, unused, odd = _split(path, _OFFSET_ENTRY.size)
    entries = [
        OffsetPosition(base_offset + relative, position) for relative, position in _OFFSET_ENTRY.iter_unpack(content)
    ]
    return IndexContent(entries, len(content), unused, odd)


def read_time_index(path: Path, base_offset: int) -> IndexContent[TimestampOffset]:
    """Read a `.timeindex` file. Raises OSError."""
    content, unused, odd = _split(path, _TIME_ENTRY.size)
    entries = [TimestampOffset(time, base_offset + relative) for time, relative in _TIME_ENTRY.iter_unpack(content)]
    return IndexContent(entries, len(content), unused, odd)


def read_transaction_index(path: Path) -> IndexContent[AbortedTxn]:
    """Read a `.txnindex` file, which is never preallocated. Raises OSError."""
    content = path.read_bytes()
    odd = len(content) % ROW_BYTES
    return IndexContent(list(iter_rows(content)), len(content) - odd, 0, odd)


def _split(path: Path, entry_size: int) -> tuple[bytes, int, int]:
    """Return the entries' bytes, the number of bytes of zeros after them, and of bytes left over at the end.

    An entry of zeros counts as unused: the first batch is never indexed, so no position is 0. The exception is a time
    index with a single entry, which can be for a record of 1970-01-01.
    """
    content = path.read_bytes()
    odd = len(content) % entry_size
    whole = len(content) - odd
    if whole == entry_size and entry_size == _TIME_ENTRY.size:
        return content[:whole], 0, odd
    used = len(content[:whole].rstrip(b"\0"))
    used += -used % entry_size
    return content[:used], whole - used, odd

"""Sparse time index of one segment: largest timestamp so far -> offset.

File <base_offset:020d>.timeindex, big-endian, no header, 12 bytes per entry:
    int64 timestamp         the segment's largest timestamp so far, strictly increasing
    int32 relative_offset   LAST offset of the batch that carries it - base_offset

Written with each offset entry, and once more at roll, close and recovery; only when the timestamp is greater than the
last entry's. So the last entry of a closed segment is its maximum. The last slot is reserved for the entry at roll: the
index counts as full one entry early. Source: Kafka TimeIndex.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.open_files import OpenFiles
from barnabas.broker.storage.index.abstract_index import AbstractIndex

_ENTRY = Struct(">qi")
_TIMESTAMP = Struct(">q")
_RELATIVE_OFFSET = Struct(">i")

assert _ENTRY.size == 12

NO_TIMESTAMP = -1


class TimestampOffset(NamedTuple):
    """A timestamp in ms (-1: none) and its offset."""

    timestamp: int
    offset: int


class TimeIndex(AbstractIndex):
    """Time index of one segment."""

    ENTRY_SIZE = 12

    __slots__ = ("last_offset", "last_timestamp")

    def __init__(self, path: str, base_offset: int, open_files: OpenFiles) -> None:
        super().__init__(path, base_offset, open_files)
        self.last_timestamp = NO_TIMESTAMP
        self.last_offset = base_offset

    @property
    def is_full(self) -> bool:
        """Whether only the slot reserved for the entry at roll is left."""
        return self.entries >= self.max_entries - 1

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry, after `prepare_append`, if the timestamp is above the last one's."""
        if timestamp <= self.last_timestamp:
            return
        entries = self.entries
        assert entries < self.max_entries, f"{self.path} is full"
        _ENTRY.pack_into(self._writable_map(), entries * 12, timestamp, offset - self.base_offset)
        self.last_timestamp = timestamp
        self.last_offset = offset
        self.entries = entries + 1

    def replace_closed(self, entries: bytes, largest: TimestampOffset) -> None:
        """Replace the file by these entries and a closing one for `largest`, if it is greater. Raises OSError."""
        if largest.timestamp > self.last_entry_of(entries).timestamp:
            entries += _ENTRY.pack(largest.timestamp, largest.offset - self.base_offset)
        self.replace(entries)

    def last_entry(self) -> TimestampOffset:
        """Return the last entry, or (-1, base offset) without one. Raises OSError."""
        if self.entries < 0:
            self._buffer()
        return TimestampOffset(self.last_timestamp, self.last_offset)

    def lookup(self, target_timestamp: int) -> TimestampOffset:
        """Return the last entry at or below the target, or (-1, base offset) below the first one. Raises OSError."""
        slot = self._floor_slot(_TIMESTAMP, 0, target_timestamp)
        return TimestampOffset(NO_TIMESTAMP, self.base_offset) if slot < 0 else self.entry(slot)

    def entry(self, slot: int) -> TimestampOffset:
        """Return entry number `slot`, from 0. Raises OSError."""
        timestamp, relative = _ENTRY.unpack_from(self._buffer(), slot * 12)
        return TimestampOffset(timestamp, self.base_offset + relative)

    def entries_below(self, offset: int) -> bytes:
        """Return the bytes of all entries below `offset`, for `replace_closed`. Raises OSError."""
        count = self._floor_slot(_RELATIVE_OFFSET, 8, offset - self.base_offset - 1) + 1
        return bytes(self._buffer()[: count * self.ENTRY_SIZE])

    def last_entry_of(self, entries: bytes) -> TimestampOffset:
        """Return the last of these entries, or (-1, base offset) without any."""
        if not entries:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        timestamp, relative = _ENTRY.unpack_from(entries, len(entries) - self.ENTRY_SIZE)
        return TimestampOffset(timestamp, self.base_offset + relative)

    def _load_last_entry(self) -> None:
        if self.entries > 0:
            self.last_timestamp, self.last_offset = self.entry(self.entries - 1)
        else:
            self.last_timestamp, self.last_offset = NO_TIMESTAMP, self.base_offset

    def _check_last_entry(self, log_size_bytes: int) -> None:
        if self.entries <= 0:
            return
        timestamp, offset = self.entry(self.entries - 1)
        first = self.entry(0)
        if offset < self.base_offset or log_size_bytes == 0:
            raise CorruptFileError(self.path, f"last entry ({timestamp}, {offset}) is not in the segment")
        if self.entries > 1 and (first.timestamp >= timestamp or first.offset > offset):
            raise CorruptFileError(self.path, f"first entry {first} is not below the last ({timestamp}, {offset})")

"""Sparse offset index of one segment: offset -> byte position in the .log file.

File <base_offset:020d>.index, big-endian, no header, 8 bytes per entry:
    int32 relative_offset   LAST offset of a batch - base_offset, strictly increasing
    int32 position          byte at which that batch STARTS in the .log file

One entry per index.interval.bytes of log, so a lookup lands at or before the target and the
caller scans forward. No checksum: after an unclean shutdown the file is rebuilt, which is
cheaper than proving it right. Source: Kafka OffsetIndex.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.open_files import OpenFiles
from barnabas.broker.storage.index.abstract_index import AbstractIndex

_ENTRY = Struct(">ii")
_OFFSET = Struct(">i")

assert _ENTRY.size == 8


class OffsetPosition(NamedTuple):
    """An offset, and a byte position in the segment's `.log` file."""

    offset: int
    position: int


class OffsetIndex(AbstractIndex):
    """Offset index of one segment."""

    ENTRY_SIZE = 8

    __slots__ = ("last_offset",)

    def __init__(self, path: str, base_offset: int, open_files: OpenFiles) -> None:
        super().__init__(path, base_offset, open_files)
        self.last_offset = base_offset

    @property
    def is_full(self) -> bool:
        """Whether there is no space for another entry."""
        return self.entries >= self.max_entries

    def append(self, offset: int, position: int) -> None:
        """Add an entry, after `prepare_append`. The offset must be above the last one."""
        entries = self.entries
        assert entries < self.max_entries, f"{self.path} is full"
        assert entries == 0 or offset > self.last_offset, f"{self.path}: {offset} is not above {self.last_offset}"
        _ENTRY.pack_into(self._writable_map(), entries * 8, offset - self.base_offset, position)
        self.last_offset = offset
        self.entries = entries + 1

    def lookup(self, target_offset: int) -> OffsetPosition:
        """Return the last entry at or below the target, or (base offset, 0) below the first one. Raises OSError."""
        slot = self._floor_slot(_OFFSET, 0, target_offset - self.base_offset)
        return OffsetPosition(self.base_offset, 0) if slot < 0 else self.entry(slot)

    def position_for(self, target_offset: int) -> int:
        """Return only the position of `lookup`. Raises OSError."""
        slot = self._floor_slot(_OFFSET, 0, target_offset - self.base_offset)
        if slot < 0:
            return 0
        position: int = _OFFSET.unpack_from(self._buffer(), slot * 8 + 4)[0]
        return position

    def offset_from_position(self, position: int) -> int | None:
        """Return the offset of the first entry at or after a file position; None after the last. Raises OSError."""
        slot = self._floor_slot(_OFFSET, 4, position - 1) + 1
        return self.entry(slot).offset if slot < self.entries else None

    def entry(self, slot: int) -> OffsetPosition:
        """Return entry number `slot`, from 0. Raises OSError."""
        relative, position = _ENTRY.unpack_from(self._buffer(), slot * 8)
        return OffsetPosition(self.base_offset + relative, position)

    def entries_below(self, offset: int) -> bytes:
        """Return the bytes of all entries below `offset`, for `replace`. Raises OSError."""
        count = self._floor_slot(_OFFSET, 0, offset - self.base_offset - 1) + 1
        return bytes(self._buffer()[: count * self.ENTRY_SIZE])

    def _load_last_entry(self) -> None:
        self.last_offset = self.entry(self.entries - 1).offset if self.entries > 0 else self.base_offset

    def _check_last_entry(self, log_size_bytes: int) -> None:
        if self.entries <= 0:
            return
        offset, position = self.entry(self.entries - 1)
        if offset < self.base_offset or not 0 < position < log_size_bytes:
            raise CorruptFileError(
                self.path, f"last entry ({offset}, {position}) is not in a segment of {log_size_bytes} bytes"
            )
        first = self.entry(0)
        if self.entries > 1 and (first.offset >= offset or first.position >= position):
            raise CorruptFileError(self.path, f"first entry {first} is not below the last ({offset}, {position})")

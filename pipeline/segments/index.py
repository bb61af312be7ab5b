"""Positions in a segment file from its indexes and batch headers: lookups, its end, and where it can be split.

Indexes are hints, as in Kafka: an entry is used only if a batch really begins at its position and ends at its offset.
So a wrong, torn or missing index costs only time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from barnabas.broker.storage.files.file_names import FileKind
from barnabas.pipeline.segments.files import Entry, FileSystem, OpenFile, open_even_deleted, read_all
from barnabas.pipeline.segments.walk import batches_from
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.kernels.kernel import find_batch
from barnabas.protocol.records.layout import HEADER_SIZE, LOG_OVERHEAD, MAGIC_POSITION, MAGIC_V2

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")


class SegmentEnd(NamedTuple):
    """The `offset` and `position` after the last whole batch, and the `fault` that follows it, if any."""

    offset: int
    position: int
    fault: str | None


@dataclass(slots=True)
class SegmentFile:
    """One segment: `path` and `size_bytes` of its `.log`, and its indexes, which are read at first use.

    It may be deleted meanwhile. Then it has no hints and no batches, and the task that reads it reports the loss.
    """

    system: FileSystem
    path: str
    base_offset: int
    size_bytes: int
    neighbours: dict[FileKind, Entry] = field(default_factory=dict)
    _entries: list[tuple[int, int]] | None = None

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(last offset of a batch, its position), up to the first entry that does not rise or is outside the file."""
        if self._entries is None:
            self._entries = list(self._read_entries())
        return self._entries

    def position_for(self, offset: int) -> int:
        """Return a position at or before the batch that contains `offset`. Raises OSError."""
        slot = bisect_right(self.entries, offset, key=lambda entry: entry[0]) - 1
        return self._proven(slot)

    def position_for_time(self, timestamp: int) -> int:
        """Return a position at or before the first batch that reaches `timestamp` (ms). Raises OSError."""
        found = self.base_offset
        for time, offset in self._times():
            if time >= timestamp:
                break
            found = offset
        return self.position_for(found)

    def max_timestamp(self) -> int | None:
        """Return the largest timestamp (ms), the last entry of a closed segment's time index. Raises OSError."""
        times = self._times()
        return times[-1][0] if times else None

    def _times(self) -> list[tuple[int, int]]:
        """Return (largest timestamp so far, last offset of its batch), up to the first entry that does not rise."""
        entry = self.neighbours.get(FileKind.TIME_INDEX)
        if entry is None:
            return []
        content = _hints(self.system, entry)
        found: list[tuple[int, int]] = []
        for time, relative in _TIME_ENTRY.iter_unpack(content[: len(content) - len(content) % _TIME_ENTRY.size]):
            if relative < 0 or (found and (time <= found[-1][0] or self.base_offset + relative < found[-1][1])):
                break
            found.append((time, self.base_offset + relative))
        return found

    def cuts(self, every_bytes: int) -> list[tuple[int, int]]:
        """Return (position, base offset) of batches about `every_bytes` apart, from the first one on. Raises OSError.

        The first offset is the segment's base offset; compaction may have removed the record itself.
        """
        found = [(0, self.base_offset)]
        positions = [position for _, position in self.entries]
        if not positions:
            return found
        try:
            file = open_even_deleted(self.system, self.path)
        except FileNotFoundError:
            return found
        try:
            while True:
                slot = bisect_left(positions, found[-1][0] + every_bytes)
                if slot >= len(positions) or self.size_bytes - positions[slot] < every_bytes // 2:
                    return found
                base_offset = self._begins(file, *self.entries[slot])
                if base_offset is None:
                    return found
                found.append((positions[slot], base_offset))
        finally:
            file.close()

    def first_entry_behind(self, position: int) -> int | None:
        """Return the position of the first indexed batch after `position`, or None. Raises OSError."""
        positions = [entry[1] for entry in self.entries]
        file = open_even_deleted(self.system, self.path)
        try:
            for slot in range(bisect_right(positions, position), len(positions)):
                if self._begins(file, *self.entries[slot]) is not None:
                    return positions[slot]
            return None
        finally:
            file.close()

    def end(self) -> SegmentEnd:
        """Find the end of the whole batches by headers after the last index entry, without CRCs. Raises OSError."""
        file = self.system.open(self.path)
        try:
            offset, position = self._walk_to_end(file)
            return SegmentEnd(offset, position, self._tail_fault(file, position))
        finally:
            file.close()

    def _walk_to_end(self, file: OpenFile) -> tuple[int, int]:
        position = self._proven(len(self.entries) - 1)
        end = self.base_offset
        for data in batches_from(file, self.size_bytes, position, -1):
            end = max(end, find_batch(data, 0, -1)[2] + 1)
            position += len(data)
        return end, position

    def batches(self, position: int, least: int) -> Iterator[memoryview]:
        """See batches_from. A deleted file has no batches. Raises OSError."""
        try:
            file = open_even_deleted(self.system, self.path)
        except FileNotFoundError:
            return
        try:
            yield from batches_from(file, self.size_bytes, position, least)
        finally:
            file.close()

    def _tail_fault(self, file: OpenFile, position: int) -> str | None:
        """Describe damage after the last whole batch. Preallocated zeros and a batch cut short are not damage."""
        left = self.size_bytes - position
        head = memoryview(bytearray(min(left, HEADER_SIZE)))
        file.read_into(head, position)
        if left <= MAGIC_POSITION or not any(head):
            return None
        size = int.from_bytes(head[8:12], "big", signed=True) + LOG_OVERHEAD
        if head[MAGIC_POSITION] <= MAGIC_V2 and size > left and self.first_entry_behind(position) is None:
            return None
        return f"{self.path}, position {position}: no batch begins here, {left} bytes are left"

    def _read_entries(self) -> list[tuple[int, int]]:
        entry = self.neighbours.get(FileKind.OFFSET_INDEX)
        if entry is None:
            return []
        content = _hints(self.system, entry)
        found: list[tuple[int, int]] = []
        before = (-1, 0)
        for relative, position in _OFFSET_ENTRY.iter_unpack(content[: len(content) - len(content) % 8]):
            if relative <= before[0] or not before[1] < position < self.size_bytes:
                break
            found.append((self.base_offset + relative, position))
            before = (relative, position)
        return found

    def _proven(self, slot: int) -> int:
        """Return the position of the last entry up to `slot` at which a batch really begins, or 0."""
        if slot < 0:
            return 0
        try:
            file = open_even_deleted(self.system, self.path)
        except FileNotFoundError:
            return 0
        try:
            for offset, position in reversed(self.entries[max(0, slot - 8) : slot + 1]):
                if self._begins(file, offset, position) is not None:
                    return position
            return 0
        finally:
            file.close()

    def _begins(self, file: OpenFile, offset: int, position: int) -> int | None:
        """Return the base offset of the batch that begins at `position` and ends at `offset`, or None."""
        head = memoryview(bytearray(HEADER_SIZE))
        filled = file.read_into(head, position)
        try:
            _, base_offset, last_offset, size = find_batch(head[:filled], 0, -1)
        except CorruptRecordError:
            return None
        return base_offset if size and last_offset == offset and position + size <= self.size_bytes else None


def _hints(system: FileSystem, entry: Entry) -> bytes:
    """Read an index file; a deleted one is empty. Raises OSError."""
    try:
        return read_all(system, entry.path, entry.size_bytes)
    except FileNotFoundError:
        return b""

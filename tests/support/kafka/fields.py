"""Reads responses field by field where kio refuses them: refused token requests are answered with timestamps of -1."""

from __future__ import annotations

import struct


class Fields:
    """The fields of one response frame, read one after the other."""

    def __init__(self, frame: bytes, *, is_flexible: bool) -> None:
        self._frame = frame
        self._is_flexible = is_flexible
        self._at = 5 if is_flexible else 4  # the correlation id, and a flexible header's empty tags

    def int16(self) -> int:
        """Read a number of 2 bytes."""
        return self._number(">h")

    def int32(self) -> int:
        """Read a number of 4 bytes."""
        return self._number(">i")

    def int64(self) -> int:
        """Read a number of 8 bytes."""
        return self._number(">q")

    def text(self) -> str:
        """Read a string."""
        return self._sized(self._size() if self._is_flexible else self.int16()).decode()

    def data(self) -> bytes:
        """Read a byte string."""
        return self._sized(self._size() if self._is_flexible else self.int32())

    def count(self) -> int:
        """Read the size of a list."""
        return self._size() if self._is_flexible else self.int32()

    def end_of_structure(self) -> None:
        """Skip empty tags."""
        assert not self._is_flexible or self._sized(1) == b"\0"

    def _size(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self._sized(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value - 1
            shift += 7

    def _number(self, form: str) -> int:
        number: int = struct.unpack(form, self._sized(struct.calcsize(form)))[0]
        return number

    def _sized(self, size: int) -> bytes:
        found = self._frame[self._at : self._at + size]
        assert len(found) == size
        self._at += size
        return found

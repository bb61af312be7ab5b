"""The body of a response with records between its fields, which are sent from where they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias


class RecordsPart(Protocol):
    """Record bytes that are sent after the bytes before them."""

    @property
    def size(self) -> int:
        """Bytes to send."""
        ...


class RecordBytes(bytes):
    """Record batches in memory, as a part of an answer."""

    __slots__ = ()

    @property
    def size(self) -> int:
        """Bytes to send."""
        return len(self)


NO_RECORDS: Final[RecordsPart] = RecordBytes()

Piece: TypeAlias = bytes | RecordsPart
"""Bytes, or records that are sent from their file."""


class Pieces(NamedTuple):
    """`head`, then `parts` in order: `size` bytes in all."""

    head: bytes
    parts: Sequence[Piece]
    size: int


def pieces_of(parts: list[Any], out: bytearray, size: int) -> Pieces:
    """Return the body of `parts`, of `size` bytes, and then `out`."""
    rest = bytes(out)
    if not parts:
        return Pieces(rest, parts, len(rest))
    if rest:
        parts.append(rest)
    return Pieces(parts.pop(0), parts, size + len(rest))

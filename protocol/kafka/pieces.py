"""The body of a response with record batches between its fields: that of Fetch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from barnabas.protocol.messages.data.fetch import RecordsPart

Piece: TypeAlias = bytes | RecordsPart
"""Bytes, or records that are sent from their file."""


class Pieces(NamedTuple):
    """`head`, then `parts` in order: `size` bytes in all."""

    head: bytes
    parts: Sequence[Piece]
    size: int

"""The body of an answer that has record batches between its fields, as Fetch's has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from barnabas.protocol.messages.data.fetch import RecordsPart

Piece: TypeAlias = bytes | RecordsPart
"""Bytes, or records that are sent from where they lie."""


class Pieces(NamedTuple):
    """`head`, then `parts` in their order: `size` bytes in all."""

    head: bytes
    parts: Sequence[Piece]
    size: int

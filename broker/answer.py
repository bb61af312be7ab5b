"""What a connection sends: the bytes of a header, then slices of segment files."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.storage.file_records import FileSlice


class Answer(NamedTuple):
    """`parts` are sent behind `header`, in order, as they lie on disk."""

    header: bytes
    parts: Sequence[FileSlice] = ()


class CloseConnection(Exception):
    """A request whose only possible answer is to close its connection (acks=0 and an error); the text says why."""

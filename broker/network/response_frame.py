"""What a connection sends: the bytes of a header, then slices of segment files and bytes between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.storage.files.file_records import FileSlice


class ResponseFrame(NamedTuple):
    """`parts` are sent behind `header`, in order: slices as they lie on disk, bytes as they are."""

    header: bytes
    parts: Sequence[bytes | FileSlice] = ()


class CloseConnection(Exception):
    """A request whose only possible answer is to close its connection (acks=0 and an error); the text says why."""

"""A response frame as a connection sends it: header bytes, then slices of segment files and bytes between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.storage.files.file_records import FileSlice


class ResponseFrame(NamedTuple):
    """`parts` are sent after `header`, in order: file slices as stored, bytes as they are."""

    header: bytes
    parts: Sequence[bytes | FileSlice] = ()


class CloseConnection(Exception):
    """Raised for a request that can only be answered by closing its connection (acks=0 and an error); says why.

    `reason` becomes a label of the closed-connections metric.
    """

    def __init__(self, text: str, reason: str = "refused") -> None:
        super().__init__(text)
        self.reason = reason

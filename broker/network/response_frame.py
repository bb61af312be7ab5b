"""A response frame as a connection sends it: header bytes, then slices of segment files and bytes between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.quotas.session_quota import SessionQuota
    from barnabas.broker.storage.files.file_records import FileSlice
    from barnabas.protocol.dialects import Dialect, Header

_new_tuple = tuple.__new__


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


LateResponse = ResponseFrame | CloseConnection | None
"""Result of a deferred request: a frame, no response (None), or the end of its connection."""


def encoded(dialect: Dialect, header: Header, response: Any) -> ResponseFrame | None:
    """Return the frame of a response; None stays None."""
    if response is None:
        return None
    response_frame: ResponseFrame = _new_tuple(ResponseFrame, dialect.encode_response(header, response))
    return response_frame


def throttled(
    quota: SessionQuota, dialect: Dialect, header: Header, response_frame: ResponseFrame | None
) -> ResponseFrame | None:
    """Count a served request, mute its connection if a quota is exceeded, and return the response that says so."""
    throttle_ms = quota.finish(header.api, is_answered=response_frame is not None)
    if throttle_ms == 0 or response_frame is None:
        return response_frame
    return ResponseFrame(dialect.with_throttle(header, response_frame.header, throttle_ms), response_frame.parts)

"""The native dialect for the broker's dispatch.

A frame is read in two steps, because they fail differently. After a FrameError of `read_request` the connection must be
closed. Once the header is known, every fault is answered, because the frame determines where the next one starts: an
unknown API or version with UNSUPPORTED_VERSION, a body that does not decode with INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.fetch import FetchResponse
from barnabas.protocol.native.bodies import SERVED, VERSION
from barnabas.protocol.native.fields import body_of
from barnabas.protocol.native.frame import HeaderTooLargeError, RequestHeader, pack_header, read_request, with_field
from barnabas.protocol.wire.pieces import RecordsPart

__all__ = [
    "decode_body",
    "encode_error",
    "encode_response",
    "is_supported",
    "read_request",
    "refuse_unknown",
    "with_throttle",
]

THROTTLE_FIELD: Final = "throttle_ms"
"""In the body of any response: the client waits this long before its next request."""

_NO_PARTS: Sequence[RecordsPart] = ()


def is_supported(header: RequestHeader, *, unstable: bool = False) -> bool:
    """Return whether the request's API and version are served; otherwise answer UNSUPPORTED_VERSION.

    No version is unstable.
    """
    return header.version == VERSION and header.api in SERVED


def refuse_unknown(header: RequestHeader) -> tuple[bytes, Sequence[RecordsPart]]:
    """Return the answer to an unsupported API or version."""
    message = f"api {header.api} version {header.version} is not served here; hello lists what is"
    return encode_error(header, None, ErrorCode.UNSUPPORTED_VERSION, message)


def decode_body(header: RequestHeader) -> Any:
    """Return the neutral request. Raises BrokerError INVALID_REQUEST, naming the field."""
    try:
        return _decoded(header)
    except DecodeError as error:
        raise BrokerError(ErrorCode.INVALID_REQUEST, str(error)) from error


def encode_response(header: RequestHeader, response: Any) -> tuple[bytes, Sequence[RecordsPart]]:
    """Return the frame that answers `header` up to its records, and the records.

    Raises BrokerError INVALID_REQUEST when the answer does not fit one frame.
    """
    parts = _NO_PARTS
    if type(response) is FetchResponse:
        parts = [each.records for topic in response.topics for each in topic.partitions if each.records.size]
    body = SERVED[header.api].encode_response(response)
    fields = [header.api, header.version, header.correlation_id, 0, body]
    try:
        return pack_header(fields, sum([part.size for part in parts])), parts
    except HeaderTooLargeError as error:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"the answer does not fit a frame, ask for less at a time: {error}"
        ) from error


def encode_error(
    header: RequestHeader, request: Any, code: ErrorCode, message: str
) -> tuple[bytes, Sequence[RecordsPart]]:
    """Return the frame that refuses `header` as a whole."""
    fields = [header.api, header.version, header.correlation_id, int(code), {"message": message}]
    return pack_header(fields, 0), _NO_PARTS


def with_throttle(header: RequestHeader, frame: bytes, throttle_ms: int) -> bytes:
    """Return the frame that answers `header`, up to its records, with `throttle_ms` in its body if there is room."""
    try:
        return with_field(frame, THROTTLE_FIELD, throttle_ms)
    except HeaderTooLargeError:
        return frame


def _decoded(header: RequestHeader) -> Any:
    body, records = body_of(header.body, "body"), header.records
    decode_request = SERVED[header.api].decode_request
    if header.api == ApiKey.PRODUCE:
        return decode_request(body, records)
    if len(records):
        raise DecodeError(f"{len(records)} bytes follow the header of an API that has no records")
    return decode_request(body)

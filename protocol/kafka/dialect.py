"""Kafka's protocol as the broker's dispatcher uses it: codec.py's functions and the refusals.

As in Kafka, a request that cannot be answered closes the connection with one line in the log: an API or a version that
is not served (except ApiVersions, which is answered in version 0 with UNSUPPORTED_VERSION and its supported range, so
that a newer client can retry), a header or a body that does not decode. Every other failure becomes the API's own error
response. Source: Kafka's ApiVersionsRequest.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import FrameError
from barnabas.protocol.kafka import throttle
from barnabas.protocol.kafka.apis import route_of
from barnabas.protocol.kafka.codec import (
    RequestHeader,
    decode_body,
    encode_error,
    encode_response,
    is_supported,
    read_request,
    response_frame,
)
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.pieces import Piece

__all__ = [
    "decode_body",
    "encode_error",
    "encode_response",
    "is_supported",
    "read_request",
    "refuse_unknown",
    "with_throttle",
]


def refuse_unknown(header: RequestHeader) -> tuple[bytes, Sequence[Piece]]:
    """Return the response to an unsupported API or version. Raises FrameError for every API but ApiVersions."""
    if header.api != ApiKey.API_VERSIONS:
        raise FrameError(f"api {header.api} version {header.version} is not served here")
    route = route_of(ApiKey.API_VERSIONS, 0)
    assert route is not None
    request = route.decode(0, memoryview(b""))
    return response_frame(header.correlation_id, route, route.refusal(request, ErrorCode.UNSUPPORTED_VERSION, ""))


def with_throttle(header: RequestHeader, frame: bytes, throttle_ms: int) -> bytes:
    """Return a response frame with throttle_time_ms, if this version of the API has that field."""
    route = header.route
    assert route is not None
    return throttle.with_throttle(
        header.api, header.version, frame, throttle_ms, is_flexible=route.response_is_flexible
    )

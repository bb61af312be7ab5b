"""Requests and responses of Kafka's protocol as frames, the broker's side.

    request   := int16 api_key | int16 api_version | int32 correlation_id | nullable string client_id
                 | tagged fields (header v2 only) | body
    response  := int32 size | int32 correlation_id | tagged fields (header v1 only) | body

All integers big-endian; `client_id` is an int16 length (-1: null) and UTF-8, also in header v2. The header
version of each API version follows from apis.py. Source: Kafka's RequestHeader, RequestContext.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from barnabas.protocol import varint
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.framing import FrameError
from barnabas.protocol.kafka.apis import Route, route_of
from barnabas.protocol.wire.pieces import Piece

_FIXED = struct.Struct(">hhih")
_FIXED_SIZE = 10
_RESPONSE_V0 = struct.Struct(">ii")
_RESPONSE_V1 = struct.Struct(">iiB")
_NO_PARTS: Sequence[Piece] = ()
_NO_BODY = memoryview(b"")

_unpack_fixed = _FIXED.unpack_from
_new_tuple = tuple.__new__


class RequestHeader(NamedTuple):
    """A request whose body, a view of the frame, is not decoded yet. `route` is None for an unknown API or version."""

    api: int
    version: int
    correlation_id: int
    client_id: str | None
    route: Route | None
    body: memoryview

    def without_frame(self) -> RequestHeader:
        """Return the header without views of the frame; enough to encode a response."""
        return self._replace(body=_NO_BODY)


def read_request(frame: memoryview) -> RequestHeader:
    """Read the header of a request's frame (without its size field). Raises FrameError."""
    try:
        api, version, correlation_id, length = _unpack_fixed(frame)
    except struct.error:
        raise FrameError(f"a request of {len(frame)} bytes is too short for a header") from None
    position = _FIXED_SIZE
    client_id = None
    if length >= 0:
        position += length
        try:
            client_id = str(frame[_FIXED_SIZE:position], "utf-8")
        except UnicodeDecodeError as error:
            raise FrameError(f"client_id is not UTF-8: {error}") from error
        if position > len(frame):
            raise FrameError(f"client_id of {length} bytes is longer than its frame of {len(frame)} bytes")
    route = route_of(api, version)
    if route is not None and route.is_flexible:
        position = _after_tagged_fields(frame, position)
    # Not RequestHeader(...): the constructor of a NamedTuple is a Python function, and this is once per request.
    header: RequestHeader = _new_tuple(
        RequestHeader, (api, version, correlation_id, client_id, route, frame[position:])
    )
    return header


def is_supported(header: RequestHeader, *, unstable: bool = False) -> bool:
    """Return whether `decode_body` handles this API and version; `unstable`: also one that Kafka holds back."""
    route = header.route
    return route is not None and (unstable or not route.is_unstable)


def decode_body(header: RequestHeader) -> Any:
    """Return the neutral request.

    Raises FrameError (close the connection), BrokerError (answer with `encode_error`).
    """
    route = header.route
    assert route is not None
    body = header.body
    if len(body) > route.api.max_body_bytes:
        raise FrameError(
            f"a {route.api.key.label} request of {len(body)} bytes is above the {route.api.max_body_bytes} that are"
            " decoded"
        )
    try:
        return route.decode(header.version, body)
    except FrameError:
        raise
    except DecodeError as error:
        raise FrameError(f"{route.api.key.label} v{header.version} does not decode: {error}") from error


def encode_response(header: RequestHeader, response: Any) -> tuple[bytes, Sequence[Piece]]:
    """Return the frame that answers `header`: its first bytes, and the pieces that follow."""
    route = header.route
    assert route is not None
    return response_frame(header.correlation_id, route, route.encode(response))


def encode_error(header: RequestHeader, request: Any, code: ErrorCode, message: str) -> tuple[bytes, Sequence[Piece]]:
    """Return the frame that refuses `request` (None: not decoded) as a whole. Raises FrameError: close instead."""
    route = header.route
    assert route is not None
    return response_frame(header.correlation_id, route, route.refusal(request, code, message))


def response_frame(correlation_id: int, route: Route, body: Any) -> tuple[bytes, Sequence[Piece]]:
    """Return the frame of a response's body (bytes or Pieces): its first bytes, and the pieces that follow."""
    parts = _NO_PARTS
    if type(body) is bytes:
        size = len(body)
    else:
        body, parts, size = body
    if route.response_is_flexible:
        return _RESPONSE_V1.pack(size + 5, correlation_id, 0) + body, parts
    return _RESPONSE_V0.pack(size + 4, correlation_id) + body, parts


def _after_tagged_fields(frame: memoryview, position: int) -> int:
    """Return the position after a header's tagged fields."""
    try:
        if frame[position] == 0:
            return position + 1
        count, position = varint.read_unsigned32(frame, position)
        for _ in range(count):  # ends at the first missing byte, however large the count
            _, position = varint.read_unsigned32(frame, position)
            size, position = varint.read_unsigned32(frame, position)
            position += size
            if position > len(frame):
                raise FrameError("a tagged field of the header is longer than its frame")
    except IndexError:
        raise FrameError("the frame ends within its header") from None
    except FrameError:
        raise
    except DecodeError as error:
        raise FrameError(f"the header's tagged fields: {error}") from error
    return position

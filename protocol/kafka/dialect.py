"""Requests and answers of Kafka's protocol as frames: the broker's side of it.

    request   := int16 api_key | int16 api_version | int32 correlation_id | nullable string client_id
                 | tagged fields (header v2 only) | body
    response  := int32 size | int32 correlation_id | tagged fields (header v1 only) | body

All integers big-endian; `client_id` is an int16 length (-1: null) and UTF-8, in header v2 as well. Which header a
version has is said in apis.py.

What cannot be answered closes the connection with one line in the log, as Kafka does it: an API or a version that is
not served (but ApiVersions, which is answered in version 0 with UNSUPPORTED_VERSION and its own range, so that a client
from the future can ask again), a header or a body that does not decode. Every other failure becomes the API's own error
answer. Source: Kafka's RequestHeader, RequestContext, ApiVersionsRequest.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from barnabas.protocol import varint
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.framing import FrameError
from barnabas.protocol.kafka.apis import ROUTES, Route
from barnabas.protocol.kafka.pieces import Piece
from barnabas.protocol.messages.api_key import ApiKey

_FIXED = struct.Struct(">hhih")
_FIXED_SIZE = 10
_RESPONSE_V0 = struct.Struct(">ii")
_RESPONSE_V1 = struct.Struct(">iiB")
_NO_PARTS: Sequence[Piece] = ()
_NO_BODY = memoryview(b"")

_unpack_fixed = _FIXED.unpack_from
_new_tuple = tuple.__new__


class RequestHeader(NamedTuple):
    """A request whose body, a view of the frame, is not decoded yet. `route` is None for what is not served."""

    api: int
    version: int
    correlation_id: int
    client_id: str | None
    route: Route | None
    body: memoryview

    def without_frame(self) -> RequestHeader:
        """What an answer needs of it, once the frame has gone."""
        return self._replace(body=_NO_BODY)


def read_request(frame: memoryview) -> RequestHeader:
    """The header of a request's frame (without its size field). Raises FrameError."""
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
    route = ROUTES.get((api, version))
    if route is not None and route.is_flexible:
        position = _after_tagged_fields(frame, position)
    # Not RequestHeader(...): the constructor of a NamedTuple is a Python function, and this is once per request.
    header: RequestHeader = _new_tuple(
        RequestHeader, (api, version, correlation_id, client_id, route, frame[position:])
    )
    return header


def is_supported(header: RequestHeader) -> bool:
    """Whether `decode_body` knows the request's api in that version."""
    return header.route is not None


def refuse_unknown(header: RequestHeader) -> tuple[bytes, Sequence[Piece]]:
    """The answer to what is not supported. Raises FrameError for all but ApiVersions."""
    if header.api != ApiKey.API_VERSIONS:
        raise FrameError(f"api {header.api} version {header.version} is not served here")
    route = ROUTES[ApiKey.API_VERSIONS, 0]
    body = route.codec.encode_error(0, None, ErrorCode.UNSUPPORTED_VERSION, "")
    return _frame(header.correlation_id, route, body)


def decode_body(header: RequestHeader) -> Any:
    """The neutral request.

    Raises FrameError (nobody can be answered), BrokerError (answer with `encode_error`).
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
        return route.codec.decode_request(header.version, body)
    except FrameError:
        raise
    except DecodeError as error:
        raise FrameError(f"{route.api.key.label} v{header.version} does not decode: {error}") from error


def encode_response(header: RequestHeader, response: Any) -> tuple[bytes, Sequence[Piece]]:
    """The frame that answers `header`: its first bytes, and what follows them."""
    route = header.route
    assert route is not None
    body = route.codec.encode_response(header.version, response)
    return _frame(header.correlation_id, route, body)


def encode_error(header: RequestHeader, request: Any, code: ErrorCode, message: str) -> tuple[bytes, Sequence[Piece]]:
    """The frame that refuses `request` (None: it was never decoded) as a whole. Raises FrameError: close instead."""
    route = header.route
    assert route is not None
    return _frame(header.correlation_id, route, route.codec.encode_error(header.version, request, code, message))


def _frame(correlation_id: int, route: Route, body: Any) -> tuple[bytes, Sequence[Piece]]:
    parts = _NO_PARTS
    if type(body) is bytes:
        size = len(body)
    else:
        body, parts, size = body
    if route.response_is_flexible:
        return _RESPONSE_V1.pack(size + 5, correlation_id, 0) + body, parts
    return _RESPONSE_V0.pack(size + 4, correlation_id) + body, parts


def _after_tagged_fields(frame: memoryview, position: int) -> int:
    """The position behind a header's tagged fields; none is one zero byte."""
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

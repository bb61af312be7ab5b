"""Requests and answers of the native dialect as frames, in both directions.

A frame is read in two steps, because they fail differently: `read_request` raises FrameError, after which the
connection must be closed; once the header is known the request can be answered, so a DecodeError of `decode_body`
becomes an answer with error 42 and the connection continues.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.framing import SIZE_PREFIX, FrameError
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.produce import ProduceRequest
from barnabas.protocol.native.apis import NATIVE_APIS, VERSION, native_api
from barnabas.protocol.native.fields import INT16, INT32, body_of, error_code, integer
from barnabas.protocol.native.frame import (
    KEYS,
    MAX_REQUEST_HEADER_BYTES,
    NUMBERS,
    HeaderTooLargeError,
    ensure_few_values,
    pack_header,
    split_frame,
)

MAX_CLIENT_ID_CHARS = 8_191
"""A group keeps its members' client ids in strings of at most 32,767 bytes, and a character has up to four."""

THROTTLE_FIELD = "throttle_ms"
"""In the body of any response: the client waits this long before its next request."""

_SIZE = struct.Struct(">i")

_new_tuple = tuple.__new__


class RequestHeader(NamedTuple):
    """A request whose body is not decoded yet. `records` is a view of the frame."""

    api: int
    version: int
    correlation_id: int
    client_id: str | None
    body: Any
    records: memoryview

    def without_frame(self) -> RequestHeader:
        """Return the header without views of the frame, for an answer after the frame's buffer is reused."""
        return self._replace(body=None, records=memoryview(b""))


class ResponseHeader(NamedTuple):
    """An answer whose body is not decoded yet. `message` explains `error`, if any.

    `throttle_ms`: the client waits this long before its next request.
    """

    api: int
    version: int
    correlation_id: int
    error: ErrorCode
    message: str | None
    body: Any
    records: memoryview
    throttle_ms: int = 0


def read_request(frame: memoryview) -> RequestHeader:
    """Read the header of a request's frame (without its size field). Raises FrameError: close the connection."""
    header, records = split_frame(frame, MAX_REQUEST_HEADER_BYTES)
    ensure_few_values(header, len(frame) - len(records))
    api, version, correlation_id, client_id, _ = header
    if not (type(api) is int and type(version) is int and type(correlation_id) is int):
        raise FrameError("header does not begin with the integers api, version, correlation_id")
    if client_id is not None and type(client_id) is not str:
        raise FrameError("client_id is neither a string nor nil")
    if client_id is not None and len(client_id) > MAX_CLIENT_ID_CHARS:
        raise FrameError(f"client_id has {len(client_id)} characters, more than {MAX_CLIENT_ID_CHARS}")
    header[0] = KEYS.get(api, api)
    header.append(records)
    # Not RequestHeader(...): the constructor of a NamedTuple is a Python function, and this is once per request.
    result: RequestHeader = _new_tuple(RequestHeader, header)
    return result


def is_supported(header: RequestHeader, *, unstable: bool = False) -> bool:
    """Return whether the request's API and version are served; otherwise answer UNSUPPORTED_VERSION."""
    return header.version == VERSION and header.api in NATIVE_APIS


def decode_body(header: RequestHeader) -> Any:
    """Return the neutral request. Raises DecodeError, naming the field: answer INVALID_REQUEST."""
    body = header.body
    return native_api(header.api).decode_request(body if type(body) is dict else body_of(body, "body"), header.records)


def encode_response(header: RequestHeader, response: Any, records_bytes: int) -> bytes:
    """Return the frame that answers `header` up to its records, of which `records_bytes` follow.

    Raises BrokerError INVALID_REQUEST when the answer does not fit one frame.
    """
    api, version, correlation_id = header[:3]
    try:
        body = native_api(api).encode_response(response)
        return pack_header([NUMBERS.get(api, api), version, correlation_id, 0, body], records_bytes)
    except HeaderTooLargeError as error:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"the answer does not fit a frame, ask for less at a time: {error}"
        ) from error


def encode_error(header: RequestHeader, code: ErrorCode, message: str) -> bytes:
    """Return the complete frame that refuses `header` as a whole."""
    number = NUMBERS.get(header.api, header.api)
    return pack_header([number, header.version, header.correlation_id, int(code), {"message": message}], 0)


def with_throttle(header: RequestHeader, frame: bytes, throttle_ms: int) -> bytes:
    """Return the frame that answers `header`, up to its records, with `throttle_ms` in its body."""
    (size,) = _SIZE.unpack_from(frame)
    fields, _ = split_frame(memoryview(frame)[SIZE_PREFIX:])
    fields[4][THROTTLE_FIELD] = throttle_ms
    return pack_header(fields, size + SIZE_PREFIX - len(frame))


def encode_request(api: ApiKey, correlation_id: int, client_id: str | None, request: Any) -> list[bytes | memoryview]:
    """Return the buffers of a request's frame, to be sent in order."""
    records: Sequence[memoryview] = ()
    if isinstance(request, ProduceRequest):
        records = [partition.batch for topic in request.topics for partition in topic.partitions]
    body = native_api(api).encode_request(request)
    header = pack_header(
        [NUMBERS.get(api, int(api)), VERSION, correlation_id, client_id, body], sum(len(part) for part in records)
    )
    return [header, *records]


def read_response(frame: memoryview) -> ResponseHeader:
    """Read the header of an answer's frame (without its size field). Raises FrameError: close the connection."""
    header, records = split_frame(frame)
    try:
        number = integer(header[0], "api", INT16)
        version = integer(header[1], "version", INT16)
        correlation_id = integer(header[2], "correlation_id", INT32)
        error = error_code(header[3], "error_code")
        body = body_of(header[4], "body")
        throttle_ms = integer(body.get(THROTTLE_FIELD, 0), THROTTLE_FIELD, INT32)
    except DecodeError as problem:
        raise FrameError(f"answer's header: {problem}") from problem
    message = body.get("message")
    return ResponseHeader(
        KEYS.get(number, number),
        version,
        correlation_id,
        error,
        message if isinstance(message, str) else None,
        body,
        records,
        throttle_ms,
    )


def decode_response(header: ResponseHeader) -> Any:
    """Return the neutral response of an answer without an error. Raises DecodeError, naming the field."""
    if header.api not in NATIVE_APIS:
        raise DecodeError(f"api {header.api} is none of ours")
    return native_api(header.api).decode_response(header.body, header.records)

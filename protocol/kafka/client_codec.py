"""Requests and responses of Kafka's protocol as frames, the client's side.

    request   := int32 size | int16 api_key | int16 api_version | int32 correlation_id | nullable string client_id
                 | tagged fields (flexible versions) | body
    response  := int32 correlation_id | tagged fields (flexible versions, but not of ApiVersions) | body

An answer to ApiVersions has no tagged fields before its body, because a client reads it before it knows the broker.
Source: Kafka's RequestHeader.json, ResponseHeader.json and ApiMessageType.
"""

from __future__ import annotations

import struct
from typing import Any, Final, TypeVar, cast

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.framing import SIZE_PREFIX
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.primitives import Reader
from barnabas.protocol.wire.structures import MAX_ANSWER_ITEMS, Request, Struct

_HEADER: Final = struct.Struct(">ihhih")
_CORRELATION_ID_SIZE: Final = 4
_NO_TAGS: Final = b"\0"

S = TypeVar("S", bound=Struct)


def request_frame(version: int, correlation_id: int, client_id: bytes, request: Request[Any]) -> bytes:
    """Return a request as a whole frame."""
    body = request.encode(version)
    is_flexible = version >= request.flexible_from
    return request_head(request.api_key, version, correlation_id, client_id, len(body), is_flexible) + body


def request_head(
    api: int, version: int, correlation_id: int, client_id: bytes, body_size: int, is_flexible: bool
) -> bytes:
    """Return the bytes of a request's frame before its body, size and header."""
    tail = client_id + _NO_TAGS if is_flexible else client_id
    size = _HEADER.size - SIZE_PREFIX + len(tail) + body_size
    return _HEADER.pack(size, api, version, correlation_id, len(client_id)) + tail


def read_answer(asked: type[Request[S]], version: int, correlation_id: int, answer: memoryview) -> S:
    """Return the value of an answer to a request of this class; `answer` is without its size. Raises DecodeError."""
    body = answer_body(correlation_id, answer)
    if asked.api_key is ApiKey.API_VERSIONS:
        if int.from_bytes(body[:2], "big") == ErrorCode.UNSUPPORTED_VERSION:
            version = 0  # in which a broker answers that it does not have the requested one
    elif version >= asked.flexible_from:
        body = after_tags(body)
    return cast(type[S], asked.answer_type).decode(version, body, MAX_ANSWER_ITEMS)


def answer_body(correlation_id: int, answer: memoryview) -> memoryview:
    """Return what follows the correlation id of an answer, which is that of its request. Raises DecodeError."""
    if len(answer) < _CORRELATION_ID_SIZE:
        raise DecodeError(f"an answer of {len(answer)} bytes")
    found = int.from_bytes(answer[:_CORRELATION_ID_SIZE], "big", signed=True)
    if found != correlation_id:
        raise DecodeError(f"the answer has correlation id {found}, not {correlation_id}")
    return answer[_CORRELATION_ID_SIZE:]


def after_tags(body: memoryview) -> memoryview:
    """Return what follows the tagged fields of an answer's header. Raises DecodeError."""
    if len(body) and body[0] == 0:
        return body[1:]
    reader = Reader(body)
    reader.tagged_fields()
    return body[reader.position :]

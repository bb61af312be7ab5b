"""The functions of `apis.ApiCodec` for an API whose messages are declared (`protocol/wire`).

decode_request, encode_response, encode_error = served(HeartbeatRequest)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.wire.structures import Encoded, Request, Struct

R = TypeVar("R", bound=Request)


def served(
    request_type: type[R],
) -> tuple[
    Callable[[int, memoryview], R],
    Callable[[int, Struct | Encoded], bytes],
    Callable[[int, R, ErrorCode, str], bytes],
]:
    """Return `decode_request`, `encode_response` and `encode_error` of an API."""
    return request_type.decode, _encode_response, _encode_error


def _encode_response(version: int, response: Struct | Encoded) -> bytes:
    return response.encode(version)


def _encode_error(version: int, request: Request, code: ErrorCode, message: str) -> bytes:
    return request.refused(code, message).encode(version)

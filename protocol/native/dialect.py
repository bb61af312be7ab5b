"""The native dialect for the broker's dispatch: codec.py's functions, with complete answers.

Every fault of a request is answered, because its frame determines where the next one starts: an unknown API or version
with UNSUPPORTED_VERSION, a body that does not decode with INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.messages.data.fetch import FetchResponse
from barnabas.protocol.native import codec
from barnabas.protocol.native.codec import RequestHeader, is_supported, read_request, with_throttle
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

_NO_PARTS: Sequence[RecordsPart] = ()


def refuse_unknown(header: RequestHeader) -> tuple[bytes, Sequence[RecordsPart]]:
    """Return the answer to an unsupported API or version."""
    message = f"api {header.api} version {header.version} is not served here; hello lists what is"
    return encode_error(header, None, ErrorCode.UNSUPPORTED_VERSION, message)


def decode_body(header: RequestHeader) -> Any:
    """Return the neutral request. Raises BrokerError INVALID_REQUEST, naming the field."""
    try:
        return codec.decode_body(header)
    except DecodeError as error:
        raise BrokerError(ErrorCode.INVALID_REQUEST, str(error)) from error


def encode_response(header: RequestHeader, response: Any) -> tuple[bytes, Sequence[RecordsPart]]:
    """Return the frame that answers `header` up to its records, and the records.

    Raises BrokerError INVALID_REQUEST when the answer does not fit one frame.
    """
    if type(response) is not FetchResponse:
        return codec.encode_response(header, response, 0), _NO_PARTS
    parts = [each.records for topic in response.topics for each in topic.partitions if each.records.size]
    return codec.encode_response(header, response, sum([part.size for part in parts])), parts


def encode_error(
    header: RequestHeader, request: Any, code: ErrorCode, message: str
) -> tuple[bytes, Sequence[RecordsPart]]:
    """Return the frame that refuses `header` as a whole."""
    return codec.encode_error(header, code, message), _NO_PARTS

"""DescribeLogDirs (35), versions 1-5: an error for the whole from version 3 on, the file system's bytes from 4 on.

Versions below 3 cannot tell a refusal from no directories.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    NO_THROTTLE,
    STRING,
    Array,
    Constant,
    Message,
    Struct,
    rows,
    since,
)
from barnabas.protocol.messages.topics.log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsTopic,
)

_REQUESTED = Struct(DescribeLogDirsTopic, name=STRING, partitions=Array(INT32))
REQUEST = Message(2, DescribeLogDirsRequest, topics=Array(_REQUESTED, nullable_from=0))

_PARTITION = Struct(partition=INT32, size_bytes=INT64, offset_lag=INT64, is_future=BOOL)
_DIRECTORY = Struct(
    error=INT16,
    path=STRING,
    topics=rows(name=STRING, partitions=Array(_PARTITION)),
    total_bytes=since(4, INT64),
    usable_bytes=since(4, INT64),
    is_cordoned=since(5, Constant(BOOL, False)),
)
RESPONSE = Message(2, throttle_ms=NO_THROTTLE, error=since(3, INT16), results=Array(_DIRECTORY))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: Any, code: ErrorCode, message: str) -> bytes:
    """A refusal."""
    return RESPONSE.write(version, DescribeLogDirsResponse([], code))

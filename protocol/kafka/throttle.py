"""Writes throttle_time_ms into encoded responses, so that no handler has to know it.

Its place follows from the declaration of the answer: after fields of fixed size, in most APIs after none, or before
fields of fixed size at the end, as in Produce, whose tagged fields Barnabas never writes. In ApiVersions it follows an
array whose entries have a fixed size.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, Final

from barnabas.protocol.kafka.apis import MAX_INT32, api_of
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.varint import read_unsigned
from barnabas.protocol.wire.fields import Field, present
from barnabas.protocol.wire.types import Fixed

_FRAME_HEADER_BYTES: Final = 8
"""Size and correlation id."""

_INT32: Final = struct.Struct(">i")
_API_ENTRY: Final = struct.Struct(">hhh")
_ERROR_BYTES: Final = 2
_API_VERSIONS_FLEXIBLE_FROM: Final = 3


def with_throttle(api: int, version: int, frame: bytes, throttle_ms: int, *, is_flexible: bool) -> bytes:
    """Return a response frame with throttle_time_ms; the frame itself where its version has no such field.

    `frame` begins with its size and, for an API with records, ends before them. `is_flexible`: of the response header.
    """
    served = api_of(api)
    if served is None or (api == ApiKey.API_VERSIONS and version == 0):
        return frame
    if api == ApiKey.API_VERSIONS:
        position = _after_api_versions(version, frame)
    else:
        place = _place(served.request.answer_type, version)
        if place is None:
            return frame
        position = len(frame) + place if place < 0 else _FRAME_HEADER_BYTES + is_flexible + place
    patched = bytearray(frame)
    _INT32.pack_into(patched, position, min(throttle_ms, MAX_INT32))
    return bytes(patched)


@cache
def _place(answer_type: Any, version: int) -> int | None:
    """Return the field's distance from the start of an answer, negative from its end; None without the field."""
    fields = [each for each in present(answer_type, version) if each.tag is None]
    names = [each.name for each in fields]
    if "throttle_ms" not in names:
        return None
    index = names.index("throttle_ms")
    before = _size(fields[:index])
    if before is not None:
        return before
    after = _size(fields[index:])
    if after is None:
        raise TypeError(f"{answer_type.__name__} has throttle_ms between fields that have no fixed size")
    has_tags: bool = version >= answer_type.flexible_from
    return -after - has_tags


def _size(fields: list[Field]) -> int | None:
    """Return the bytes of fields of fixed size; None if one has none."""
    sizes = [each.kind.size for each in fields if isinstance(each.kind, Fixed)]
    return sum(sizes) if len(sizes) == len(fields) else None


def _after_api_versions(version: int, frame: bytes) -> int:
    """Return the position after the array of APIs. The header of this response is never flexible."""
    start = _FRAME_HEADER_BYTES + _ERROR_BYTES
    if version < _API_VERSIONS_FLEXIBLE_FROM:
        count: int = _INT32.unpack_from(frame, start)[0]
        return start + _INT32.size + count * _API_ENTRY.size
    length, position = read_unsigned(memoryview(frame), start)
    return position + (length - 1) * (_API_ENTRY.size + 1)  # each entry ends with its tagged fields, which are empty

"""Frames of the native dialect."""

from __future__ import annotations

import struct
from typing import Any

import msgpack


def native_frame(header: bytes, records: bytes) -> bytes:
    """Return a frame, with its size field."""
    return struct.pack(">iI", 4 + len(header) + len(records), 0xB7 << 24 | len(header)) + header + records


def native_request(api: int, body: dict[str, Any], records: bytes = b"", correlation_id: int = 1) -> bytes:
    """Return a request in the shortest encoding, with its size field."""
    return native_frame(msgpack.packb([api, 0, correlation_id, "wire", body]), records)


def answer_fields(frame: bytes) -> list[Any]:
    """Return api, version, correlation id, error code and body of an answer, given without its size field."""
    fields: list[Any] = msgpack.unpackb(frame[4 : 4 + int.from_bytes(frame[1:4], "big")])
    return fields

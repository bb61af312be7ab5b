"""Size of a record in the producer's buffer, with a check that it consists of bytes."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.records.builder import Buffer

RECORD_FRAMING_BYTES = 36
"""Upper bound of the batch format's bytes around one record's key, value and headers."""

HeaderList = Sequence[tuple[str, Buffer | None]]


def record_size(key: Buffer | None, value: Buffer | None, headers: HeaderList) -> int:
    """Size of key, value and headers. Raises TypeError for a value that is not bytes."""
    size = 0
    if value is not None:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(f"value must be bytes or None, not {type(value).__name__}: encode it first")
        size += len(value)
    if key is not None:
        if not isinstance(key, (bytes, bytearray, memoryview)):
            raise TypeError(f"key must be bytes or None, not {type(key).__name__}: encode it first")
        size += len(key)
    if headers:
        for name, content in headers:
            if not isinstance(name, str):
                raise TypeError(f"a header's name must be str, not {type(name).__name__}")
            if content is not None and not isinstance(content, (bytes, bytearray, memoryview)):
                raise TypeError(f"header {name!r} must be bytes or None, not {type(content).__name__}: encode it first")
            size += len(name) + (0 if content is None else len(content)) + RECORD_FRAMING_BYTES
    return size

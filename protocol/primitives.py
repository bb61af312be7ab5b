"""Kafka's primitive types of flexible messages: a Writer and a Reader, for metadata records and requests.

All fixed integers are big-endian. The variable parts:

    compact string, bytes    unsigned varint length + 1 (0 = null), then the bytes (UTF-8 for strings)
    compact array            unsigned varint count + 1 (0 = null), then the items
    tagged fields            unsigned varint count, then per field: tag, size (unsigned varints), bytes; tags ascend
    uuid                     16 bytes as they are

The Reader raises only DecodeError on any bytes; it returns copies, so nothing keeps the buffer alive. A length is
checked against the bytes left before anything is allocated. Source: Kafka's
org.apache.kafka.common.protocol.types.Type and ByteUtils.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Self, TypeVar

from barnabas.protocol import varint
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.uuids import UUID_SIZE

Item = TypeVar("Item")

_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_UINT16 = struct.Struct(">H")


class Writer:
    """Collects the encoding of one message. Every method returns the writer, so that calls can be chained.

    Raises ValueError for a value out of its type's range: a caller's mistake, not bad input.
    """

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def __len__(self) -> int:
        return len(self._buffer)

    def to_bytes(self) -> bytes:
        """Return everything written so far."""
        return bytes(self._buffer)

    def boolean(self, value: bool) -> Self:
        """1 byte, 0 or 1."""
        self._buffer.append(1 if value else 0)
        return self

    def int8(self, value: int) -> Self:
        """1 byte, signed."""
        return self._fixed(_INT8, value)

    def int16(self, value: int) -> Self:
        """2 bytes, signed."""
        return self._fixed(_INT16, value)

    def int32(self, value: int) -> Self:
        """4 bytes, signed."""
        return self._fixed(_INT32, value)

    def int64(self, value: int) -> Self:
        """8 bytes, signed."""
        return self._fixed(_INT64, value)

    def uint16(self, value: int) -> Self:
        """2 bytes, unsigned."""
        return self._fixed(_UINT16, value)

    def unsigned_varint(self, value: int) -> Self:
        """1 to 5 bytes for 0 .. 2^32-1."""
        if not 0 <= value <= varint.UINT32_MAX:
            raise ValueError(f"{value} does not fit an unsigned varint")
        varint.append_unsigned(self._buffer, value)
        return self

    def uuid(self, value: bytes) -> Self:
        """16 bytes."""
        if len(value) != UUID_SIZE:
            raise ValueError(f"a uuid has {UUID_SIZE} bytes, not {len(value)}")
        self._buffer += value
        return self

    def raw(self, value: bytes | bytearray | memoryview) -> Self:
        """The bytes as they are, without a length."""
        self._buffer += value
        return self

    def compact_string(self, value: str) -> Self:
        """Length + 1, then UTF-8."""
        return self.compact_bytes(value.encode("utf-8"))

    def compact_nullable_string(self, value: str | None) -> Self:
        """As `compact_string`; None is the length 0."""
        return self.compact_nullable_bytes(None if value is None else value.encode("utf-8"))

    def compact_bytes(self, value: bytes | bytearray | memoryview) -> Self:
        """Length + 1, then the bytes."""
        self.unsigned_varint(len(value) + 1)
        self._buffer += value
        return self

    def compact_nullable_bytes(self, value: bytes | bytearray | memoryview | None) -> Self:
        """As `compact_bytes`; None is the length 0."""
        return self.unsigned_varint(0) if value is None else self.compact_bytes(value)

    def compact_array_length(self, count: int | None) -> Self:
        """The count of an array (None: a null array); the caller writes the items after it."""
        return self.unsigned_varint(0 if count is None else count + 1)

    def compact_array(self, items: Iterable[Item], write_item: Callable[[Item], object]) -> Self:
        """Count + 1, then `write_item` for each: `writer.compact_array(replicas, writer.int32)`."""
        listed = list(items)
        self.compact_array_length(len(listed))
        for item in listed:
            write_item(item)
        return self

    def tagged_fields(self, fields: Mapping[int, bytes] | None = None) -> Self:
        """The tagged fields that end every flexible structure, by ascending tag; without any, one zero byte."""
        if not fields:
            return self.unsigned_varint(0)
        self.unsigned_varint(len(fields))
        for tag in sorted(fields):
            value = fields[tag]
            self.unsigned_varint(tag).unsigned_varint(len(value)).raw(value)
        return self

    def _fixed(self, layout: struct.Struct, value: int) -> Self:
        try:
            self._buffer += layout.pack(value)
        except struct.error as error:
            raise ValueError(f"{value} does not fit {layout.size} bytes: {error}") from error
        return self


class Reader:
    """Reads one message from `position` of `data` on. Raises DecodeError only."""

    __slots__ = ("_data", "_end", "position")

    def __init__(self, data: bytes | bytearray | memoryview, position: int = 0) -> None:
        self._data = memoryview(data).cast("B")
        self._end = len(self._data)
        if not 0 <= position <= self._end:
            raise DecodeError(f"start {position} lies outside of {self._end} bytes")
        self.position = position

    @property
    def remaining(self) -> int:
        """Bytes not read yet."""
        return self._end - self.position

    def ensure_end(self) -> None:
        """Raises DecodeError when bytes are left over."""
        if self.position != self._end:
            raise DecodeError(f"{self.remaining} bytes are left over after position {self.position}")

    def boolean(self) -> bool:
        """1 byte; anything but 0 is true, as in Java."""
        return self._fixed(_INT8) != 0

    def int8(self) -> int:
        """1 byte, signed."""
        return self._fixed(_INT8)

    def int16(self) -> int:
        """2 bytes, signed."""
        return self._fixed(_INT16)

    def int32(self) -> int:
        """4 bytes, signed."""
        return self._fixed(_INT32)

    def int64(self) -> int:
        """8 bytes, signed."""
        return self._fixed(_INT64)

    def uint16(self) -> int:
        """2 bytes, unsigned."""
        return self._fixed(_UINT16)

    def unsigned_varint(self) -> int:
        """0 .. 2^32-1."""
        value, self.position = varint.read_unsigned32(self._data, self.position)
        return value

    def uuid(self) -> bytes:
        """16 bytes."""
        return bytes(self._take(UUID_SIZE))

    def raw(self, size_bytes: int) -> bytes:
        """The next `size_bytes` bytes as they are."""
        return bytes(self._take(size_bytes))

    def rest(self) -> bytes:
        """The remaining bytes."""
        return self.raw(self.remaining)

    def compact_string(self) -> str:
        """UTF-8 with its length; null is an error."""
        return _not_null(self.compact_nullable_string(), "string")

    def compact_nullable_string(self) -> str | None:
        """UTF-8 with its length, or None."""
        value = self.compact_nullable_bytes()
        if value is None:
            return None
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DecodeError(f"string that ends at position {self.position} is not UTF-8: {error}") from error

    def compact_bytes(self) -> bytes:
        """Bytes with their length; null is an error."""
        return _not_null(self.compact_nullable_bytes(), "bytes")

    def compact_nullable_bytes(self) -> bytes | None:
        """Bytes with their length, or None."""
        size_bytes = self.unsigned_varint() - 1
        return None if size_bytes < 0 else bytes(self._take(size_bytes))

    def compact_array_length(self) -> int:
        """The count of the items that follow; null is an error, and so is a count above the bytes that are left."""
        return _not_null(self.compact_nullable_array_length(), "array")

    def compact_nullable_array_length(self) -> int | None:
        """The count of the items that follow, or None for a null array."""
        count = self.unsigned_varint() - 1
        if count < 0:
            return None
        if count > self.remaining:
            raise DecodeError(
                f"array of {count} items at position {self.position}, but {self.remaining} bytes are left"
            )
        return count

    def compact_array(self, read_item: Callable[[], Item]) -> list[Item]:
        """All items: `reader.compact_array(reader.int32)`; null is an error."""
        return [read_item() for _ in range(self.compact_array_length())]

    def compact_nullable_array(self, read_item: Callable[[], Item]) -> list[Item] | None:
        """All items, or None for a null array."""
        count = self.compact_nullable_array_length()
        return None if count is None else [read_item() for _ in range(count)]

    def tagged_fields(self) -> dict[int, bytes]:
        """The tagged fields that end a flexible structure: tag -> bytes. Tags must ascend."""
        fields: dict[int, bytes] = {}
        last_tag = -1
        for _ in range(self.unsigned_varint()):  # ends at the first missing byte, however large the count
            tag = self.unsigned_varint()
            if tag <= last_tag:
                raise DecodeError(f"tag {tag} at position {self.position} does not come after tag {last_tag}")
            last_tag = tag
            fields[tag] = bytes(self._take(self.unsigned_varint()))
        return fields

    def _take(self, size_bytes: int) -> memoryview:
        start = self.position
        if not 0 <= size_bytes <= self._end - start:
            raise DecodeError(f"{size_bytes} bytes asked at position {start}, but {self._end - start} are left")
        self.position = start + size_bytes
        return self._data[start : start + size_bytes]

    def _fixed(self, layout: struct.Struct) -> int:
        value: int = layout.unpack(self._take(layout.size))[0]
        return value


def _not_null(value: Item | None, what: str) -> Item:
    if value is None:
        raise DecodeError(f"{what} is null where it must not be")
    return value

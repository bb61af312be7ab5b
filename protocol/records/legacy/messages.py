"""Message sets of format versions 0 and 1, as brokers before Kafka 0.11 wrote them. Read only; all integers big-endian.

    position  size  field
           0     8  offset        of the message; of a wrapper: of the last message in it
           8     4  length        bytes that follow this field
          12     4  crc           CRC-32 of everything from `magic` to the end
          16     1  magic         0 or 1
          17     1  attributes    bits 0-2 codec (none, gzip, snappy, lz4), bit 3 time type (magic 1)
          18     8  timestamp     magic 1 only
           -     4  key size (-1 = null), key
           -     4  value size (-1 = null), value

A message with a codec is a wrapper: its value is a compressed message set, whose messages have no codec. In a wrapper
of magic 0 they carry their own offsets; in one of magic 1 they are numbered from 0 (with gaps after compaction) and the
last one has the wrapper's offset. Under LogAppendTime the wrapper's timestamp is that of all messages in it. An lz4
frame of magic 0 has a wrong header checksum: Kafka computed it over the frame's magic, too. A message cut short at the
end of a decompressed set is left out, as in Kafka. Source: Kafka LegacyRecord, AbstractLegacyRecordBatch.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final

from barnabas.protocol.compression import CODECS, Codec, borrow_decompressed
from barnabas.protocol.errors import DecompressionError
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.layout import (
    CODEC_MASK,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TimestampType,
)
from barnabas.protocol.records.legacy.lz4 import with_right_header_checksum
from barnabas.protocol.records.reader import MAX_DECOMPRESSED_BYTES
from barnabas.protocol.records.record import Record

Buffer = bytes | bytearray | memoryview

MAX_HEAD_SIZE: Final = 26
"""Bytes up to the key's size in magic 1; in magic 0 they are 18."""

_HEAD: Final = Struct(">qiIbb")  # offset, length, crc, magic, attributes
_TIMESTAMP: Final = Struct(">q")
_SIZE: Final = Struct(">i")
_CRC_FROM: Final = 16
_MIN_SIZE: Final = (26, 34)
"""By magic: a null key and a null value."""

assert _HEAD.size == 18


def is_legacy_magic(magic: int) -> bool:
    """Return whether the byte at MAGIC_POSITION is that of a format this module reads."""
    return 0 <= magic < MAGIC_V2


class LegacyMessage:
    """The message at `position` of `buffer`, which must hold at least its head (MAX_HEAD_SIZE is enough).

    Its bytes are unchecked until `ensure_valid`. `timestamp` in ms, -1 in magic 0. Raises CorruptRecordError for an
    impossible head.
    """

    __slots__ = ("attributes", "crc", "magic", "offset", "position", "size_bytes", "timestamp", "view")

    offset: int
    crc: int
    magic: int
    attributes: int
    size_bytes: int
    timestamp: int
    position: int
    view: memoryview

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        view = buffer if type(buffer) is memoryview else memoryview(buffer)
        if len(view) - position < _HEAD.size:
            raise CorruptRecordError(f"{len(view) - position} bytes at position {position} cannot hold a message")
        self.offset, length, self.crc, self.magic, self.attributes = _HEAD.unpack_from(view, position)
        if not is_legacy_magic(self.magic):
            raise CorruptRecordError(f"magic {self.magic} at position {position} is not that of an old message")
        self.size_bytes = length + LOG_OVERHEAD
        if self.size_bytes < _MIN_SIZE[self.magic] or self.offset < 0:
            raise CorruptRecordError(
                f"no message at position {position}: magic {self.magic}, length {length}, offset {self.offset}"
            )
        self.timestamp = NO_TIMESTAMP
        if self.magic:
            if len(view) - position < MAX_HEAD_SIZE:
                raise CorruptRecordError(f"the message at position {position} is cut short in its head")
            (self.timestamp,) = _TIMESTAMP.unpack_from(view, position + _HEAD.size)
        self.view = view
        self.position = position

    def __repr__(self) -> str:
        return (
            f"LegacyMessage(offset {self.offset}, {self.size_bytes} bytes at position {self.position}, "
            f"magic {self.magic}, attributes {self.attributes:#x}, timestamp {self.timestamp})"
        )

    @property
    def last_offset(self) -> int:
        """The offset, under the name that batches have."""
        return self.offset

    @property
    def next_offset(self) -> int:
        """The offset after it."""
        return self.offset + 1

    @property
    def max_timestamp(self) -> int:
        """The timestamp, under the name that batches have; a wrapper has the largest of its messages."""
        return self.timestamp

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether the timestamp is the producer's or the broker's; CreateTime for magic 0, which has none."""
        if self.magic and self.attributes & TIMESTAMP_TYPE_MASK:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_wrapper(self) -> bool:
        """Whether the value is a compressed message set."""
        return self.attributes & CODEC_MASK != 0

    @property
    def codec(self) -> Codec:
        """The value's codec. Raises CorruptRecordError for one that the old formats did not have."""
        codec_id = self.attributes & CODEC_MASK
        if codec_id > Codec.LZ4:
            raise CorruptRecordError(f"message of offset {self.offset}: compression codec {codec_id} is unknown")
        return CODECS[codec_id]

    def ensure_valid(self) -> None:
        """Check size, CRC-32, and that key and value fill the message. Raises CorruptRecordError."""
        end = self.position + self.size_bytes
        if end > len(self.view):
            raise CorruptRecordError(
                f"message at position {self.position} claims {self.size_bytes} bytes, "
                f"{len(self.view) - self.position} are there"
            )
        computed = zlib.crc32(self.view[self.position + _CRC_FROM : end])
        if computed != self.crc:
            raise CorruptRecordError(
                f"message at position {self.position}: stored crc {self.crc:#010x}, computed {computed:#010x}"
            )
        self.key_and_value()

    @property
    def value(self) -> memoryview | None:
        """The value; of a wrapper the compressed messages. Raises as `key_and_value`."""
        return self.key_and_value()[1]

    def key_and_value(self) -> tuple[memoryview | None, memoryview | None]:
        """Return both as views. Raises CorruptRecordError when they do not fill it. Call `ensure_valid` first."""
        end = self.position + self.size_bytes
        if end > len(self.view):
            raise CorruptRecordError(f"message at position {self.position} is cut short")
        key, at = self._field(self.position + (MAX_HEAD_SIZE if self.magic else _HEAD.size), end)
        value, at = self._field(at, end)
        if at != end:
            raise CorruptRecordError(f"message of offset {self.offset}: {end - at} bytes are left over at its end")
        return key, value

    def _field(self, at: int, end: int) -> tuple[memoryview | None, int]:
        if end - at < _SIZE.size:
            raise CorruptRecordError(f"message of offset {self.offset}: its key or value is cut short")
        (size,) = _SIZE.unpack_from(self.view, at)
        at += _SIZE.size
        if size < 0:
            return None, at
        if size > end - at:
            raise CorruptRecordError(f"message of offset {self.offset}: its key or value of {size} bytes does not fit")
        return self.view[at : at + size], at + size


def iter_legacy_messages(buffer: Buffer) -> Iterator[LegacyMessage]:
    """Yield the complete messages of a buffer; one cut short at the end is left out. Raises CorruptRecordError."""
    view = buffer if type(buffer) is memoryview else memoryview(buffer)
    position = 0
    while len(view) - position >= _MIN_SIZE[0]:
        (length,) = _SIZE.unpack_from(view, position + 8)
        if is_legacy_magic(view[position + MAGIC_POSITION]) and length + LOG_OVERHEAD > len(view) - position:
            return
        message = LegacyMessage(view, position)
        yield message
        position += message.size_bytes


def read_inner_messages(
    wrapper: LegacyMessage, *, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> list[tuple[int, LegacyMessage]]:
    """Return the messages in a wrapper as (absolute offset, message), offsets rising up to the wrapper's own.

    The messages are views of a copy. Raises CorruptRecordError for bytes that do not decompress or exceed the limit, a
    message with a wrong CRC or a codec of its own, offsets that do not rise.
    """
    compressed = wrapper.value
    if compressed is None:
        raise CorruptRecordError(f"message of offset {wrapper.offset}: a wrapper without a value")
    codec = wrapper.codec
    if codec is Codec.LZ4 and wrapper.magic == 0:
        compressed = memoryview(with_right_header_checksum(compressed))
    try:
        data = bytes(borrow_decompressed(codec, compressed, max_decompressed_bytes))
    except DecompressionError as error:
        raise CorruptRecordError(f"message of offset {wrapper.offset}: {error}") from error
    inner = list(iter_legacy_messages(data))
    if not inner:
        raise CorruptRecordError(f"message of offset {wrapper.offset}: a wrapper without messages")
    base = wrapper.offset - inner[-1].offset if wrapper.magic else 0
    found: list[tuple[int, LegacyMessage]] = []
    before = -1
    for message in inner:
        message.ensure_valid()
        offset = base + message.offset
        if message.is_wrapper or not before < offset <= wrapper.offset:
            raise CorruptRecordError(
                f"message of offset {wrapper.offset}: it holds offset {offset} after {before}"
                f"{', compressed once more' if message.is_wrapper else ''}"
            )
        found.append((offset, message))
        before = offset
    return found


def read_legacy_records(
    message: LegacyMessage, *, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> list[Record]:
    """Return the record of a message, or those of a wrapper, with absolute offsets; keys and values are copies.

    Call `ensure_valid` first. Raises CorruptRecordError.
    """
    if not message.is_wrapper:
        return [_record(message, message.offset, message.timestamp)]
    inner = read_inner_messages(message, max_decompressed_bytes=max_decompressed_bytes)
    return [_record(each, offset, inner_timestamp(message, each)) for offset, each in inner]


def inner_timestamp(wrapper: LegacyMessage, message: LegacyMessage) -> int:
    """Return the timestamp in ms of a message in a wrapper, -1 without one."""
    if message.magic and wrapper.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return wrapper.timestamp
    return message.timestamp


def _record(message: LegacyMessage, offset: int, timestamp: int) -> Record:
    key, value = message.key_and_value()
    return Record(offset, timestamp, None if key is None else bytes(key), None if value is None else bytes(value))

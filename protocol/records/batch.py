"""View of one stored or received record batch: its header's fields, its bytes, and the few bytes that may be patched.

Only the 61 bytes of the header are copied, by one struct call when the view is created. So the fields are plain
attributes, and a patch of the buffer other than by the view's stamp methods is not seen. The view keeps the buffer
alive and must not outlive its reuse. Layout: layout.py.
"""

from __future__ import annotations

import struct
from typing import Final

from barnabas.protocol.compression import CODECS, Codec
from barnabas.protocol.crc32c import crc32c
from barnabas.protocol.records.errors import CorruptRecordError, InvalidRecordError, UnsupportedMagicError
from barnabas.protocol.records.layout import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_MASK,
    CRC_POSITION,
    DELETE_HORIZON_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    MAX_TIMESTAMP_POSITION,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    TimestampType,
)

Buffer = bytes | bytearray | memoryview

_INT32_MAX: Final = 0x7FFF_FFFF

_unpack_header = HEADER.unpack_from
_pack_placement = struct.Struct(">qii").pack_into  # base offset, length, partition leader epoch
_pack_crc = struct.Struct(">I").pack_into
_pack_attributes = struct.Struct(">h").pack_into
_pack_timestamp = struct.Struct(">q").pack_into


class RecordBatch:
    """The batch that starts at `position` of `buffer`; its bytes are unchecked until `ensure_valid`.

    Raises CorruptRecordError when the header does not fit or its length is impossible, UnsupportedMagicError for a
    message set of an older format that is shorter than this header. Costs about 0.5 us.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "position",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size_bytes",
        "view",
    )

    base_offset: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    size_bytes: int
    position: int
    view: memoryview

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        view = buffer if type(buffer) is memoryview else memoryview(buffer)
        try:
            (
                self.base_offset,
                length,
                self.partition_leader_epoch,
                self.magic,
                self.crc,
                self.attributes,
                self.last_offset_delta,
                self.base_timestamp,
                self.max_timestamp,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
                self.record_count,
            ) = _unpack_header(view, position)
        except struct.error:
            raise _too_short(view, position) from None
        self.size_bytes = length + LOG_OVERHEAD
        if length < HEADER_SIZE - LOG_OVERHEAD and self.magic == MAGIC_V2:
            raise CorruptRecordError(f"batch size {self.size_bytes} at position {position} is less than its header")
        self.view = view
        self.position = position

    def __repr__(self) -> str:
        return (
            f"RecordBatch(offsets {self.base_offset}..{self.last_offset}, {self.record_count} records, "
            f"{self.size_bytes} bytes at position {self.position}, attributes {self.attributes:#x}, "
            f"max_timestamp {self.max_timestamp}, leader epoch {self.partition_leader_epoch})"
        )

    @property
    def last_offset(self) -> int:
        """The batch's last offset, even if compaction has removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The last record's sequence number, wrapped to 0 after 2^31 - 1; -1 without idempotence."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & _INT32_MAX

    @property
    def codec(self) -> Codec:
        """The records' compression codec. Raises InvalidRecordError for the undefined ids 5 to 7."""
        codec_id = self.attributes & CODEC_MASK
        if codec_id >= len(CODECS):
            raise InvalidRecordError(InvalidRecordError.BATCH, f"compression codec {codec_id} is unknown")
        return CODECS[codec_id]

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether the timestamps are the producer's or the broker's."""
        return TimestampType.LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_MASK else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction (its markers too)."""
        return self.attributes & TRANSACTIONAL_MASK != 0

    @property
    def is_control(self) -> bool:
        """Whether the records are control records, which consumers do not deliver."""
        return self.attributes & CONTROL_MASK != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Whether `base_timestamp` is the time after which the cleaner may drop the batch's tombstones."""
        return self.attributes & DELETE_HORIZON_MASK != 0

    @property
    def payload(self) -> memoryview:
        """The records as stored, possibly compressed."""
        return self.view[self.position + HEADER_SIZE : self.position + self.size_bytes]

    @property
    def bytes(self) -> memoryview:
        """The whole batch, header and records."""
        return self.view[self.position : self.position + self.size_bytes]

    def ensure_valid(self) -> None:
        """Check magic, size and CRC-32C. Raises UnsupportedMagicError or CorruptRecordError. 50 us per MiB."""
        if self.magic != MAGIC_V2:
            raise UnsupportedMagicError(self.magic)
        end = self.position + self.size_bytes
        if end > len(self.view):
            remaining = len(self.view) - self.position
            raise CorruptRecordError(
                f"batch at position {self.position} claims {self.size_bytes} bytes, {remaining} are there"
            )
        computed = crc32c(self.view[self.position + ATTRIBUTES_POSITION : end])
        if computed != self.crc:
            raise CorruptRecordError(
                f"batch at position {self.position}: stored crc {self.crc:#010x}, computed {computed:#010x}"
            )

    def stamp_offset_and_epoch(self, base_offset: int, leader_epoch: int) -> None:
        """Write base offset and leader epoch in place. The CRC does not cover these fields."""
        _pack_placement(self.view, self.position, base_offset, self.size_bytes - LOG_OVERHEAD, leader_epoch)
        self.base_offset = base_offset
        self.partition_leader_epoch = leader_epoch

    def stamp_timestamps(self, timestamp_type: TimestampType, max_timestamp: int) -> None:
        """Write the timestamp type and the largest timestamp in place, and a new CRC if either changed."""
        attributes = self.attributes & ~TIMESTAMP_TYPE_MASK
        if timestamp_type:
            attributes |= TIMESTAMP_TYPE_MASK
        if attributes == self.attributes and max_timestamp == self.max_timestamp:
            return
        view, position = self.view, self.position
        _pack_attributes(view, position + ATTRIBUTES_POSITION, attributes)
        _pack_timestamp(view, position + MAX_TIMESTAMP_POSITION, max_timestamp)
        crc = crc32c(view[position + ATTRIBUTES_POSITION : position + self.size_bytes])
        _pack_crc(view, position + CRC_POSITION, crc)
        self.attributes, self.max_timestamp, self.crc = attributes, max_timestamp, crc


class BatchIterator:
    """Iterator over the complete batches of a buffer, created by `iter_batches`.

    `position` is the start of the next batch: once the iterator is exhausted, the end of the complete batches and the
    start of one that the buffer's end cuts short. After an error it is the start of the bad batch.
    """

    __slots__ = ("_view", "position")

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        self._view = buffer if type(buffer) is memoryview else memoryview(buffer)
        self.position = position

    def __iter__(self) -> BatchIterator:
        return self

    def __next__(self) -> RecordBatch:
        remaining = len(self._view) - self.position
        if remaining <= MAGIC_POSITION:
            raise StopIteration
        magic = self._view[self.position + MAGIC_POSITION]
        if magic != MAGIC_V2:
            if magic > MAGIC_V2:
                raise CorruptRecordError(f"magic {magic} at position {self.position} is of no format")
            raise UnsupportedMagicError(magic)
        if remaining < HEADER_SIZE:
            raise StopIteration
        batch = RecordBatch(self._view, self.position)
        if batch.size_bytes > remaining:
            raise StopIteration
        self.position += batch.size_bytes
        return batch


def iter_batches(buffer: Buffer, position: int = 0) -> BatchIterator:
    """Return an iterator over the complete batches from `position` on; see `BatchIterator.position` for a partial one.

    Sizes are checked, CRCs are not. Raises CorruptRecordError for an impossible size or format, UnsupportedMagicError
    for a message set of format 0 or 1.
    """
    return BatchIterator(buffer, position)


def _too_short(view: memoryview, position: int) -> CorruptRecordError | UnsupportedMagicError:
    remaining = len(view) - position
    if position >= 0 and remaining > MAGIC_POSITION and view[position + MAGIC_POSITION] != MAGIC_V2:
        return UnsupportedMagicError(view[position + MAGIC_POSITION])
    return CorruptRecordError(f"{remaining} bytes at position {position} cannot hold a batch header of {HEADER_SIZE}")

"""Batches into columns in plain Python: the twin of _columns.pyx, for installations without a compiler.

A change here needs the same change there. Rows leave as the buffers of an Arrow array
(https://arrow.apache.org/docs/format/Columnar.html), but nothing here depends on Arrow. Control batches and records
outside of [start, end) are skipped. A batch is taken whole or not at all, so a bad one leaves no rows. Speed: about a
ninetieth of the compiled twin's.
"""

from __future__ import annotations

from array import array
from typing import Final

from barnabas.protocol.crc32c import crc32c
from barnabas.protocol.records.errors import InvalidRecordError
from barnabas.protocol.records.kernels.columns_types import Columns, HeaderColumn, NullableBytes, Stop, Wanted
from barnabas.protocol.records.kernels.kernel_python import decode_headers, walk
from barnabas.protocol.records.layout import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)
from barnabas.protocol.records.record import header_name_bytes

_Buffer = bytes | bytearray | memoryview

_INT64_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF
_INT32_MAX: Final = 0x7FFF_FFFF

_Row = tuple[int, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


class ColumnBuilder:
    """Builder of the rows of one partition from `start_offset` up to `end_offset` (exclusive).

    rows, size_bytes   of keys, values and headers added since the last `take`
    position           where the last `fill` stopped
    next_offset        the offset after the last batch passed
    fault              what is wrong with a CORRUPT batch

    `start_offset` and `next_offset` may be moved forward between two fills.
    """

    def __init__(self, wanted: int, start_offset: int, end_offset: int) -> None:
        self.rows = 0
        self.size_bytes = 0
        self.position = 0
        self.next_offset = start_offset
        self.fault = ""
        self._wanted = Wanted(wanted)
        self.start_offset = start_offset
        self._end_offset = end_offset
        self._waiting: list[_Row] = []

    def fill(
        self,
        buffer: _Buffer,
        position: int,
        *,
        max_rows: int,
        max_bytes: int,
        check_crcs: bool = True,
        min_timestamp: int | None = None,
        stop_at_transactions: bool = False,
    ) -> Stop:
        """Add complete batches from `position` on, until the rows or bytes reach `max_rows` or `max_bytes`.

        Batches whose largest timestamp (in their header) is below `min_timestamp` are skipped unread, and so are those
        that end before the start offset; their CRC is not computed.
        """
        view = memoryview(buffer)
        self.position = position
        while True:
            at = self.position
            remaining = len(view) - at
            if remaining <= MAGIC_POSITION:
                return Stop.CUT
            magic = view[at + MAGIC_POSITION]
            if magic != MAGIC_V2:
                if magic < MAGIC_V2:
                    return Stop.OLD_FORMAT
                return self._corrupt(f"magic {magic} is of no format")
            if remaining < HEADER_SIZE:
                return Stop.CUT
            (base_offset, length, _, _, crc, attributes, delta, base_timestamp, max_timestamp, _, _, _, count) = (
                HEADER.unpack_from(view, at)
            )
            size = length + LOG_OVERHEAD
            if size < HEADER_SIZE:
                return self._corrupt(f"a batch of {size} bytes is smaller than its header")
            if base_offset < 0 or not 0 <= delta <= _INT64_MAX - 1 - base_offset:
                return self._corrupt(f"base offset {base_offset} and last offset delta {delta} are no range")
            if base_offset >= self._end_offset:
                return Stop.END
            if size > remaining:
                return Stop.CUT
            last_offset = base_offset + delta
            if last_offset < self.start_offset or (min_timestamp is not None and max_timestamp < min_timestamp):
                self.skip(size, last_offset)
                continue
            if self.rows and (
                self.rows >= max_rows or self.size_bytes >= max_bytes or self.size_bytes + size > _INT32_MAX
            ):
                return Stop.FULL
            if check_crcs and (computed := crc32c(view[at + ATTRIBUTES_POSITION : at + size])) != crc:
                return self._corrupt(f"stored crc {crc:#010x}, computed {computed:#010x}")
            if stop_at_transactions and attributes & TRANSACTIONAL_MASK:
                return Stop.TRANSACTIONAL
            if attributes & CONTROL_MASK:
                self.skip(size, last_offset)
                continue
            if attributes & CODEC_MASK:
                return Stop.COMPRESSED
            try:
                self.append_payload(
                    view[at + HEADER_SIZE : at + size],
                    count,
                    base_offset,
                    delta,
                    base_timestamp,
                    max_timestamp if attributes & TIMESTAMP_TYPE_MASK else None,
                )
            except InvalidRecordError as error:
                return self._corrupt(str(error))
            self.skip(size, last_offset)

    def skip(self, size: int, last_offset: int) -> None:
        """Pass the batch at `position`, which has `size` bytes and ends at `last_offset`."""
        self.position += size
        self.next_offset = max(self.next_offset, last_offset + 1)

    def append_payload(
        self,
        payload: _Buffer,
        count: int,
        base_offset: int,
        last_offset_delta: int,
        base_timestamp: int,
        append_timestamp: int | None,
    ) -> None:
        """Add the records of one batch, decompressed; the other arguments come from its header.

        Raises InvalidRecordError and then adds nothing of the batch.
        """
        data = bytes(payload)
        timestamp_type = 0 if append_timestamp is None else 1
        found: list[_Row] = []
        size = 0
        for delta, timestamp, key_at, key_size, value_at, value_size, headers_at, header_count, end in walk(
            data, count, last_offset_delta, base_timestamp, False
        ):
            offset = base_offset + delta
            if not self.start_offset <= offset < self._end_offset:
                continue
            key = _part(data, key_at, key_size) if self._wanted & Wanted.KEY else None
            value = _part(data, value_at, value_size) if self._wanted & Wanted.VALUE else None
            headers: tuple[tuple[str, bytes | None], ...] = ()
            if self._wanted & Wanted.HEADERS and header_count:
                headers = decode_headers(data, headers_at, header_count)
                size += end - headers_at
            size += len(key or b"") + len(value or b"")
            time = timestamp if append_timestamp is None else append_timestamp
            found.append((offset, time, timestamp_type, key, value, headers))
        self._waiting += found
        self.rows += len(found)
        self.size_bytes += size

    def append_record(
        self, offset: int, timestamp: int, timestamp_type: int, key: bytes | None, value: bytes | None
    ) -> None:
        """Add one record without headers (of an old format), if it is in the range. Timestamp in ms."""
        if self.start_offset <= offset < self._end_offset:
            key = key if self._wanted & Wanted.KEY else None
            value = value if self._wanted & Wanted.VALUE else None
            self._waiting.append((offset, timestamp, timestamp_type, key, value, ()))
            self.rows += 1
            self.size_bytes += len(key or b"") + len(value or b"")

    def take(self) -> Columns:
        """Return all rows added so far and start empty. The caller owns the buffers."""
        waiting, self._waiting = self._waiting, []
        self.rows = self.size_bytes = 0
        wanted = self._wanted
        return Columns(
            len(waiting),
            _nullable([row[3] for row in waiting]) if wanted & Wanted.KEY else None,
            _nullable([row[4] for row in waiting]) if wanted & Wanted.VALUE else None,
            _bytes_of("q", [row[0] for row in waiting]) if wanted & Wanted.OFFSET else None,
            _bytes_of("q", [row[1] for row in waiting]) if wanted & Wanted.TIMESTAMP else None,
            _bytes_of("i", [row[2] for row in waiting]) if wanted & Wanted.TIMESTAMP_TYPE else None,
            _header_column([row[5] for row in waiting]) if wanted & Wanted.HEADERS else None,
        )

    def _corrupt(self, fault: str) -> Stop:
        self.fault = fault
        return Stop.CORRUPT


def _part(data: bytes, at: int, size: int) -> bytes | None:
    return None if size < 0 else data[at : at + size]


def _bytes_of(code: str, numbers: list[int]) -> memoryview:
    return memoryview(array(code, numbers)).cast("B")


def _nullable(parts: list[bytes | None]) -> NullableBytes:
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + len(part or b""))
    validity, null_count = _validity([part is not None for part in parts])
    return NullableBytes(
        _bytes_of("i", ends), memoryview(b"".join(part or b"" for part in parts)), validity, null_count
    )


def _header_column(rows: list[tuple[tuple[str, bytes | None], ...]]) -> HeaderColumn:
    ends = [0]
    for headers in rows:
        ends.append(ends[-1] + len(headers))
    validity, null_count = _validity([bool(headers) for headers in rows])
    return HeaderColumn(
        _bytes_of("i", ends),
        validity,
        null_count,
        ends[-1],
        _nullable([header_name_bytes(key) for headers in rows for key, _ in headers]),
        _nullable([value for headers in rows for _, value in headers]),
    )


def _validity(present: list[bool]) -> tuple[memoryview, int]:
    """Return (the bitmap, the count of nulls)."""
    bits = bytearray((len(present) + 7) // 8)
    for index, is_present in enumerate(present):
        if is_present:
            bits[index >> 3] |= 1 << (index & 7)
    return memoryview(bits), present.count(False)

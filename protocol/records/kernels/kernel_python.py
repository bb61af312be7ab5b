"""Per-record work in plain Python: the twin of _kernel.pyx, for installations without a compiler.

A change here needs the same change there: functions, results, errors, indexes and reasons are equal, and tests/protocol
run both. `payload` is the decompressed records of one batch; `count`, `last_offset_delta` and `base_timestamp` come
from its header. Everything is checked as it is read, and nothing is allocated for a count or size before its bytes were
seen. Speed: about 0.5 M records/s.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

from barnabas.protocol.records.errors import (
    BAD_COUNT,
    BAD_HEADERS,
    BAD_KEY,
    BAD_OFFSET,
    BAD_SIZE,
    BAD_TIMESTAMP,
    BAD_VALUE,
    BAD_VARINT,
    BYTES_AFTER_LAST,
    CUT_SHORT,
    LEFT_OVER,
    CorruptRecordError,
    InvalidRecordError,
)
from barnabas.protocol.records.layout import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    MIN_RECORD_SIZE,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
)
from barnabas.protocol.records.record import Headers, Record, RecordsSummary, header_name_bytes
from barnabas.protocol.records.seal import seal

_Buffer = bytes | bytearray | memoryview
_Row = TypeVar("_Row", bound=tuple[Any, ...])

_INT32_MAX: Final = 0x7FFF_FFFF
_INT64_MIN: Final = -0x8000_0000_0000_0000
_INT64_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF

_BATCH: Final = InvalidRecordError.BATCH

_MAGIC_END: Final = 17
_SCAN_HEAD = struct.Struct(">qi4xb6xi")  # base offset, length, magic, last offset delta
_LZ4_BLOCK_SIZE = struct.Struct("<I")
_MIN_MESSAGE_LENGTH: Final = 14
"""Of format 0: crc, magic, attributes, key size, value size."""


def check_payload(
    payload: _Buffer, count: int, last_offset_delta: int, base_timestamp: int, contiguous: bool
) -> RecordsSummary:
    """Check all records without building any. Raises InvalidRecordError at the first that breaks a rule.

    `contiguous`: the offset deltas must be exactly 0, 1, 2, ...; otherwise (a compacted log) they must only ascend.
    """
    data = bytes(payload)
    max_timestamp, max_delta, min_timestamp, null_keys = NO_TIMESTAMP, -1, NO_TIMESTAMP, 0
    for delta, timestamp, _, key_size, *_ in walk(data, count, last_offset_delta, base_timestamp, contiguous):
        if timestamp > max_timestamp:
            max_timestamp, max_delta = timestamp, delta
        if timestamp != NO_TIMESTAMP and (timestamp < min_timestamp or min_timestamp == NO_TIMESTAMP):
            min_timestamp = timestamp
        if key_size < 0:
            null_keys += 1
    return RecordsSummary(max_timestamp, max_delta, min_timestamp, null_keys, len(data))


def decode_payload(
    payload: _Buffer,
    count: int,
    base_offset: int,
    last_offset_delta: int,
    base_timestamp: int,
    append_timestamp: int | None,
) -> list[Record]:
    """Return all records. `append_timestamp` is the timestamp of all of them under LogAppendTime, otherwise None.

    Raises InvalidRecordError as `check_payload` does for a log that may be compacted.
    """
    data = bytes(payload)
    max_delta = _INT64_MAX - base_offset
    records: list[Record] = []
    for delta, timestamp, key_at, key_size, value_at, value_size, headers_at, header_count, _ in walk(
        data, count, last_offset_delta, base_timestamp, False
    ):
        if delta > max_delta:
            raise InvalidRecordError(len(records), BAD_OFFSET)
        records.append(
            Record(
                base_offset + delta,
                timestamp if append_timestamp is None else append_timestamp,
                None if key_size < 0 else data[key_at : key_at + key_size],
                None if value_size < 0 else data[value_at : value_at + value_size],
                decode_headers(data, headers_at, header_count) if header_count else (),
            )
        )
    return records


def decode_fetched(
    payload: _Buffer,
    count: int,
    base_offset: int,
    last_offset_delta: int,
    base_timestamp: int,
    append_timestamp: int | None,
    kind: type[_Row],
    topic: str,
    partition: int,
    timestamp_type: int,
) -> list[_Row]:
    """Return what `decode_payload` does as rows of a named tuple, which are made in one step.

    `kind` has the fields topic, partition, offset, timestamp, timestamp_type, key, value, headers.
    """
    records = decode_payload(payload, count, base_offset, last_offset_delta, base_timestamp, append_timestamp)
    return [
        tuple.__new__(kind, (topic, partition, offset, timestamp, timestamp_type, key, value, headers))
        for offset, timestamp, key, value, headers in records
    ]


def find_timestamp(
    payload: _Buffer, count: int, last_offset_delta: int, base_timestamp: int, target: int
) -> tuple[int, int] | None:
    """Return (offset delta, timestamp) of the first record whose timestamp is `target` or later, or None.

    Raises InvalidRecordError for a bad record before that one.
    """
    for walked in walk(bytes(payload), count, last_offset_delta, base_timestamp, False):
        if walked[1] >= target:
            return walked[0], walked[1]
    return None


def append_record(
    target: bytearray,
    limit: int,
    offset_delta: int,
    timestamp_delta: int,
    key: _Buffer | None,
    value: _Buffer | None,
    headers: Sequence[tuple[str, _Buffer | None]],
) -> int:
    """Write one record to the end of `target` and return its size, or write nothing and return 0.

    0 when `target` would grow beyond `limit` bytes (negative: no limit). Raises ValueError for a number that does not
    fit its field, TypeError for a key or value that is not bytes.
    """
    key, value = _as_bytes(key), _as_bytes(value)
    encoded_headers = _encode_headers(headers)
    body = _body_size(offset_delta, timestamp_delta, key, value, encoded_headers)
    size = _varint_size(body) + body
    if 0 <= limit < len(target) + size:
        return 0
    _append_varint(target, body)
    target.append(0)
    _append_varint(target, timestamp_delta)
    _append_varint(target, offset_delta)
    _append_nullable(target, key)
    _append_nullable(target, value)
    _append_varint(target, len(encoded_headers))
    for header_key, header_value in encoded_headers:
        _append_nullable(target, header_key)
        _append_nullable(target, header_value)
    return size


def append_records(
    target: bytearray,
    limit: int,
    offset_delta: int,
    timestamp_delta: int,
    keys: Sequence[_Buffer | None] | None,
    values: Sequence[_Buffer | None],
    begin: int,
    headers: Sequence[tuple[str, _Buffer | None]],
) -> int:
    """Write the records from `values[begin]` on to the end of `target`, up to `limit`, and return how many.

    The first has `offset_delta`, each further one the next; all have the timestamp and the headers. `keys` None: they
    have none. Raises as `append_record`; `target` is then unchanged.
    """
    start = len(target)
    index = begin
    try:
        while index < len(values) and append_record(
            target,
            limit,
            offset_delta + (index - begin),
            timestamp_delta,
            None if keys is None else keys[index],
            values[index],
            headers,
        ):
            index += 1
    except BaseException:
        del target[start:]
        raise
    return index - begin


def one_record_batch(timestamp: int, key: _Buffer | None, value: _Buffer | None) -> bytearray:
    """Return an uncompressed batch of one record without headers, at a fraction of a builder's cost.

    `timestamp` in ms. Raises ValueError if it does not fit its field, TypeError for a key or value that is not bytes.
    """
    batch = bytearray(HEADER_SIZE)
    append_record(batch, -1, 0, 0, key, value, ())
    no_producer = NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE
    seal(batch, 0, NO_PARTITION_LEADER_EPOCH, (0, 0, timestamp, timestamp, *no_producer, 1))
    return batch


def find_batch(buffer: _Buffer, position: int, target_offset: int) -> tuple[int, int, int, int]:
    """Find the first batch from `position` on whose last offset is `target_offset` or later.

    Only batch heads are read, so a batch may extend beyond the buffer. Returns (position, base offset, last offset,
    size in bytes), or (position to continue from, -1, -1, 0), a position that may be beyond the buffer. In a message
    set of format 0 or 1 a message's offset is both offsets. Raises CorruptRecordError for an impossible head.
    """
    if position < 0:
        raise ValueError(f"position {position} is negative")
    end = len(buffer)
    while end - position >= _MAGIC_END:
        if end - position >= _SCAN_HEAD.size:
            base_offset, length, magic, delta = _SCAN_HEAD.unpack_from(buffer, position)
        else:
            base_offset, length, magic, delta = *struct.unpack_from(">qi4xb", buffer, position), 0
            if magic == MAGIC_V2:
                break
        if magic != MAGIC_V2:
            delta = 0
        if (
            not 0 <= magic <= MAGIC_V2
            or length < (HEADER_SIZE - LOG_OVERHEAD if magic == MAGIC_V2 else _MIN_MESSAGE_LENGTH)
            or base_offset < 0
            or not 0 <= delta <= _INT64_MAX - base_offset
        ):
            raise CorruptRecordError(
                f"no batch at position {position}: magic {magic}, length {length}, base offset {base_offset}, "
                f"last offset delta {delta}"
            )
        if base_offset + delta >= target_offset:
            return position, base_offset, base_offset + delta, length + LOG_OVERHEAD
        position += length + LOG_OVERHEAD
    return position, -1, -1, 0


def find_lz4_end(frame: _Buffer, position: int, gap: int) -> int:
    """Return the position of the first end mark or block of no bytes in an lz4 frame, from the block at `position` on.

    Such a block has size 0 and bit 31 (stored as it is), or it is compressed and its one byte is below 16. `gap` bytes
    follow each block. Returns -1 for blocks that go beyond the frame.
    """
    last = len(frame) - 4
    while 0 <= position <= last:
        (word,) = _LZ4_BLOCK_SIZE.unpack_from(frame, position)
        size = word & 0x7FFFFFFF
        if size == 0 or (word == 1 and position < last and frame[position + 4] < 16):
            return position
        position += 4 + size + gap
    return -1


def murmur2(key: _Buffer) -> int:
    """Return the hash of a record key that Java clients use, an int32: partition = (hash & 0x7fffffff) % partitions."""
    data = bytes(key)
    size = len(data)
    mixed = (0x9747B28C ^ size) & 0xFFFF_FFFF
    aligned = size & ~3
    for (word,) in struct.iter_unpack("<I", data[:aligned]):
        word = word * 0x5BD1E995 & 0xFFFF_FFFF
        word = (word ^ word >> 24) * 0x5BD1E995 & 0xFFFF_FFFF
        mixed = (mixed * 0x5BD1E995 & 0xFFFF_FFFF) ^ word
    if size != aligned:
        mixed = (mixed ^ int.from_bytes(data[aligned:], "little")) * 0x5BD1E995 & 0xFFFF_FFFF
    mixed = (mixed ^ mixed >> 13) * 0x5BD1E995 & 0xFFFF_FFFF
    mixed ^= mixed >> 15
    return mixed - 0x1_0000_0000 if mixed > 0x7FFF_FFFF else mixed


def walk(
    data: bytes, count: int, last_offset_delta: int, base_timestamp: int, contiguous: bool
) -> Iterator[tuple[int, int, int, int, int, int, int, int, int]]:
    """Yield (offset delta, timestamp, key position, size, value position, size, headers position, count, end) of each.

    A size of -1 is null. Every yielded position and size is within `data`.
    """
    total = len(data)
    if count < 0 or count > total // MIN_RECORD_SIZE:
        raise InvalidRecordError(_BATCH, BAD_COUNT)
    at, previous = 0, -1
    for index in range(count):
        size, at = _read_varint(data, at, total, 28, index, CUT_SHORT)
        if size < MIN_RECORD_SIZE - 1:
            raise InvalidRecordError(index, BAD_SIZE)
        end = at + size
        if end > total:
            raise InvalidRecordError(index, CUT_SHORT)
        at += 1  # attributes: no bit is defined
        if (byte := data[at]) < 0x80:
            timestamp, at = base_timestamp + ((byte >> 1) ^ -(byte & 1)), at + 1
        else:
            timestamp, at = _read_varint(data, at, end, 63, index, BAD_SIZE)
            timestamp += base_timestamp
        if not _INT64_MIN <= timestamp <= _INT64_MAX:
            raise InvalidRecordError(index, BAD_TIMESTAMP)
        delta, at = _read_varint(data, at, end, 28, index, BAD_SIZE)
        if delta != index if contiguous else not previous < delta <= last_offset_delta:
            raise InvalidRecordError(index, BAD_OFFSET)
        previous = delta
        key_size, key_at = _read_varint(data, at, end, 28, index, BAD_SIZE)
        if key_size < -1 or key_size > end - key_at:
            raise InvalidRecordError(index, BAD_KEY)
        at = key_at + key_size if key_size > 0 else key_at
        value_size, value_at = _read_varint(data, at, end, 28, index, BAD_SIZE)
        if value_size < -1 or value_size > end - value_at:
            raise InvalidRecordError(index, BAD_VALUE)
        at = value_at + value_size if value_size > 0 else value_at
        header_count, headers_at = _read_varint(data, at, end, 28, index, BAD_SIZE)
        at = headers_at
        if header_count:
            at = _skip_headers(data, at, end, header_count, index)
        if at != end:
            raise InvalidRecordError(index, LEFT_OVER)
        yield delta, timestamp, key_at, key_size, value_at, value_size, headers_at, header_count, at
    if at != total:
        raise InvalidRecordError(_BATCH, BYTES_AFTER_LAST)


def _skip_headers(data: bytes, at: int, end: int, header_count: int, index: int) -> int:
    """Check the headers and return the position after them."""
    if header_count < 0 or header_count > (end - at) // 2:
        raise InvalidRecordError(index, BAD_HEADERS)
    for _ in range(header_count):
        key_size, at = _read_varint(data, at, end, 28, index, BAD_HEADERS)
        if key_size < 0 or key_size > end - at:
            raise InvalidRecordError(index, BAD_HEADERS)
        value_size, at = _read_varint(data, at + key_size, end, 28, index, BAD_HEADERS)
        if value_size < -1 or value_size > end - at:
            raise InvalidRecordError(index, BAD_HEADERS)
        if value_size > 0:
            at += value_size
    return at


def decode_headers(data: bytes, at: int, header_count: int) -> Headers:
    """Return the headers at a position where `walk` has checked them."""
    headers = []
    for index in range(header_count):
        size, at = _read_varint(data, at, len(data), 28, index, BAD_HEADERS)
        key = data[at : at + size].decode("utf-8", "surrogateescape")
        size, at = _read_varint(data, at + size, len(data), 28, index, BAD_HEADERS)
        headers.append((key, None if size < 0 else data[at : at + size]))
        at += max(size, 0)
    return tuple(headers)


def _read_varint(data: bytes, at: int, end: int, max_shift: int, index: int, cut_reason: str) -> tuple[int, int]:
    """Return (value, next position) of a zigzag varint (`max_shift` 28) or varlong (63) that must end before `end`."""
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if shift == max_shift and value >> (32 if max_shift == 28 else 64):
                break
            return (value >> 1) ^ -(value & 1), at
        if shift == max_shift:
            break
        shift += 7
    else:
        raise InvalidRecordError(index, cut_reason)
    raise InvalidRecordError(index, BAD_VARINT)


def _as_bytes(value: _Buffer | None) -> bytes | None:
    """Raises TypeError for a value that is not bytes, before anything is written."""
    return value if value is None or type(value) is bytes else bytes(memoryview(value))


def _encode_headers(headers: Sequence[tuple[str, _Buffer | None]]) -> list[tuple[bytes, bytes | None]]:
    return [(header_name_bytes(key), _as_bytes(value)) for key, value in headers] if headers else []


def _body_size(
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[bytes, bytes | None]],
) -> int:
    if not 0 <= offset_delta <= _INT32_MAX:
        raise ValueError(f"offset delta {offset_delta} is out of range")
    if not _INT64_MIN <= timestamp_delta <= _INT64_MAX:
        raise ValueError(f"timestamp delta {timestamp_delta} does not fit an int64")
    body = 1 + _varint_size(timestamp_delta) + _varint_size(offset_delta) + _varint_size(len(headers))
    body += _nullable_size(key) + _nullable_size(value)
    for header_key, header_value in headers:
        body += _nullable_size(header_key) + _nullable_size(header_value)
    if body > _INT32_MAX:
        raise ValueError(f"a record of {body} bytes is larger than 2 GiB")
    return body


def _nullable_size(value: bytes | None) -> int:
    return 1 if value is None else _varint_size(len(value)) + len(value)


def _varint_size(value: int) -> int:
    zigzag = value << 1 if value >= 0 else ~(value << 1)
    return (zigzag.bit_length() + 6) // 7 or 1


def _append_varint(target: bytearray, value: int) -> None:
    zigzag = value << 1 if value >= 0 else ~(value << 1)
    while zigzag > 0x7F:
        target.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    target.append(zigzag)


def _append_nullable(target: bytearray, value: bytes | None) -> None:
    if value is None:
        target.append(1)  # -1
    else:
        _append_varint(target, len(value))
        target += value

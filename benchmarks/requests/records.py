"""Builder of the record batches to send.

Independent of the broker's own builder, so that a mistake in that one cannot cancel out in a comparison.
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from crc32c import crc32c

from barnabas.protocol.compression import Codec, compress

BATCH_HEADER = struct.Struct(">qiibIhiqqqhii")
BATCH_HEADER_BYTES = 61
_AFTER_CRC = struct.Struct(">hiqqqhii")

assert BATCH_HEADER.size == BATCH_HEADER_BYTES


@dataclass(frozen=True, slots=True)
class Batch:
    """One record batch v2 without a producer id. Base offset 0."""

    data: bytes
    record_count: int


def build_batch(record_count: int, value_bytes: int, *, seed: int = 7) -> Batch:
    """Build `record_count` records without key and headers, each with `value_bytes` of noise and the current time."""
    noise = random.Random(seed)
    return build_batch_of([noise.randbytes(value_bytes) for _ in range(record_count)])


def build_batch_of(values: Sequence[bytes], codec: Codec = Codec.NONE) -> Batch:
    """Build a batch of records without key and headers, with the current time."""
    records = bytearray()
    for index, value in enumerate(values):
        body = b"\0" + _varint(0) + _varint(index) + _varint(-1) + _varint(len(value)) + value + _varint(0)
        records += _varint(len(body)) + body
    payload = bytes(records) if codec is Codec.NONE else compress(codec, bytes(records))
    count = len(values)
    now_ms = int(time.time() * 1000)
    # attributes, last offset delta, base and maximum timestamp, producer id, epoch, base sequence, count
    after_crc = (codec.value, count - 1, now_ms, now_ms, -1, -1, -1, count)
    crc = crc32c(payload, crc32c(_AFTER_CRC.pack(*after_crc)))
    size_after_length = BATCH_HEADER_BYTES + len(payload) - 12
    return Batch(BATCH_HEADER.pack(0, size_after_length, -1, 2, crc, *after_crc) + payload, count)


def build_full_batch(max_bytes: int, value_bytes: int) -> Batch:
    """Build a batch with as many records as fit into `max_bytes`, including the header."""
    record_bytes = len(build_batch(2, value_bytes).data) - len(build_batch(1, value_bytes).data)
    count = (max_bytes - BATCH_HEADER_BYTES) // (record_bytes + 1)  # offset deltas above 63 take a second byte
    batch = build_batch(count, value_bytes)
    if len(batch.data) > max_bytes:
        raise AssertionError(f"{count} records make {len(batch.data)} bytes, not the {max_bytes} wanted")
    return batch


def _varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)

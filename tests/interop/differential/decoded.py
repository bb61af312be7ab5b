"""Batches and index entries without what may differ: the output of a codec's library, and the clock of a cleaner."""

from __future__ import annotations

import struct
from contextlib import suppress

from barnabas.protocol.errors import DecompressionError
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.layout import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CRC_POSITION,
    DELETE_HORIZON_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
)
from barnabas.protocol.records.reader import MAX_DECOMPRESSED_BYTES, borrow_payload, read_records
from tests.support.storage.records import build

_LENGTH_POSITION = 8
_ENTRY = struct.Struct(">ii")
_NOWHERE = -1
_UNUSED_BITS = 12
_BASE_TIMESTAMP = slice(27, 35)


def decoded(data: bytes) -> bytes:
    """Return batches with their records decompressed, the size of that, and without a CRC.

    The codec moves to unused bits of the attributes, so that the records can be read. Batches that do not decompress
    stay.
    """
    found = bytearray()
    for batch in iter_batches(data):
        plain = bytearray(batch.bytes)
        if batch.codec:
            with suppress(DecompressionError):
                plain[HEADER_SIZE:] = borrow_payload(batch, MAX_DECOMPRESSED_BYTES)
                struct.pack_into(">i", plain, _LENGTH_POSITION, len(plain) - LOG_OVERHEAD)
                struct.pack_into(">I", plain, CRC_POSITION, 0)
                attributes = batch.attributes & ~CODEC_MASK | batch.codec << _UNUSED_BITS
                struct.pack_into(">H", plain, ATTRIBUTES_POSITION, attributes & 0xFFFF)
        found += plain
    return bytes(found)


def without_horizons(data: bytes) -> bytes:
    """Return batches without the delete horizons that a cleaner has stamped by its clock.

    Such a batch gets the timestamp of its first record as the base of the others, and no CRC. Of one that is cut off at
    the end, only the place is left.
    """
    found, end = bytearray(), 0
    for batch in iter_batches(data):
        end = batch.position + batch.size_bytes
        if not batch.has_delete_horizon:
            found += batch.bytes
            continue
        again = build(read_records(batch), base_offset=batch.base_offset)
        plain = bytearray(batch.bytes[:HEADER_SIZE]) + again[HEADER_SIZE:]
        struct.pack_into(">i", plain, _LENGTH_POSITION, len(plain) - LOG_OVERHEAD)
        struct.pack_into(">I", plain, CRC_POSITION, 0)
        plain[_BASE_TIMESTAMP] = again[_BASE_TIMESTAMP]
        found += plain
    rest = data[end:]
    has_horizon = len(rest) > ATTRIBUTES_POSITION + 1 and rest[ATTRIBUTES_POSITION + 1] & DELETE_HORIZON_MASK
    return bytes(found) + (rest[:CRC_POSITION] if has_horizon else rest)


def index_without_positions(index: bytes, log: bytes, base_offset: int) -> bytes:
    """Return an offset index with the number of the batch at each entry's position, -1 for a wrong position.

    The zeros behind the entries, which a running broker has, are left out.
    """
    numbers = {batch.position: number for number, batch in enumerate(iter_batches(log))}
    last_offsets = {batch.position: batch.last_offset for batch in iter_batches(log)}
    entries = []
    size = -(-len(index.rstrip(b"\0")) // _ENTRY.size) * _ENTRY.size
    for relative, position in _ENTRY.iter_unpack(index[:size]):
        is_right = last_offsets.get(position) == base_offset + relative
        entries.append(_ENTRY.pack(relative, numbers[position] if is_right else _NOWHERE))
    return b"".join(entries)

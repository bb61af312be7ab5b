"""Writes the header of a record batch once its records are complete. Layout: layout.py."""

from __future__ import annotations

import struct

from barnabas.protocol.crc32c import crc32c
from barnabas.protocol.records.layout import ATTRIBUTES_POSITION, CRC_POSITION, HEADER, LOG_OVERHEAD, MAGIC_V2

_pack_crc = struct.Struct(">I").pack_into


def seal(
    batch: bytearray, base_offset: int, leader_epoch: int, fields: tuple[int, int, int, int, int, int, int, int]
) -> None:
    """Write the header of a complete batch in place: its size and CRC, and `fields` from the attributes on, in order.

    Raises ValueError for a number that does not fit its field.
    """
    try:
        HEADER.pack_into(batch, 0, base_offset, len(batch) - LOG_OVERHEAD, leader_epoch, MAGIC_V2, 0, *fields)
    except struct.error as error:
        raise ValueError(f"a header field is out of range: {error}") from error
    with memoryview(batch) as view:
        crc = crc32c(view[ATTRIBUTES_POSITION:])
    _pack_crc(batch, CRC_POSITION, crc)

"""The file `<offset:020d>.snapshot`: the producers that a log knew when its end was `offset` (exclusive).

Big-endian:
    int16  version              1
    uint32 crc                  CRC-32C of everything that follows
    int32  count
    per producer, 46 bytes:
        int64 producer_id
        int16 producer_epoch
        int32 last_sequence     of its last batch; -1 without one
        int64 last_offset       -1 without one
        int32 offset_delta      last_offset - first offset of that batch
        int64 timestamp         that batch's maximum timestamp, or the last marker's
        int32 coordinator_epoch -1 without transactions
        int64 txn_first_offset  where an open transaction began; -1 without one

Without producers: 10 bytes. Rows lie in the order in which a Java HashMap walks its keys, because that is what Kafka
writes. Source: Kafka ProducerStateManager, ProducerSnapshot.json.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.protocol.crc32c import crc32c

VERSION = 1

_HEAD = Struct(">hIi")
_ROW = Struct(">qhiqiqiq")
_CRC_END = 6

assert _HEAD.size == 10
assert _ROW.size == 46


class SnapshotRow(NamedTuple):
    """One producer, as it is stored."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    txn_first_offset: int


def encode_snapshot(rows: Sequence[SnapshotRow]) -> bytes:
    """The file's bytes for rows in this order."""
    content = bytearray(_HEAD.size + len(rows) * _ROW.size)
    _HEAD.pack_into(content, 0, VERSION, 0, len(rows))
    for index, row in enumerate(rows):
        _ROW.pack_into(content, _HEAD.size + index * _ROW.size, *row)
    _HEAD.pack_into(content, 0, VERSION, crc32c(bytes(content[_CRC_END:])), len(rows))
    return bytes(content)


def decode_snapshot(content: bytes, path: Path) -> list[SnapshotRow]:
    """The rows in their order. Raises CorruptFileError when version, size or CRC are wrong."""
    if len(content) < _HEAD.size:
        raise CorruptFileError(path, f"producer snapshot has {len(content)} bytes, at least {_HEAD.size} are needed")
    version, crc, count = _HEAD.unpack_from(content)
    if version != VERSION:
        raise CorruptFileError(path, f"producer snapshot has version {version}, only {VERSION} is known")
    computed = crc32c(content[_CRC_END:])
    if computed != crc:
        raise CorruptFileError(path, f"producer snapshot: stored crc {crc:#010x}, computed {computed:#010x}")
    if len(content) != _HEAD.size + count * _ROW.size:
        raise CorruptFileError(path, f"producer snapshot of {len(content)} bytes promises {count} producers")
    return [SnapshotRow(*_ROW.unpack_from(content, _HEAD.size + index * _ROW.size)) for index in range(count)]


def write_snapshot(path: Path, rows: Sequence[SnapshotRow], *, durably: bool) -> None:
    """Write the file. Raises OSError. It is not renamed into place: its CRC tells a half one, which is then ignored."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        content = encode_snapshot(rows)
        written = 0
        while written < len(content):
            written += os.write(descriptor, content[written:])
        if durably:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def java_hash_map_order(producer_ids: Iterable[int], table_size: int) -> list[int]:
    """The ids, given in the order of their insertion, as a Java HashMap with so many buckets walks them."""
    mask = table_size - 1
    return sorted(producer_ids, key=lambda producer_id: _java_long_hash(producer_id) & mask)


def _java_long_hash(value: int) -> int:
    """java.lang.Long.hashCode and the spreading of java.util.HashMap, as an unsigned int32."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    folded = (value ^ value >> 32) & 0xFFFF_FFFF
    return folded ^ folded >> 16

"""The file `<offset:020d>.snapshot`: the producer state of a log at end offset `offset` (exclusive).

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

A snapshot without producers has 10 bytes. Rows are in the iteration order of a Java HashMap, as Kafka writes them.
Source: Kafka ProducerStateManager, ProducerSnapshot.json.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from barnabas.broker.storage.files.durable_files import write_all
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.protocol.crc32c import crc32c

VERSION = 1

_HEAD = Struct(">hIi")
_ROW = Struct(">qhiqiqiq")
_CRC_END = 6

assert _HEAD.size == 10
assert _ROW.size == 46


class SnapshotRow(NamedTuple):
    """One producer's row."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    txn_first_offset: int


def encode_snapshot(rows: Sequence[SnapshotRow]) -> bytes:
    """Return the file's bytes for rows in this order."""
    content = bytearray(_HEAD.size + len(rows) * _ROW.size)
    _HEAD.pack_into(content, 0, VERSION, 0, len(rows))
    for index, row in enumerate(rows):
        _ROW.pack_into(content, _HEAD.size + index * _ROW.size, *row)
    _HEAD.pack_into(content, 0, VERSION, crc32c(bytes(content[_CRC_END:])), len(rows))
    return bytes(content)


def decode_snapshot(content: bytes, path: Path) -> list[SnapshotRow]:
    """Return the rows in stored order. Raises CorruptFileError for a wrong version, size or CRC."""
    if len(content) < _HEAD.size:
        raise CorruptFileError(path, f"producer snapshot has {len(content)} bytes, at least {_HEAD.size} are needed")
    version, crc, count = _HEAD.unpack_from(content)
    if version != VERSION:
        raise CorruptFileError(path, f"producer snapshot has version {version}, only {VERSION} is supported")
    computed = crc32c(content[_CRC_END:])
    if computed != crc:
        raise CorruptFileError(path, f"producer snapshot: stored crc {crc:#010x}, computed {computed:#010x}")
    if len(content) != _HEAD.size + count * _ROW.size:
        raise CorruptFileError(path, f"producer snapshot of {len(content)} bytes should have {count} producers")
    return [SnapshotRow(*_ROW.unpack_from(content, _HEAD.size + index * _ROW.size)) for index in range(count)]


def write_snapshot(path: Path, rows: Sequence[SnapshotRow], *, durably: bool) -> None:
    """Write the file in place, without a rename: the CRC reveals a torn one, which is then ignored. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        write_all(descriptor, encode_snapshot(rows))
        if durably:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def java_hash_map_order(producer_ids: Iterable[int], table_size: int) -> list[int]:
    """Sort ids, given in insertion order, into the iteration order of a Java HashMap with `table_size` buckets."""
    mask = table_size - 1
    return sorted(producer_ids, key=lambda producer_id: _java_long_hash(producer_id) & mask)


def _java_long_hash(value: int) -> int:
    """Return java.lang.Long.hashCode with HashMap's bit spreading, as an unsigned int32."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    folded = (value ^ value >> 32) & 0xFFFF_FFFF
    return folded ^ folded >> 16

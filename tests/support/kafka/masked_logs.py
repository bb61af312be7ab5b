"""Files of two brokers that served the same transactional traffic, with all times masked.

Masked are the timestamps and CRCs of batches, the times within `__transaction_state` and `__consumer_offsets` values,
the timestamps of rows in `.snapshot` files, and the topic id. Everything else stays as it is on disk: positions, sizes,
offsets, ids, epochs, attributes, keys and values. `.timeindex` files are left out: which of several markers of one
millisecond is the last of its time, and so has an entry, is a matter of the clock.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

from barnabas.broker.storage.producers.snapshot import decode_snapshot, encode_snapshot
from barnabas.protocol.records.batch import RecordBatch, iter_batches
from barnabas.protocol.records.reader import read_records

_CRC = slice(17, 21)
_TIMESTAMPS = slice(27, 43)
_TOPIC_ID = re.compile(rb"(?<=^version: 0\n)topic_id: \S{22}$")
Mask = Callable[[bytes], bytes]


def masked_files(data: Path, directories: Iterable[str]) -> dict[str, bytes]:
    """Return the files of these partition directories with their times masked, by `<directory>/<name>`."""
    paths = [path for name in directories for path in sorted((data / name).iterdir()) if path.suffix != ".timeindex"]
    return {f"{path.parent.name}/{path.name}": _masked(path.parent.name, path) for path in paths}


def mask_transaction_state(value: bytes) -> bytes:
    """Zero the two times of a TransactionLogValue of version 0 or 1."""
    (version,) = struct.unpack_from(">h", value)
    at = 2 + 8 + 2 + 4 + 1
    at = _after_partitions(value, at) if version == 0 else _after_compact_partitions(value, at)
    return value[:at] + bytes(16) + value[at + 16 :]


def mask_offset(value: bytes) -> bytes:
    """Zero the commit time of an OffsetCommitValue of version 3 or 4, and the topic id."""
    (version,) = struct.unpack_from(">h", value)
    if version == 3:
        return value[:-8] + bytes(8)
    assert version == 4, f"OffsetCommitValue version {version}"
    size, at = _varint(value, 2 + 8 + 4)
    at += size - 1
    tags = value[at + 8 :]
    assert tags[:1] == b"\0" or tags[:3] == b"\1\0\x10", tags
    return value[:at] + bytes(8) + tags[:3] + bytes(len(tags[3:]))


def _masked(directory: str, path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".log":
        mask = {"__transaction_state": mask_transaction_state, "__consumer_offsets": mask_offset}
        return _mask_batches(content, mask.get(directory.rpartition("-")[0]))
    if path.suffix == ".snapshot":
        return encode_snapshot([row._replace(timestamp=0) for row in decode_snapshot(content, path)])
    return _TOPIC_ID.sub(b"topic_id: *", content)


def _mask_batches(log: bytes, mask: Mask | None) -> bytes:
    kept = bytearray()
    for batch in iter_batches(log):
        data = bytearray(log[batch.position : batch.position + batch.size_bytes])
        if mask is not None and not batch.is_control:
            for record in read_records(RecordBatch(bytes(data))):
                if record.value is not None:
                    at = data.index(record.value)
                    data[at : at + len(record.value)] = mask(record.value)
        data[_CRC] = bytes(4)
        data[_TIMESTAMPS] = bytes(16)
        kept += data
    return bytes(kept)


def _after_partitions(value: bytes, at: int) -> int:
    (topics,) = struct.unpack_from(">i", value, at)
    at += 4
    for _ in range(topics):
        (size,) = struct.unpack_from(">h", value, at)
        (count,) = struct.unpack_from(">i", value, at + 2 + size)
        at += 2 + size + 4 + 4 * count
    return at


def _after_compact_partitions(value: bytes, at: int) -> int:
    topics, at = _varint(value, at)
    for _ in range(max(topics - 1, 0)):
        size, at = _varint(value, at)
        count, at = _varint(value, at + size - 1)
        at += 4 * (count - 1)
        tags, at = _varint(value, at)
        assert tags == 0
    return at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned varint and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at

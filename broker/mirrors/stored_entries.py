"""Offsets and sizes of stored entries: batches, and messages of the old formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.layout import LOG_OVERHEAD, MAGIC_POSITION, NO_PARTITION_LEADER_EPOCH
from barnabas.protocol.records.legacy.messages import LegacyMessage, is_legacy_magic

if TYPE_CHECKING:
    from collections.abc import Iterator


class Entry(NamedTuple):
    """A stored entry. `crc` is that of its header, unchecked."""

    position: int
    base_offset: int
    """Of a compressed message of an old format: its last offset, the only visible one."""
    last_offset: int
    size_bytes: int
    crc: int
    epoch: int = NO_PARTITION_LEADER_EPOCH
    """Leader epoch. The CRC does not cover it."""


def iter_entries(records: memoryview) -> Iterator[Entry]:
    """Iterate over the whole entries from the start of `records`. Raises CorruptRecordError for an impossible head."""
    position = 0
    while (present := len(records) - position) > MAGIC_POSITION:
        size = LOG_OVERHEAD + int.from_bytes(records[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
        if size <= MAGIC_POSITION:
            raise CorruptRecordError(f"an entry of {size} bytes")
        if present < size:
            return
        if is_legacy_magic(records[position + MAGIC_POSITION]):
            message = LegacyMessage(records, position)
            yield Entry(position, message.last_offset, message.last_offset, size, message.crc)
        else:
            batch = RecordBatch(records, position)
            yield Entry(position, batch.base_offset, batch.last_offset, size, batch.crc, batch.partition_leader_epoch)
        position += size


def has_gap(records: memoryview, offset: int) -> bool:
    """Return whether offsets from `offset` on have no record: compaction has removed them.

    A compressed message of an old format does not show its first offset, so it counts as a gap. Raises
    CorruptRecordError.
    """
    for entry in iter_entries(records):
        if entry.last_offset < offset:
            continue
        if entry.base_offset > offset:
            return True
        if not is_legacy_magic(records[entry.position + MAGIC_POSITION]):
            batch = RecordBatch(records, entry.position)
            if batch.record_count <= batch.last_offset_delta:
                return True
        offset = entry.last_offset + 1
    return False

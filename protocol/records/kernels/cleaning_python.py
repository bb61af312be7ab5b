"""The cleaner's per-record work in plain Python: the twin of _cleaning.pyx, for installations without a compiler.

A change here needs the same change there: results, errors and kept records are equal. The hash is not: keyed BLAKE2b
here, SipHash there. A table is never shared between the two. Source: Kafka SkimpyOffsetMap, Cleaner,
MemoryRecords.filterTo.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from barnabas.protocol.crc32c import crc32c
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.kernels.cleaned import (
    ENTRY_BYTES,
    HASH_MASK,
    AddedBatches,
    AddedRecords,
    FilteredBatches,
    FilteredRecords,
    FilterRules,
    Stop,
)
from barnabas.protocol.records.kernels.kernel_python import walk
from barnabas.protocol.records.layout import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    HEADER_SIZE,
    MAGIC_POSITION,
    MAGIC_V2,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)
from barnabas.protocol.records.seal import seal
from barnabas.protocol.varint import append_unsigned, zigzag64

_Buffer = bytes | bytearray | memoryview

_SLOT: Final = struct.Struct("=QQq")
_WORDS: Final = struct.Struct("=QQ")
_PAIR: Final = struct.Struct("=qq")
_UINT64: Final = 2**64
_INT64_MAX: Final = 2**63 - 1
_HASHED_PROBES: Final = 16
_ASIDE_ATTRIBUTES: Final = CODEC_MASK | TRANSACTIONAL_MASK | CONTROL_MASK
_KEPT_ATTRIBUTES: Final = _ASIDE_ATTRIBUTES | TIMESTAMP_TYPE_MASK

assert _SLOT.size == ENTRY_BYTES


@dataclass(slots=True)
class _Selection:
    """The records of a batch that stay, and the outcome for the batch."""

    kept: list[tuple[int, int, int, int, int]]
    """(offset delta, timestamp, key size, start and end of the unchanged rest)"""
    invalid: int
    rewrites: bool
    sets_horizon: bool
    has_horizon: bool
    base_timestamp: int
    max_timestamp: int


class OffsetTable:
    """Open-addressing table from the hash of a key to the last offset put for it, in the caller's memory.

    A slot is 24 bytes: 16 of hash, 8 of offset + 1, zeros when free. Keys are not stored: two keys with the same hash
    count as one, and without knowing `secret` (16 bytes) a client cannot produce such a pair. `memory` must be writable
    and zeroed, and stays locked until `close`. `hash_mask` shortens the hash, for tests of collisions.
    """

    def __init__(self, memory: memoryview | bytearray, secret: bytes, hash_mask: int = HASH_MASK) -> None:
        if len(secret) != 16:
            raise ValueError(f"a secret has 16 bytes, not {len(secret)}")
        self._memory = memoryview(memory).cast("B")
        self._secret = secret
        self._low_mask = hash_mask % _UINT64
        self._high_mask = hash_mask // _UINT64
        self.slots = len(self._memory) // ENTRY_BYTES
        self.entries = 0

    def close(self) -> None:
        """Release the memory; the table is empty afterwards. May be called again."""
        self.slots = self.entries = 0
        self._memory.release()

    def put(self, key: _Buffer, offset: int) -> None:
        """Set a key's last offset. Raises ValueError when all slots are taken, even for a key that has one."""
        if self.entries >= self.slots:
            raise ValueError(f"the offset table is full: {self.slots} keys")
        low, high = self._hash(key)
        for at in self._places(low, high):
            found_low, found_high, next_offset = _SLOT.unpack_from(self._memory, at)
            if not next_offset:
                self.entries += 1
            elif (found_low, found_high) != (low, high):
                continue
            _SLOT.pack_into(self._memory, at, low, high, offset + 1)
            return

    def get(self, key: _Buffer) -> int:
        """Return the last offset put for a key, or -1."""
        low, high = self._hash(key)
        for at in self._places(low, high):
            found_low, found_high, next_offset = _SLOT.unpack_from(self._memory, at)
            if not next_offset:
                break
            if (found_low, found_high) == (low, high):
                return int(next_offset) - 1
        return -1

    def add_batches(self, buffer: _Buffer, size: int, from_offset: int, max_entries: int) -> AddedBatches:
        """Put the keys of all records at or above `from_offset` in the buffer's first `size` bytes.

        Stops before a batch that is cut short (CUT) or not plain (ASIDE), and at the first record whose key would
        exceed `max_entries` (FULL), possibly in the middle of a batch. Checks CRCs. Raises CorruptRecordError,
        InvalidRecordError.
        """
        view = memoryview(buffer)[:size]
        position = read = 0
        latest = -1
        while True:
            batch, stop = _open_batch(view, position)
            if batch is None:
                return AddedBatches(position, stop, read, latest)
            added = self.add_records(
                batch.payload,
                batch.record_count,
                batch.base_offset,
                batch.last_offset_delta,
                batch.base_timestamp,
                from_offset,
                max_entries,
            )
            read += added.records_read
            if added.last_offset >= 0:
                latest = added.last_offset
            if added.is_full:
                return AddedBatches(position, Stop.FULL, read, latest)
            if batch.last_offset >= from_offset:
                latest = batch.last_offset
            position += batch.size_bytes

    def add_records(
        self,
        payload: _Buffer,
        count: int,
        base_offset: int,
        last_offset_delta: int,
        base_timestamp: int,
        from_offset: int,
        max_entries: int,
    ) -> AddedRecords:
        """As `add_batches` for one batch's records, decompressed. Raises InvalidRecordError."""
        data = bytes(payload)
        limit = min(max_entries, self.slots)
        read, latest = 0, -1
        for delta, _, key_at, key_size, *_ in walk(data, count, last_offset_delta, base_timestamp, False):
            offset = base_offset + delta
            if key_size >= 0 and offset >= from_offset:
                if self.entries >= limit:
                    return AddedRecords(True, read, latest)
                self.put(data[key_at : key_at + key_size], offset)
                latest = offset
            read += 1
        return AddedRecords(False, read, latest)

    def filter_batches(
        self, buffer: _Buffer, size: int, output: memoryview | bytearray, rules: FilterRules
    ) -> FilteredBatches:
        """Write the cleaned batches of the buffer's first `size` bytes to `output`.

        A record stays if the table has no later offset for its key, or if it is above `rules.latest_offset`. A record
        without a key goes, and so does a tombstone whose batch's delete horizon has passed. A batch that loses no
        record is copied; the first time that a batch keeps a tombstone it gets its delete horizon. Stops before a batch
        that is cut short (CUT), not plain (ASIDE) or does not fit (NO_ROOM). Checks CRCs. Raises CorruptRecordError,
        InvalidRecordError.
        """
        view = memoryview(buffer)[:size]
        last_data = {
            _PAIR.unpack_from(rules.last_data_batches, at) for at in range(0, len(rules.last_data_batches), _PAIR.size)
        }
        position = filled = read = written = invalid = room_needed = 0
        batches: list[tuple[int, int, int, int]] = []
        while True:
            batch, stop = _open_batch(view, position)
            if batch is None:
                break
            payload = bytes(batch.payload)
            selection = self._select(
                payload,
                batch.record_count,
                batch.base_offset,
                batch.last_offset_delta,
                batch.base_timestamp,
                batch.max_timestamp,
                batch.attributes,
                False,
                rules,
            )
            is_kept_empty = batch.next_offset == rules.round_end_offset or (
                batch.producer_id >= 0 and (batch.last_offset, batch.producer_id) in last_data
            )
            new: bytes | bytearray | memoryview = _rebuilt(batch, payload, selection, is_kept_empty)
            if len(new) > len(output) - filled:
                stop, room_needed = Stop.NO_ROOM, len(new)
                break
            if new:
                output[filled : filled + len(new)] = new
                batches.append((filled, len(new), batch.last_offset, selection.max_timestamp))
                filled += len(new)
            read += batch.record_count
            written += len(selection.kept)
            invalid += selection.invalid
            position += batch.size_bytes
        return FilteredBatches(position, stop, filled, batches, read, written, invalid, room_needed)

    def filter_records(
        self,
        payload: _Buffer,
        count: int,
        base_offset: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        attributes: int,
        is_marker_of_nothing: bool,
        rules: FilterRules,
    ) -> FilteredRecords:
        """As `filter_batches` for one batch's records, decompressed: the caller builds the new batch.

        `is_marker_of_nothing`: the batch is the end marker of a transaction without remaining records, so it gets a
        delete horizon as well. Raises InvalidRecordError.
        """
        data = bytes(payload)
        selection = self._select(
            data,
            count,
            base_offset,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            attributes,
            is_marker_of_nothing,
            rules,
        )
        return FilteredRecords(
            len(selection.kept),
            selection.invalid,
            bytes(_encoded(data, selection)) if selection.kept and selection.rewrites else None,
            selection.sets_horizon,
            selection.base_timestamp,
            selection.max_timestamp,
        )

    def _select(
        self,
        data: bytes,
        count: int,
        base_offset: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        attributes: int,
        is_marker_of_nothing: bool,
        rules: FilterRules,
    ) -> _Selection:
        """Choose the records to keep and the outcome for the batch."""
        has_append_time = attributes & TIMESTAMP_TYPE_MASK != 0
        has_horizon = attributes & DELETE_HORIZON_MASK != 0
        drops_tombstones = has_horizon and rules.now_ms >= base_timestamp
        kept: list[tuple[int, int, int, int, int]] = []
        invalid, has_tombstones = 0, False
        largest = NO_TIMESTAMP
        for delta, timestamp, key_at, key_size, _, value_size, _, _, end in walk(
            data, count, last_offset_delta, base_timestamp, False
        ):
            if base_offset + delta <= rules.latest_offset:
                if key_size < 0:
                    invalid += 1
                    continue
                if value_size < 0 and drops_tombstones:
                    continue
                if base_offset + delta < self.get(data[key_at : key_at + key_size]):
                    continue
            kept.append((delta, max_timestamp if has_append_time else timestamp, key_size, key_at, end))
            largest = max(largest, timestamp)
            has_tombstones = has_tombstones or value_size < 0
        sets_horizon = (has_tombstones or is_marker_of_nothing) and not has_horizon
        rewrites = len(kept) < count or sets_horizon
        if kept and rewrites:
            horizon = rules.new_horizon_ms if sets_horizon else base_timestamp
            has_horizon = (has_horizon or sets_horizon) and horizon >= 0
            base_timestamp = horizon if has_horizon else kept[0][1]
            if not has_append_time:
                max_timestamp = largest
        return _Selection(kept, invalid, rewrites, sets_horizon, has_horizon, base_timestamp, max_timestamp)

    def _hash(self, key: _Buffer) -> tuple[int, int]:
        low, high = _WORDS.unpack(blake2b(key, key=self._secret, digest_size=16).digest())
        return low & self._low_mask, high & self._high_mask

    def _places(self, low: int, high: int) -> Iterator[int]:
        """Yield a key's slots in probe order: _HASHED_PROBES by the hash, then linear."""
        slots = self.slots
        at = 0
        for attempt in range(_HASHED_PROBES if slots else 0):
            at = ((low + attempt * (high | 1)) % _UINT64) * slots // _UINT64
            yield at * ENTRY_BYTES
        for step in range(1, slots + 1):
            yield (at + step) % slots * ENTRY_BYTES


def _open_batch(view: memoryview, position: int) -> tuple[RecordBatch | None, Stop]:
    """Return the checked batch at `position` if it is complete and plain, otherwise why not."""
    remaining = len(view) - position
    if remaining <= MAGIC_POSITION:
        return None, Stop.CUT
    if view[position + MAGIC_POSITION] < MAGIC_V2:
        return None, Stop.ASIDE
    if remaining < HEADER_SIZE and view[position + MAGIC_POSITION] == MAGIC_V2:
        return None, Stop.CUT
    size = int.from_bytes(view[position + 8 : position + 12], "big", signed=True) + 12
    base_offset = int.from_bytes(view[position : position + 8], "big", signed=True)
    if view[position + MAGIC_POSITION] != MAGIC_V2 or size < HEADER_SIZE:
        raise _no_batch(position, size, base_offset)
    batch = RecordBatch(view, position)
    if base_offset < 0 or not 0 <= batch.last_offset_delta <= _INT64_MAX - base_offset:
        raise _no_batch(position, size, base_offset)
    if size > remaining:
        return None, Stop.CUT
    if batch.attributes & _ASIDE_ATTRIBUTES:
        return None, Stop.ASIDE
    if crc32c(view[position + ATTRIBUTES_POSITION : position + size]) != batch.crc:
        raise CorruptRecordError(f"the batch at position {position} of the buffer has a wrong crc")
    return batch, Stop.CUT


def _no_batch(position: int, size: int, base_offset: int) -> CorruptRecordError:
    return CorruptRecordError(f"no batch at position {position} of the buffer: size {size}, base offset {base_offset}")


def _rebuilt(
    batch: RecordBatch, payload: bytes, selection: _Selection, is_kept_empty: bool
) -> bytes | bytearray | memoryview:
    """Return the batch to write; empty when it is dropped."""
    if selection.kept and not selection.rewrites:
        return batch.bytes
    if not selection.kept and not is_kept_empty:
        return b""
    new = bytearray(HEADER_SIZE)
    attributes = batch.attributes & _KEPT_ATTRIBUTES
    if selection.kept:
        new += _encoded(payload, selection)
        if selection.has_horizon:
            attributes |= DELETE_HORIZON_MASK
    fields = (
        attributes,
        batch.last_offset_delta,
        selection.base_timestamp if selection.kept else NO_TIMESTAMP,
        selection.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        len(selection.kept),
    )
    seal(new, batch.base_offset, batch.partition_leader_epoch, fields)
    return new


def _encoded(data: bytes, selection: _Selection) -> bytearray:
    """Encode the kept records with timestamp deltas from the new base timestamp, otherwise unchanged."""
    new = bytearray()
    for delta, timestamp, key_size, rest_at, end in selection.kept:
        body = bytearray(1)
        append_unsigned(body, zigzag64(_wrapped(timestamp - selection.base_timestamp)))
        append_unsigned(body, zigzag64(delta))
        append_unsigned(body, zigzag64(key_size))
        append_unsigned(new, zigzag64(len(body) + end - rest_at))
        new += body
        new += data[rest_at:end]
    return new


def _wrapped(value: int) -> int:
    """Return `value` wrapped to an int64."""
    return (value + 2**63) % _UINT64 - 2**63

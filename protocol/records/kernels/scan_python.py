"""Scan over a segment's stored batches in plain Python: the twin of _scan.pyx, for installations without a compiler.

Derives what loading a log needs in one pass over the file's bytes, which the caller reads piece by piece: the entries
of both indexes (by the rule of an append), the largest timestamp, the leader epochs, the batches that matter to
producer state, and the first damaged batch. A change here needs the same change there: tests/protocol run both.

Index rule: a batch gets an entry when more than `index_interval_bytes` are between it and the batch of the last entry
(at first, the segment's start), as long as neither index is full; the time index counts as full one entry early, and
gets an entry only for a timestamp above its last entry's. Source: Kafka LogSegment.recover.
"""

from __future__ import annotations

import struct
from typing import Final

from barnabas.protocol.crc32c import crc32c
from barnabas.protocol.records.kernels.scanned import ProducerBatch, ScanFault
from barnabas.protocol.records.layout import (
    ATTRIBUTES_POSITION,
    CONTROL_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    NO_TIMESTAMP,
    TRANSACTIONAL_MASK,
)

_INT32_MAX: Final = 0x7FFF_FFFF
_INT64_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF
_REMEMBERED_BATCHES: Final = 5

_pack_offset_entry = struct.Struct(">ii").pack
_pack_time_entry = struct.Struct(">qi").pack
_unpack_header = HEADER.unpack_from


class BatchScan:
    """One scan in file order. `position` is the start of the next batch; all bytes scanned before it are valid."""

    __slots__ = (
        "_base_offset",
        "_check_crc",
        "_index_interval_bytes",
        "_indexed_position",
        "_latest_epoch",
        "_max_offset_entries",
        "_max_time_entries",
        "_producer_batches",
        "_producers_from",
        "_time_of_last_entry",
        "epochs",
        "fault",
        "first_timestamp",
        "max_timestamp",
        "max_timestamp_offset",
        "needed_bytes",
        "next_offset",
        "offset_entries",
        "position",
        "time_entries",
    )

    def __init__(
        self,
        base_offset: int,
        *,
        position: int = 0,
        check_crc: bool = True,
        index_interval_bytes: int = 0,
        max_offset_entries: int = 0,
        max_time_entries: int = 0,
        producers_from: int = 0,
        latest_epoch: int = -1,
    ) -> None:
        """Scan the segment at `base_offset` from `position` on; collect producers' batches from `producers_from` on."""
        self._base_offset = base_offset
        self._check_crc = check_crc
        self._index_interval_bytes = index_interval_bytes
        self._max_offset_entries = max_offset_entries
        self._max_time_entries = max_time_entries
        self._producers_from = producers_from
        self._latest_epoch = latest_epoch
        self._indexed_position = 0
        self._time_of_last_entry = NO_TIMESTAMP
        self._producer_batches: list[ProducerBatch] = []
        self.position = position
        self.next_offset = base_offset
        self.fault: ScanFault | None = None
        self.needed_bytes = 0
        """Size of the next batch when it did not fit the buffer; 0 when unknown."""
        self.first_timestamp: int | None = None
        """The first batch's maximum timestamp."""
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        """The last offset of the first batch that carries `max_timestamp`."""
        self.offset_entries = bytearray()
        """Entries as in the `.index` file."""
        self.time_entries = bytearray()
        """Entries as in the `.timeindex` file, without the closing entry."""
        self.epochs: list[tuple[int, int]] = []
        """(leader epoch, base offset) of each batch whose epoch is above all before it and `latest_epoch`."""

    def feed(self, buffer: bytes | bytearray | memoryview, remaining: int) -> ScanFault | None:
        """Scan the complete batches of `buffer`, whose first byte is at `position`; return the fault it stopped at.

        `remaining`: bytes from `position` to the file's end, of which the buffer has the first. Without a fault the
        scan stops before a batch that extends beyond the buffer.
        """
        self.needed_bytes = 0
        self.fault = self._feed(buffer, remaining)
        return self.fault

    def _feed(self, buffer: bytes | bytearray | memoryview, remaining: int) -> ScanFault | None:
        view = memoryview(buffer)
        total = min(len(view), remaining)
        at = 0
        while remaining > at:
            if remaining - at <= MAGIC_POSITION:
                return ScanFault.TORN
            if total - at <= MAGIC_POSITION:
                break
            magic = view[at + MAGIC_POSITION]
            if magic != MAGIC_V2:
                return ScanFault.OLD_FORMAT if magic < MAGIC_V2 else ScanFault.BAD_HEADER
            if remaining - at < HEADER_SIZE:
                return ScanFault.TORN
            if total - at < HEADER_SIZE:
                break
            (
                base_offset,
                length,
                epoch,
                _,
                crc,
                attributes,
                delta,
                _,
                max_timestamp,
                producer_id,
                producer_epoch,
                base_sequence,
                record_count,
            ) = _unpack_header(view, at)
            size = length + LOG_OVERHEAD
            if size < HEADER_SIZE or base_offset < 0 or not 0 <= delta < _INT64_MAX - base_offset:
                return ScanFault.BAD_HEADER
            if size > remaining - at:
                return ScanFault.TORN
            if size > total - at:
                self.needed_bytes = size
                break
            if self._check_crc and crc32c(view[at + ATTRIBUTES_POSITION : at + size]) != crc:
                return ScanFault.BAD_CRC
            last_offset = base_offset + delta
            position = self.position
            fault = self._pass(size, base_offset, last_offset, max_timestamp)
            if fault is not None:
                return fault
            if epoch > self._latest_epoch:
                self._latest_epoch = epoch
                self.epochs.append((epoch, base_offset))
            if producer_id >= 0 and last_offset >= self._producers_from:
                self._producer_batches.append(
                    ProducerBatch(
                        position,
                        size,
                        producer_id,
                        producer_epoch,
                        base_sequence,
                        last_offset,
                        delta,
                        max_timestamp,
                        record_count,
                        attributes & TRANSACTIONAL_MASK != 0,
                        attributes & CONTROL_MASK != 0,
                    )
                )
            at += size
        return None

    def pass_batch(self, size: int, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """Pass a batch of `size` bytes at `position` that the caller has checked: one of an old format.

        Sets `fault` instead when its offsets go back or exceed what indexes can hold; clears it otherwise.
        """
        self.fault = self._pass(size, base_offset, last_offset, max_timestamp)

    def _pass(self, size: int, base_offset: int, last_offset: int, max_timestamp: int) -> ScanFault | None:
        if base_offset < self.next_offset:
            return ScanFault.BAD_OFFSETS
        if last_offset - self._base_offset > _INT32_MAX or size > _INT32_MAX - self.position:
            return ScanFault.OVERFLOW
        if self.first_timestamp is None:
            self.first_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = max_timestamp, last_offset
        if (
            self.position - self._indexed_position > self._index_interval_bytes
            and len(self.offset_entries) < self._max_offset_entries * 8
            and len(self.time_entries) < (self._max_time_entries - 1) * 12
        ):
            self.offset_entries += _pack_offset_entry(last_offset - self._base_offset, self.position)
            self._indexed_position = self.position
            if self.max_timestamp > self._time_of_last_entry:
                self._time_of_last_entry = self.max_timestamp
                self.time_entries += _pack_time_entry(self.max_timestamp, self.max_timestamp_offset - self._base_offset)
        self.position += size
        self.next_offset = last_offset + 1
        return None

    @property
    def producer_batch_count(self) -> int:
        """The count of batches with a producer id since the last `take_producer_batches`."""
        return len(self._producer_batches)

    def take_producer_batches(self) -> list[ProducerBatch]:
        """Return the batches with a producer id passed since the last call, in order, without superseded ones.

        A data batch is left out when it is neither the producer's first here, nor the first of a transaction, nor among
        its last five: five later batches push it out of the producer's state.
        """
        batches, self._producer_batches = self._producer_batches, []
        kept = [batch.is_control for batch in batches]
        in_transaction: dict[int, bool] = {}
        for index, batch in enumerate(batches):
            producer_id = batch.producer_id
            if producer_id not in in_transaction:
                kept[index], in_transaction[producer_id] = True, False
            if batch.is_control:
                in_transaction[producer_id] = False
            elif batch.is_transactional and not in_transaction[producer_id]:
                kept[index] = in_transaction[producer_id] = True
        later: dict[int, int] = {}
        for index in range(len(batches) - 1, -1, -1):
            batch = batches[index]
            if not batch.is_control:
                count = later.get(batch.producer_id, 0)
                later[batch.producer_id] = count + 1
                kept[index] = kept[index] or count < _REMEMBERED_BATCHES
        return [batch for batch, keep in zip(batches, kept, strict=True) if keep]

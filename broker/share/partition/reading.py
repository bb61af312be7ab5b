"""What a share fetch reads: a slice of stored batches, and the offsets of the batches in it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.storage.files.file_records import FileSlice
from barnabas.broker.storage.segment.old_format_slice import OldFormatSlice
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.end_marker import ABORT_TYPE
from barnabas.protocol.records.layout import CONTROL_MASK, HEADER_SIZE, LOG_OVERHEAD, TRANSACTIONAL_MASK
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.wire.pieces import RecordBytes

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.protocol.wire.pieces import RecordsPart

_HEAD: Final = Struct(">qi9xhi16xq")
"""Base offset, size, attributes, last offset delta, producer id."""
_READ_AHEAD: Final = 16 * 1024


class StoredBatch(NamedTuple):
    """A batch at a position of a slice."""

    first_offset: int
    last_offset: int
    position: int
    size: int
    attributes: int
    producer_id: int


class FoundRecords:
    """Stored batches that were read from `offset` on, as many as can be acquired.

    That is up to the batch with the last of `most_new` offsets after `in_flight_to`, or after the first offset read.
    """

    def __init__(self, offset: int, records: FileSlice | RecordBytes, *, in_flight_to: int, most_new: int) -> None:
        self.offset = offset
        self._records = records
        self.batches = _batches(records, in_flight_to, most_new)

    @property
    def size(self) -> int:
        """Bytes of the batches."""
        return self._records.size

    def part(self, first_offset: int, last_offset: int) -> RecordsPart:
        """Return the batches with some of these offsets."""
        wanted = [
            each for each in self.batches if each.last_offset >= first_offset and each.first_offset <= last_offset
        ]
        if not wanted:
            return self._records
        begin, end = wanted[0].position, wanted[-1].position + wanted[-1].size
        if end - begin == self.size:
            return self._records
        if isinstance(self._records, FileSlice):
            return self._records.part(begin, end - begin)
        return RecordBytes(self._records[begin:end])

    def aborted(self, partition: Partition, records: FileSlice | OldFormatSlice) -> list[tuple[int, int]]:
        """Return first and last offset of the batches that belong to aborted transactions. Raises BrokerError."""
        transactions = sorted(
            partition.log.aborted_transactions_of(self.offset, records), key=lambda each: each.first_offset
        )
        producers: set[int] = set()
        found = []
        next_one = 0
        for batch in self.batches if transactions else ():
            while next_one < len(transactions) and transactions[next_one].first_offset <= batch.last_offset:
                producers.add(transactions[next_one].producer_id)
                next_one += 1
            if batch.producer_id not in producers:
                continue
            if batch.attributes & CONTROL_MASK:
                if self._is_abort(batch):
                    producers.discard(batch.producer_id)
            elif batch.attributes & TRANSACTIONAL_MASK:
                found.append((batch.first_offset, batch.last_offset))
        return found

    def _is_abort(self, batch: StoredBatch) -> bool:
        data = _read(self._records, batch.position, batch.size)
        record = next(iter(read_records(RecordBatch(data))))
        return record.key is not None and int.from_bytes(record.key[2:4], "big") == ABORT_TYPE


def read_partition(
    partition: Partition,
    offset: int,
    max_bytes: int,
    *,
    committed_only: bool,
    at_least_one_batch: bool,
    in_flight_to: int,
    most_new: int,
) -> tuple[FoundRecords, Sequence[tuple[int, int]]] | None:
    """Read stored batches, and which of them belong to aborted transactions; None at the end of the log.

    `in_flight_to`, `most_new`: see FoundRecords.

    Raises BrokerError: OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR.
    """
    records = partition.read(offset, max_bytes, committed_only=committed_only, at_least_one_batch=at_least_one_batch)
    if records is None:
        return None
    if isinstance(records, OldFormatSlice):
        converted = RecordBytes(partition.log.convert_old_format(offset, records, max_bytes))
        return FoundRecords(offset, converted, in_flight_to=in_flight_to, most_new=most_new), ()
    found = FoundRecords(offset, records, in_flight_to=in_flight_to, most_new=most_new)
    return found, found.aborted(partition, records) if committed_only else ()


def _batches(records: FileSlice | RecordBytes, in_flight_to: int, most_new: int) -> list[StoredBatch]:
    """Read the headers of the batches that can be acquired; an incomplete last one is left out."""
    batches: list[StoredBatch] = []
    position, end = 0, records.size
    ahead, ahead_at = b"", 0
    while position + HEADER_SIZE <= end:
        within = position - ahead_at
        if within + HEADER_SIZE > len(ahead):
            ahead, ahead_at, within = _read(records, position, min(_READ_AHEAD, end - position)), position, 0
            if len(ahead) < HEADER_SIZE:
                break
        base, length, attributes, delta, producer_id = _HEAD.unpack_from(ahead, within)
        size = LOG_OVERHEAD + length
        if position + size > end:
            break
        batches.append(StoredBatch(base, base + delta, position, size, attributes, producer_id))
        position += size
        if base + delta >= max(in_flight_to, batches[0].first_offset) + most_new:
            break
    return batches


def _read(records: FileSlice | RecordBytes, position: int, size: int) -> bytes:
    if isinstance(records, FileSlice):
        return os.pread(records.fd, size, records.position + position)
    return records[position : position + size]

"""Filter for batches that the kernel does not handle: compressed, transactional, control, and of old formats.

The records go through the same filter as all others. In addition:
- Data of aborted transactions is dropped.
- A marker without remaining data gets a delete horizon, and is dropped when that has passed.
- An emptied batch is kept as a header if it is the last one of an active producer (the last marker, if the producer has
  no data), or the last one of the round.
- A message of format 0 or 1 is written as version 2 with the same codec and timestamps. It has no delete horizon, so
  the age of its file decides whether a tombstone is dropped.
Source: Kafka Cleaner.cleanInto, MemoryRecords.filterTo.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.broker.storage.cleaning.rewriting.cleaned_transactions import CleanedTransactions
from barnabas.broker.storage.producers.entry import LastRecord
from barnabas.protocol.compression import compress
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.kernels.cleaned import FilterRules
from barnabas.protocol.records.kernels.cleaning import OffsetTable
from barnabas.protocol.records.kernels.kernel import append_record
from barnabas.protocol.records.layout import (
    CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    HEADER_SIZE,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    TimestampType,
)
from barnabas.protocol.records.legacy.messages import LegacyMessage, read_legacy_records
from barnabas.protocol.records.reader import MAX_DECOMPRESSED_BYTES, borrow_payload
from barnabas.protocol.records.record import Record
from barnabas.protocol.records.seal import seal

_KEPT_ATTRIBUTES = TIMESTAMP_TYPE_MASK | TRANSACTIONAL_MASK | CONTROL_MASK


class FilteredBatch(NamedTuple):
    """Filtered bytes (empty if all is dropped), the values for the indexes, and counts of records."""

    data: bytes | bytearray | memoryview
    last_offset: int
    max_timestamp: int
    records_read: int
    records_written: int
    records_invalid: int


class BatchFilter:
    """Filter for one segment of one round."""

    def __init__(
        self,
        table: OffsetTable,
        rules: FilterRules,
        transactions: CleanedTransactions,
        last_records: Mapping[int, LastRecord],
        *,
        retains_legacy_tombstones: bool,
    ) -> None:
        self._table = table
        self._rules = rules
        self._rules_of_markers = rules._replace(latest_offset=-1)  # a marker is never dropped for its key
        self._transactions = transactions
        self._last_records = last_records
        self._retains_legacy_tombstones = retains_legacy_tombstones

    def filter(self, batch: RecordBatch) -> FilteredBatch:
        """Filter a batch of version 2, whose CRC was checked. Raises DecodeError."""
        if batch.is_control:
            is_needless = self._transactions.on_control_batch(batch)
            has_passed = batch.has_delete_horizon and batch.base_timestamp <= self._rules.now_ms
            discards = is_needless and has_passed
        else:
            is_needless = discards = self._transactions.on_data_batch(batch)
        stays_empty = batch.next_offset == self._rules.round_end_offset or self._is_last_of_producer(batch)
        if discards:
            if stays_empty:
                return _result(_emptied(batch), batch, batch.max_timestamp, batch.record_count, 0, 0)
            return _result(b"", batch, NO_TIMESTAMP, 0, 0, 0)
        found = self._table.filter_records(
            borrow_payload(batch, MAX_DECOMPRESSED_BYTES),
            batch.record_count,
            batch.base_offset,
            batch.last_offset_delta,
            batch.base_timestamp,
            batch.max_timestamp,
            batch.attributes,
            batch.is_control and is_needless,
            self._rules_of_markers if batch.is_control else self._rules,
        )
        data: bytes | bytearray | memoryview
        if found.payload is not None:
            has_horizon = (batch.has_delete_horizon or found.sets_horizon) and found.base_timestamp >= 0
            data = _rewritten(
                batch,
                found.payload,
                count=found.records_kept,
                base_timestamp=found.base_timestamp,
                max_timestamp=found.max_timestamp,
                has_horizon=has_horizon,
            )
        elif found.records_kept:
            data = batch.bytes
        else:
            data = _emptied(batch) if stays_empty else b""
        return _result(data, batch, found.max_timestamp, batch.record_count, found.records_kept, found.records_invalid)

    def filter_legacy(self, message: LegacyMessage) -> FilteredBatch:
        """Filter a message or wrapper of format 0 or 1, whose CRC was checked. Raises DecodeError."""
        records = read_legacy_records(message)
        kept = [record for record in records if self._retains_legacy(record)]
        invalid = sum(record.key is None and record.offset <= self._rules.latest_offset for record in records)
        if not kept:
            return FilteredBatch(b"", message.offset, NO_TIMESTAMP, len(records), 0, invalid)
        # Format 0 has no timestamp type.
        has_append_time = message.magic > 0 and message.timestamp_type is TimestampType.LOG_APPEND_TIME
        max_timestamp = message.timestamp if has_append_time else max(record.timestamp for record in kept)
        has_tombstones = any(record.value is None for record in kept)
        base_timestamp = self._rules.new_horizon_ms if has_tombstones else kept[0].timestamp
        payload = bytearray()
        for record in kept:
            delta = record.offset - kept[0].offset
            append_record(payload, -1, delta, record.timestamp - base_timestamp, record.key, record.value, ())
        batch = bytearray(HEADER_SIZE)
        batch += compress(message.codec, payload)
        attributes = message.codec | (TIMESTAMP_TYPE_MASK if has_append_time else 0)
        fields = (
            attributes | (DELETE_HORIZON_MASK if has_tombstones else 0),
            kept[-1].offset - kept[0].offset,
            base_timestamp,
            max_timestamp,
            NO_PRODUCER_ID,
            NO_PRODUCER_EPOCH,
            NO_SEQUENCE,
            len(kept),
        )
        seal(batch, kept[0].offset, NO_PARTITION_LEADER_EPOCH, fields)
        return FilteredBatch(batch, kept[-1].offset, max_timestamp, len(records), len(kept), invalid)

    def _retains_legacy(self, record: Record) -> bool:
        if record.offset > self._rules.latest_offset:
            return True
        if record.key is None or (record.value is None and not self._retains_legacy_tombstones):
            return False
        return record.offset >= self._table.get(record.key)

    def _is_last_of_producer(self, batch: RecordBatch) -> bool:
        last = self._last_records.get(batch.producer_id) if batch.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_data_offset >= 0:
            return batch.last_offset == last.last_data_offset
        return batch.is_control and batch.producer_epoch == last.producer_epoch


def _result(
    data: bytes | bytearray | memoryview, batch: RecordBatch, max_timestamp: int, read: int, written: int, invalid: int
) -> FilteredBatch:
    return FilteredBatch(data, batch.last_offset, max_timestamp, read, written, invalid)


def _rewritten(
    batch: RecordBatch, payload: bytes, *, count: int, base_timestamp: int, max_timestamp: int, has_horizon: bool
) -> bytearray:
    attributes = batch.attributes & (_KEPT_ATTRIBUTES | CODEC_MASK) | (DELETE_HORIZON_MASK if has_horizon else 0)
    rewritten = bytearray(HEADER_SIZE)
    rewritten += compress(batch.codec, payload)
    _seal(rewritten, batch, attributes, base_timestamp, max_timestamp, count)
    return rewritten


def _emptied(batch: RecordBatch) -> bytearray:
    emptied = bytearray(HEADER_SIZE)
    _seal(emptied, batch, batch.attributes & _KEPT_ATTRIBUTES, NO_TIMESTAMP, batch.max_timestamp, 0)
    return emptied


def _seal(
    new: bytearray, batch: RecordBatch, attributes: int, base_timestamp: int, max_timestamp: int, count: int
) -> None:
    fields = (
        attributes,
        batch.last_offset_delta,
        base_timestamp,
        max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        count,
    )
    seal(new, batch.base_offset, batch.partition_leader_epoch, fields)

"""Splitting of a batch that the broker refused as too large, because max.message.bytes is below batch_size."""

from __future__ import annotations

from barnabas.clients.producer.batch import ProducerBatch
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.records.reader import read_records


def split_batch(batch: ProducerBatch) -> tuple[ProducerBatch, ProducerBatch]:
    """Split `batch` into two closed batches, in order. It must be encoded and have at least two records."""
    encoded = RecordBatch(batch.encode())
    records = read_records(encoded, max_decompressed_bytes=batch.reserved_bytes)
    middle = len(records) // 2
    halves = []
    reserved_left = batch.reserved_bytes
    for begin, end in ((0, middle), (middle, len(records))):
        builder = RecordBatchBuilder(
            encoded.codec,
            max_bytes=batch.reserved_bytes,
            level=batch.level,
            is_transactional=encoded.is_transactional,
        )
        half = ProducerBatch(batch.queue, builder, False, batch.deadline)
        reserved = reserved_left if begin else batch.reserved_bytes * middle // len(records)
        reserved_left -= reserved
        for index in range(begin, end):
            record = records[index]
            half.append(record.timestamp, record.key, record.value, record.headers, batch.futures[index], 0)
        half.reserved_bytes = reserved
        half.closed = True
        halves.append(half)
    return halves[0], halves[1]

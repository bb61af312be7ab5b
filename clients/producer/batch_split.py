"""Splitting of a batch that the broker refused: max.message.bytes or segment.bytes is below batch_size."""

from __future__ import annotations

import asyncio
from typing import Final

from barnabas.clients.producer.batch import ProducerBatch
from barnabas.clients.records import RecordMetadata
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.records.reader import read_records

_NO_LIMIT: Final = 0x7FFF_FFFF
"""Of a half's bytes: they fitted the whole. Its share of the reserved memory goes by the number of records."""


def split_batch(batch: ProducerBatch) -> tuple[ProducerBatch, ProducerBatch]:
    """Split `batch` into two closed batches, in order. It must be encoded and have at least two records."""
    encoded = RecordBatch(batch.encode())
    records = read_records(encoded, max_decompressed_bytes=_NO_LIMIT)
    middle = len(records) // 2
    halves = []
    reserved_left = batch.reserved_bytes
    for begin, end in ((0, middle), (middle, len(records))):
        builder = RecordBatchBuilder(
            encoded.codec,
            max_bytes=_NO_LIMIT,
            level=batch.level,
            is_transactional=encoded.is_transactional,
        )
        half = ProducerBatch(batch.queue, builder, False, batch.deadline)
        reserved = reserved_left if begin else batch.reserved_bytes * middle // len(records)
        reserved_left -= reserved
        for index in range(begin, end):
            record = records[index]
            fits = half.append(record.timestamp, record.key, record.value, record.headers, batch.futures[index], 0)
            assert fits
        half.reserved_bytes = reserved
        half.closed = True
        halves.append(half)
    if batch.futures[middle - 1] is batch.futures[middle]:
        _share_future(batch.futures[middle], halves[0], halves[1])
    return halves[0], halves[1]


def _share_future(future: asyncio.Future[RecordMetadata], *halves: ProducerBatch) -> None:
    """Give the records of each half that have this future one of their own, and resolve it by those of all halves."""
    parts: list[asyncio.Future[RecordMetadata]] = []
    for half in halves:
        part: asyncio.Future[RecordMetadata] = future.get_loop().create_future()
        half.futures = [part if each is future else each for each in half.futures]
        parts.append(part)

    def resolve(_: asyncio.Future[RecordMetadata]) -> None:
        if future.done() or not all(part.done() for part in parts):
            return
        errors = [error for part in parts if (error := part.exception()) is not None]
        if errors:
            future.set_exception(errors[0])
            future.exception()  # mark it as retrieved, as ProducerBatch.fail does
        else:
            future.set_result(parts[0].result())

    for part in parts:
        part.add_done_callback(resolve)

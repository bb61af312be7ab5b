"""Transactional batches and end markers, as written by transactional producers and their coordinator."""

from __future__ import annotations

from barnabas.broker.storage.log.append import AppendOrigin
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.records.end_marker import EndMarker, encode_end_marker
from tests.support.storage.bench import START_MS, batch


def marker(
    producer_id: int, *, is_commit: bool, epoch: int = 0, coordinator_epoch: int = 0, timestamp: int = START_MS
) -> memoryview:
    """Return a control batch that ends a transaction."""
    builder = RecordBatchBuilder(
        max_bytes=1 << 20, producer_id=producer_id, producer_epoch=epoch, is_transactional=True, is_control=True
    )
    key, value = encode_end_marker(EndMarker(is_commit, coordinator_epoch))
    builder.append(timestamp, key, value)
    return memoryview(bytearray(builder.build()))


def send(log: PartitionLog, producer_id: int, sequence: int, *values: bytes, epoch: int = 0, size: int = 0) -> int:
    """Append transactional data; return its base offset."""
    data = batch(
        *[(START_MS, b"k", value + bytes(size)) for value in values],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    return log.append_as_leader(data, leader_epoch=0, origin=AppendOrigin.COORDINATOR).base_offset


def end(log: PartitionLog, producer_id: int, *, is_commit: bool, epoch: int = 0, coordinator_epoch: int = 0) -> int:
    """Append an end marker; return its offset."""
    data = marker(producer_id, is_commit=is_commit, epoch=epoch, coordinator_epoch=coordinator_epoch)
    return log.append_as_leader(data, leader_epoch=0, origin=AppendOrigin.COORDINATOR).base_offset

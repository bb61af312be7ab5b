"""Transactional batches and end markers, as written by transactional producers and their coordinator."""

from __future__ import annotations

from barnabas.broker.storage.log.append import AppendOrigin, TransactionEnd
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.protocol.records.end_marker import EndMarker
from tests.support.storage.bench import START_MS, batch


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


def end(
    log: PartitionLog,
    producer_id: int,
    *,
    is_commit: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> int:
    """Append an end marker; return its offset."""
    marker = EndMarker(is_commit, coordinator_epoch)
    ended = TransactionEnd(producer_id, epoch, marker, transaction_version)
    return log.append_marker(ended, leader_epoch=0, timestamp_ms=START_MS).base_offset

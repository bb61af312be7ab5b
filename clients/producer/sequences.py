"""Sequence numbers of one partition's queue, and restamping of a sealed batch with others.

A sequence is an int32 from 0 on, one per record; after 2^31 - 1 comes 0, even within a batch.
"""

from __future__ import annotations

from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.layout import NO_PRODUCER_ID
from barnabas.protocol.records.seal import seal

MAX_SEQUENCE = 2**31 - 1
MAX_EPOCH = 2**15 - 1


class LineSequences:
    """`producer_id` is -1 until the queue's first batch is sent, and when a new id is needed."""

    __slots__ = ("epoch", "next_sequence", "producer_id")

    def __init__(self) -> None:
        self.producer_id = NO_PRODUCER_ID
        self.epoch = 0
        self.next_sequence = 0

    def begin(self, producer_id: int, epoch: int) -> None:
        """Count from 0 under this id and epoch."""
        self.producer_id = producer_id
        self.epoch = epoch
        self.next_sequence = 0

    def take(self, count: int) -> int:
        """Take the sequences of `count` records and return the first."""
        base_sequence = self.next_sequence
        self.next_sequence = (base_sequence + count) & MAX_SEQUENCE
        return base_sequence

    def rewind(self, base_sequence: int) -> None:
        """Return the sequences of the last batch."""
        self.next_sequence = base_sequence


def restamp(data: bytes, producer_id: int, epoch: int, base_sequence: int) -> bytes:
    """Copy the sealed batch `data` with another id, epoch, base sequence, and CRC; the records stay as they are."""
    header = RecordBatch(data)
    stamped = bytearray(data)
    fields = (
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        producer_id,
        epoch,
        base_sequence,
        header.record_count,
    )
    seal(stamped, header.base_offset, header.partition_leader_epoch, fields)
    return bytes(stamped)

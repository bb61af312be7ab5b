"""What a log remembers of one producer. Source: Kafka ProducerStateEntry, BatchMetadata."""

from __future__ import annotations

from typing import NamedTuple

REMEMBERED_BATCHES = 5
MAX_SEQUENCE = 2**31 - 1
NO_EPOCH = -1
NO_SEQUENCE = -1
NO_OFFSET = -1
NO_TIMESTAMP = -1


class BatchMetadata(NamedTuple):
    """A batch that a producer has stored."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        """The batch's base offset."""
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        """The sequence of its first record; sequences wrap."""
        return (self.last_sequence - self.offset_delta) & MAX_SEQUENCE


class LastRecord(NamedTuple):
    """Where a producer's last data ends (-1: it has none since its epoch began), and its epoch."""

    last_data_offset: int
    producer_epoch: int


class ProducerEntry:
    """One producer's state."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_append_ms",
        "last_timestamp",
        "producer_id",
        "txn_first_offset",
    )

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.last_append_ms = NO_TIMESTAMP
        """The wall clock when its last data was appended: in memory only, at a load no earlier than it was."""
        self.txn_first_offset = NO_OFFSET
        self.batches: list[BatchMetadata] = []
        """At most five, the oldest first."""

    @property
    def last_sequence(self) -> int:
        """The sequence of its last record, -1 without one in this epoch."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def move_to_epoch(self, epoch: int) -> None:
        """Begin a new epoch, in which nothing was stored yet."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches = []

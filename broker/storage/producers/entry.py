"""State of one producer in one log. Source: Kafka ProducerStateEntry, BatchMetadata."""

from __future__ import annotations

from typing import NamedTuple

REMEMBERED_BATCHES = 5
MAX_SEQUENCE = 2**31 - 1
MAX_EPOCH = 2**15 - 1
TRANSACTION_VERSION_OF_EPOCH_BUMPS = 2
"""From this transaction.version on, each transaction has a producer epoch of its own (KIP-890)."""
NO_EPOCH = -1
NO_SEQUENCE = -1
NO_OFFSET = -1
NO_TIMESTAMP = -1


class BatchMetadata(NamedTuple):
    """Sequences, offsets and timestamp of a producer's stored batch."""

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
        """The sequence of its first record; sequences wrap at 2^31 - 1."""
        return (self.last_sequence - self.offset_delta) & MAX_SEQUENCE


class LastRecord(NamedTuple):
    """Last data offset of a producer (-1: no data in its current epoch), and that epoch."""

    last_data_offset: int
    producer_epoch: int


class ProducerEntry:
    """Epoch, last batches and open transaction of one producer."""

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
        """Wall clock of its last append of data, in memory only. After a load it may be later than the real one."""
        self.txn_first_offset = NO_OFFSET
        self.batches: list[BatchMetadata] = []
        """Its last five batches, the oldest first."""

    @property
    def last_sequence(self) -> int:
        """The sequence of its last record in this epoch, or -1."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def has_open_transaction(self) -> bool:
        """Whether it has written transactional records for which the log has no marker yet."""
        return self.txn_first_offset != NO_OFFSET

    def move_to_epoch(self, epoch: int) -> None:
        """Begin a new epoch, which has no batches yet."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches = []

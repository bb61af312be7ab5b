"""The records that a share consumer has a lock on, and has not acknowledged.

A lock is the broker's, and ends by the broker's clock. `deadline` is counted from when the fetch was sent, so it is
never later: a record whose deadline has passed may be another member's by now.
"""

from __future__ import annotations

from typing import Any

from barnabas.clients.errors import LockLostError
from barnabas.clients.records import ShareRecord
from barnabas.protocol.topic_partition import TopicPartition

_Key = tuple[str, int, int]


class HeldRecord:
    """One lock. `owner`: whose session at a broker the lock belongs to."""

    __slots__ = ("deadline", "delivery_count", "offset", "owner", "topic_id", "topic_partition")

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        offset: int,
        delivery_count: int,
        deadline: float,
        owner: Any,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.offset = offset
        self.delivery_count = delivery_count
        self.deadline = deadline
        self.owner = owner


class HeldRecords:
    """All locks of one consumer. Times are the event loop's."""

    def __init__(self) -> None:
        self._held: dict[_Key, HeldRecord] = {}

    def __len__(self) -> int:
        return len(self._held)

    def add(self, held: HeldRecord, now: float) -> None:
        """Add a lock, which replaces that of an earlier delivery."""
        self.drop_expired(now)
        key = (*held.topic_partition, held.offset)
        self._held.pop(key, None)  # so that the order is that of the deadlines
        self._held[key] = held

    def renew(self, held: HeldRecord, deadline: float) -> None:
        """Extend a lock; one that is being acknowledged by now is not held again."""
        held.deadline = deadline
        key = (*held.topic_partition, held.offset)
        if self._held.get(key) is held:
            del self._held[key]  # so that the order is that of the deadlines
            self._held[key] = held

    def drop_expired(self, now: float) -> None:
        """Drop the oldest locks that have run out: nobody may ever ask for them."""
        while self._held:
            oldest = next(iter(self._held.values()))
            if oldest.deadline > now:
                return
            del self._held[(*oldest.topic_partition, oldest.offset)]

    def get(self, record: ShareRecord, now: float) -> HeldRecord | None:
        """Return the lock of a delivery; None if it is over."""
        held = self._held.get((record.topic, record.partition, record.offset))
        if held is None or held.delivery_count != record.delivery_count or held.deadline <= now:
            return None
        return held

    def require(self, record: ShareRecord, now: float) -> HeldRecord:
        """Return the lock of a delivery. Raises LockLostError."""
        held = self.get(record, now)
        if held is None:
            raise LockLostError(
                TopicPartition(record.topic, record.partition),
                record.offset,
                "it was acknowledged before, its lock ran out, or the connection to the broker was lost",
            )
        return held

    def remove(self, held: HeldRecord) -> None:
        """Remove a lock that is being acknowledged."""
        self._held.pop((*held.topic_partition, held.offset), None)

    def remove_of(self, owner: Any) -> int:
        """Remove the locks of a lost session, and return their number."""
        lost = [key for key, held in self._held.items() if held.owner is owner]
        for key in lost:
            del self._held[key]
        return len(lost)

"""What the consumer hands out and what the producer's futures give."""

from __future__ import annotations

from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]


class ConsumerRecord(NamedTuple):
    """One record. `timestamp` is milliseconds since 1970; `timestamp_type` 0 = the producer set it, 1 = the broker."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class RecordMetadata(NamedTuple):
    """Where a record went. `offset` is -1 with acks=0; `timestamp` is the broker's where the topic says so."""

    topic: str
    partition: int
    offset: int
    timestamp: int

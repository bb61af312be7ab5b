"""Records of the consumers, and results of the producer's futures."""

from __future__ import annotations

from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]
"""Names and values. Bytes of a name that are not UTF-8 are kept as os.fsdecode keeps them."""


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


class ShareRecord(NamedTuple):
    """A record of a share consumer: the fields of ConsumerRecord, and the number of this delivery, 1 for the first."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    delivery_count: int


class RecordMetadata(NamedTuple):
    """Where a record was stored. `offset` is -1 with acks=0; `timestamp` is the broker's with LogAppendTime."""

    topic: str
    partition: int
    offset: int
    timestamp: int

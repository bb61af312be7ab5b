"""The choice of a partition for records that are sent without one.

With a key: murmur2 of the key modulo the number of partitions, so that producers of all languages agree and a key keeps
its partition as long as the topic's partition count does not change. Without a key: a random partition for about a
batch of bytes, then another one (KIP-794's uniform sticky rule), which fills batches and spreads evenly over time.
Source: Kafka's BuiltInPartitioner.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from barnabas.protocol.records.kernels.kernel import murmur2

INT32_SIGN_OFF = 0x7FFF_FFFF


def partition_for_key(key: bytes | bytearray | memoryview, partition_count: int) -> int:
    """The partition of every record with this key, as Java's producer computes it."""
    return (murmur2(key) & INT32_SIGN_OFF) % partition_count


class StickyPartition:
    """The current partition for one topic's records without a key."""

    __slots__ = ("_bytes_left", "_current", "_stay_bytes")

    def __init__(self, stay_bytes: int) -> None:
        self._stay_bytes = stay_bytes
        self._bytes_left = 0
        self._current = -1

    def choose(self, size: int, leaders: Sequence[int]) -> int:
        """Choose the partition for a record of `size` bytes. `leaders[p]` is p's leader; -1 (none) is avoided."""
        if self._bytes_left <= 0 or self._current >= len(leaders) or leaders[self._current] < 0:
            self._move(leaders)
        self._bytes_left -= size
        return self._current

    def _move(self, leaders: Sequence[int]) -> None:
        usable = [partition for partition, leader in enumerate(leaders) if leader >= 0] or list(range(len(leaders)))
        others = [partition for partition in usable if partition != self._current]
        self._current = random.choice(others or usable)
        self._bytes_left = self._stay_bytes

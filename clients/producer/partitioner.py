"""Which partition a record goes to when its sender does not say.

With a key: murmur2 of the key modulo the number of partitions, so that producers of all languages agree and a key keeps
its partition for as long as the topic keeps its partition count. Without a key: one partition at random for about a
batch's worth of bytes, then another (KIP-794's uniform sticky rule): full batches, and an even spread over time.
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
    """The partition that records of one topic without a key go to at the moment."""

    __slots__ = ("_bytes_left", "_current", "_stay_bytes")

    def __init__(self, stay_bytes: int) -> None:
        self._stay_bytes = stay_bytes
        self._bytes_left = 0
        self._current = -1

    def choose(self, size: int, leaders: Sequence[int]) -> int:
        """The partition for a record of `size` bytes; `leaders[p]` is p's leader, -1 without one (then avoided)."""
        if self._bytes_left <= 0 or self._current >= len(leaders) or leaders[self._current] < 0:
            self._move(leaders)
        self._bytes_left -= size
        return self._current

    def _move(self, leaders: Sequence[int]) -> None:
        usable = [partition for partition, leader in enumerate(leaders) if leader >= 0] or list(range(len(leaders)))
        others = [partition for partition in usable if partition != self._current]
        self._current = random.choice(others or usable)
        self._bytes_left = self._stay_bytes

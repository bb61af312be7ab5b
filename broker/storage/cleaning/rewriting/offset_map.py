"""The offset map of one round: the last offset of each key in the dirty part, in memory of fixed size.

    slots        memory / 24 bytes; `max_entries` = slots * log.cleaner.io.buffer.load.factor, as in Kafka
    hash         16 bytes, keyed with a random secret per round: with Kafka's plain MD5 an attacker who controls keys
                 can create two that collide and delete each other
    memory       one anonymous mapping, released after the round, and no larger than the round can fill: a small topic
                 does not touch the pages of a large map

Source: Kafka SkimpyOffsetMap.
"""

from __future__ import annotations

import math
import mmap
import secrets

from barnabas.protocol.records.kernels.cleaned import ENTRY_BYTES, HASH_MASK
from barnabas.protocol.records.kernels.cleaning import OffsetTable

_SECRET_BYTES = 16


class OffsetMap:
    """Offset map, filled and read through `table`. It contains all keys up to `latest_offset` (-1: none)."""

    def __init__(
        self, memory_bytes: int, load_factor: float, *, most_keys: int | None = None, hash_mask: int = HASH_MASK
    ) -> None:
        """`most_keys` bounds the keys in the dirty part. `hash_mask` is for tests. Raises OSError without memory."""
        self.slots = memory_bytes // ENTRY_BYTES
        self.max_entries = max_entries_of(memory_bytes, load_factor)
        self.latest_offset = -1
        in_use = self.slots
        if most_keys is not None:
            in_use = min(self.slots, math.ceil(max(most_keys, 1) / load_factor) + 1)
        self._memory = mmap.mmap(-1, max(in_use, 1) * ENTRY_BYTES)
        self.table = OffsetTable(memoryview(self._memory), secrets.token_bytes(_SECRET_BYTES), hash_mask)

    @property
    def utilization(self) -> float:
        """Number of entries divided by the slots that fit into log.cleaner.dedupe.buffer.size."""
        return self.table.entries / self.slots

    def close(self) -> None:
        """Free the memory."""
        self.table.close()
        self._memory.close()


def max_entries_of(memory_bytes: int, load_factor: float) -> int:
    """Return the number of keys with which a map is full."""
    return int(memory_bytes // ENTRY_BYTES * load_factor)

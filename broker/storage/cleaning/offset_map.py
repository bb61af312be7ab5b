"""The offset map of one round: the last offset of each key of the dirty part, in a memory of fixed size.

    slots        memory / 24 bytes; `max_entries` = slots * log.cleaner.io.buffer.load.factor: so full is full for Kafka
    hash         of 16 bytes, keyed with a secret that is drawn for each round: Kafka's plain MD5 lets somebody who
                 controls keys make two that erase each other
    memory       one anonymous mapping, given back when the round ends, and no larger than the round can fill: a small
                 topic does not touch the pages of a large map

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
    """Use `table` to fill and ask it, and note in `latest_offset` up to where it knows all keys (-1: nowhere)."""

    def __init__(
        self, memory_bytes: int, load_factor: float, *, most_keys: int | None = None, hash_mask: int = HASH_MASK
    ) -> None:
        """`most_keys`: there are no more in the dirty part. `hash_mask` is for tests. Raises OSError without memory."""
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
        """Entries in relation to the slots that log.cleaner.dedupe.buffer.size pays for."""
        return self.table.entries / self.slots

    def close(self) -> None:
        """Give the memory back."""
        self.table.close()
        self._memory.close()


def max_entries_of(memory_bytes: int, load_factor: float) -> int:
    """How many keys a map takes before it is full."""
    return int(memory_bytes // ENTRY_BYTES * load_factor)

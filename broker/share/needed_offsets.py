"""NeededOffsets: the smallest offset of a partition of `__share_group_state` that a start still needs.

Every snapshot replaces the records of its key before it, so nothing is needed below the oldest of the last snapshots.
Source: Kafka's ShareCoordinatorOffsetsManager.
"""

from __future__ import annotations

from barnabas.protocol.share.state_records import SharePartitionKey


class NeededOffsets:
    """The offsets of last snapshots, of one partition of the topic."""

    def __init__(self) -> None:
        self._last: dict[SharePartitionKey, int] = {}
        self._needed = 0

    @property
    def below_is_redundant(self) -> int | None:
        """Offset below which nothing is needed; None where nothing can be deleted."""
        return self._needed or None

    def note(self, key: SharePartitionKey, offset: int, *, is_tombstone: bool) -> None:
        """Note the offset of a snapshot, or of a tombstone, which is needed no longer once it is passed."""
        self._last.pop(key, None)
        self._last[key] = offset  # at the end: the first item is the key whose snapshot is the oldest
        self._needed = next(iter(self._last.values()))
        if is_tombstone:
            del self._last[key]

"""Statistics of one round of the cleaner, with Kafka's names (a message is a record). Source: Kafka CleanerStats."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CleanerStats:
    """Counters of a round, written by the cleaner's thread only; other threads may read them meanwhile."""

    start_time_ms: int = 0
    map_complete_time_ms: int = -1
    """End of the first pass, which fills the offset map; -1 until then."""
    map_messages_read: int = 0
    map_bytes_read: int = 0
    messages_read: int = 0
    bytes_read: int = 0
    messages_written: int = 0
    bytes_written: int = 0
    invalid_messages_read: int = 0
    """Records without a key, which a compacted log must not have. They are dropped."""
    map_utilization: float = 0.0
    """Entries of the offset map divided by its slots."""

    @property
    def elapsed_map_ms(self) -> int:
        """Duration of the first pass; 0 while it is running."""
        return max(self.map_complete_time_ms - self.start_time_ms, 0)

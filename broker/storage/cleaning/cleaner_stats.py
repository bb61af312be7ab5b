"""What one round of the cleaner did. Source: Kafka CleanerStats, whose names these are (a message is a record)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CleanerStats:
    """Plain integers, written by the cleaner's thread only; another one may read them while the round goes on."""

    start_time_ms: int = 0
    map_complete_time_ms: int = -1
    """When the first pass, which fills the offset map, was done; -1 until then."""
    map_messages_read: int = 0
    map_bytes_read: int = 0
    messages_read: int = 0
    bytes_read: int = 0
    messages_written: int = 0
    bytes_written: int = 0
    invalid_messages_read: int = 0
    """Records without a key, which no compacted log should hold. They are dropped."""
    map_utilization: float = 0.0
    """Entries of the offset map in relation to its slots."""

    @property
    def elapsed_map_ms(self) -> int:
        """How long the round's first pass took, or 0 while that runs."""
        return max(self.map_complete_time_ms - self.start_time_ms, 0)

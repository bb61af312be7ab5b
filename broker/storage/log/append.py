"""What goes into an append and what comes out of it.

Source: Kafka AppendOrigin, LogAppendInfo.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class AppendOrigin(Enum):
    """Who made the records, which decides the rules that they must follow."""

    CLIENT = "client"
    """A producer: one batch, base offset 0, no control records, sequences checked, timestamps and sizes limited."""
    COORDINATOR = "coordinator"
    """A coordinator of this broker: batches and markers as it made them; offsets and epoch are stamped."""
    RAFT = "raft"
    """The metadata log's writer: as COORDINATOR, and without a limit on a batch's size."""


class AppendResult(NamedTuple):
    """Where the records went.

    log_append_time_ms   the timestamp that all records got under LogAppendTime, else -1
    flush_due            flush.messages unsynced records are there: acknowledge after the flusher's group commit
    is_duplicate         a batch that the producer had sent before: nothing was written, the offsets are the old ones
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    size_bytes: int
    record_count: int
    flush_due: bool
    is_duplicate: bool = False

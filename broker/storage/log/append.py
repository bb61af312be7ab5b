"""The origin and the result of an append.

Source: Kafka AppendOrigin, LogAppendInfo.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class AppendOrigin(Enum):
    """The writer of the records, which decides the rules that they must follow."""

    CLIENT = "client"
    """A producer: one batch, base offset 0, no control records, sequences checked, timestamps and sizes limited."""
    TRANSACTION = "transaction"
    """As CLIENT, in a request with a transactional id: the batch may be transactional."""
    COORDINATOR = "coordinator"
    """A coordinator of this broker: batches as built; offsets and epoch are stamped."""
    RAFT = "raft"
    """The metadata log's writer: as COORDINATOR, without a limit on a batch's size."""


class AppendResult(NamedTuple):
    """The offsets of appended records.

    log_append_time_ms   the timestamp of all records under LogAppendTime, else -1
    flush_due            flush.messages records are unsynced: acknowledge after the flusher's group commit
    is_duplicate         the producer sent this batch before: nothing was written, the offsets are the old ones
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    size_bytes: int
    record_count: int
    flush_due: bool
    is_duplicate: bool = False

"""The cleaner: one round over one log, in two passes.

    1. fill the offset map with the last offset of each key of the dirty part
    2. write every segment from the log's start to the map's end anew, without the records that the map knows a later
       one of, and swap the result in

Source: Kafka Cleaner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from barnabas.broker.storage.cleaning.cleaner_stats import CleanerStats
from barnabas.broker.storage.log import PartitionLog
from barnabas.protocol.topic_partition import TopicPartition


class Throttler(Protocol):
    """Holds the cleaners' reads and writes together below log.cleaner.io.max.bytes.per.second."""

    def note(self, size_bytes: int) -> None:
        """`size_bytes` were read or written; sleeps when that was too fast."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogToClean:
    """What the manager has chosen: which log, and the offsets [first dirty, first uncleanable) that the map covers.

    `first_uncleanable_offset` is the base offset of a segment, as Kafka's LogToClean makes it: nothing of the active
    segment is ever cleaned. `now_ms` is the wall clock by which delete horizons are set and have passed.
    """

    log: PartitionLog
    first_dirty_offset: int
    first_uncleanable_offset: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class CleanResult:
    """`next_dirty_offset` is what goes into the cleaner checkpoint: what lies below it is clean."""

    next_dirty_offset: int
    stats: CleanerStats


class Cleaner:
    """One cleaner thread's; used for one log after the other, never by two threads at once."""

    def __init__(
        self,
        *,
        offset_map_bytes: int,
        load_factor: float,
        io_buffer_bytes: int,
        throttler: Throttler,
        check_done: Callable[[TopicPartition], None],
    ) -> None:
        """No memory is taken before a round.

        `offset_map_bytes`: log.cleaner.dedupe.buffer.size / threads, at most 2^31 - 1. `io_buffer_bytes`: of the read
        buffer and of the write buffer each, log.cleaner.io.buffer.size / threads / 2. `check_done` is called often and
        raises CleaningAborted where the log is wanted. Raises ValueError for a map that has no room for a key.
        """
        raise NotImplementedError

    def clean(self, cleanable: LogToClean) -> CleanResult:
        """Clean one log. Segments that were swapped in stay so when a later one fails: that is safe.

        Raises CleaningAborted, CleaningOutOfRoom (retry after the back-off), UncleanableLogError (mark the partition),
        OSError (the disk failed: the log has reported its directory, which goes offline).
        """
        raise NotImplementedError

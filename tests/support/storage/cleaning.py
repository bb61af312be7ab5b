"""Cleaning logs in tests: a cleaner without a manager, and the expected content of a compacted log."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from barnabas.broker.storage.cleaning.rewriting.cleaner import Cleaner, CleanResult, LogToClean
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.protocol.records.kernels.cleaned import HASH_MASK
from barnabas.protocol.records.record import Record
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.storage.bench import read_records

MAP_BYTES = 1 << 20


class CountingThrottler:
    """Throttler that counts and never sleeps."""

    def __init__(self) -> None:
        self.size_bytes = 0

    def note(self, size_bytes: int) -> None:
        self.size_bytes += size_bytes


def never_done(topic_partition: TopicPartition) -> None:
    """Never abort the cleaning."""


def new_cleaner(
    *,
    map_bytes: int = MAP_BYTES,
    load_factor: float = 0.9,
    io_buffer_bytes: int = 1 << 16,
    check_done: Callable[[TopicPartition], None] = never_done,
    hash_mask: int = HASH_MASK,
) -> Cleaner:
    """Return a cleaner with a small map, which is never aborted."""
    return Cleaner(
        offset_map_bytes=map_bytes,
        load_factor=load_factor,
        io_buffer_bytes=io_buffer_bytes,
        throttler=CountingThrottler(),
        check_done=check_done,
        hash_mask=hash_mask,
    )


def clean(
    log: PartitionLog, first_dirty: int = 0, *, end: int | None = None, now_ms: int = 0, cleaner: Cleaner | None = None
) -> CleanResult:
    """Run one round up to the active segment (or `end`)."""
    uncleanable = log.segments[-1].base_offset if end is None else end
    cleanable = LogToClean(
        log=log, first_dirty_offset=first_dirty, first_uncleanable_offset=uncleanable, now_ms=now_ms or log.wall_ms()
    )
    return (cleaner or new_cleaner()).clean(cleanable)


def last_of_each_key(records: Iterable[Record]) -> list[Record]:
    """Return the records that compaction keeps, ignoring tombstones: the last one of every key, ordered by offset."""
    last = {record.key: record for record in records if record.key is not None}
    return sorted(last.values(), key=lambda record: record.offset)


def keys_and_offsets(log: PartitionLog) -> list[tuple[bytes | None, int]]:
    """Return the readable keys and offsets."""
    return [(record.key, record.offset) for record in read_records(log)]

"""One segment of a log: a `.log` file and its indexes, from a base offset on.

The newest segment of a log is active: its files are open for writing and its indexes have their maximum size. All
others are sealed: trimmed, read-only and opened on demand. A segment computes when it is time to roll; the log rolls
it. This module has the operations on batches: append, find, roll time, seal. `segment.files` has those on files,
`segment.indexes` those on indexes.

The caller serializes appends (PartitionLog's lock); readers take no lock. Source: Kafka LogSegment.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.broker.storage.files.file_names import LOG_SUFFIX, file_name
from barnabas.broker.storage.files.file_records import FileRecords
from barnabas.broker.storage.files.open_files import OpenFiles
from barnabas.broker.storage.index.time_index import NO_TIMESTAMP, TimestampOffset
from barnabas.broker.storage.segment.indexes import SegmentIndexes
from barnabas.broker.storage.segment.scan import iter_headers
from barnabas.broker.storage.services.clock import Clock
from barnabas.config.log_config import LogConfig
from barnabas.protocol.records.kernels.kernel import find_batch
from barnabas.protocol.records.layout import MAGIC_POSITION, MAGIC_V2

MAX_RELATIVE_OFFSET = 2**31 - 1
_NEVER = 2**63 - 1
_new_tuple = tuple.__new__  # half the cost of the class's own constructor

_MIN_SCAN_BYTES = 512
_MAX_SCAN_BYTES = 64 * 1024


class BatchLocation(NamedTuple):
    """Position of a batch in a segment's file, and its offsets."""

    position: int
    base_offset: int
    last_offset: int
    size_bytes: int


class AppendedBatch(NamedTuple):
    """One of several batches written together; `position` is within their buffer."""

    position: int
    size_bytes: int
    last_offset: int
    max_timestamp: int


class LogSegment(SegmentIndexes):
    """A segment, from `create` (new, active) or `open_sealed` (existing; `activate` makes it the active one)."""

    __slots__ = (
        "_old_messages",
        "_scan_bytes",
        "_segment_ms",
        "created_ms",
        "roll_after",
        "roll_jitter_ms",
        "rolls_by_wall_clock",
    )

    def __init__(
        self, directory: str, base_offset: int, log: FileRecords, config: LogConfig, clock: Clock, open_files: OpenFiles
    ) -> None:
        super().__init__(directory, base_offset, log, config, open_files)
        self.created_ms = clock.wall_ms()
        self.roll_jitter_ms = _draw_jitter(config)
        self._scan_bytes = min(max(config.index_interval_bytes + _MIN_SCAN_BYTES, _MIN_SCAN_BYTES), _MAX_SCAN_BYTES)
        self._old_messages: bool | None = None
        """Whether it contains messages of format 0 or 1; None if not checked yet."""
        self._segment_ms = _NEVER
        self.rolls_by_wall_clock = False
        self.roll_after = _NEVER
        """A batch after this time rolls: by its maximum timestamp, or by the wall clock without timestamps."""

    @classmethod
    def create(
        cls,
        directory: str,
        base_offset: int,
        config: LogConfig,
        clock: Clock,
        open_files: OpenFiles,
        *,
        stage: str = "",
    ) -> LogSegment:
        """Create an active segment; its index files are created with its first batch. Raises OSError."""
        path = f"{directory}/{file_name(base_offset, LOG_SUFFIX, stage)}"
        log = FileRecords.create(path, open_files, preallocate_bytes=config.segment_bytes if config.preallocate else 0)
        segment = cls(directory, base_offset, log, config, clock, open_files)
        segment._largest = TimestampOffset(NO_TIMESTAMP, base_offset)
        segment.change_stage_names(stage)
        segment._old_messages = False
        segment.update_segment_ms(config.max_segment_ms)
        return segment

    @classmethod
    def open_sealed(
        cls,
        directory: str,
        base_offset: int,
        size_bytes: int,
        config: LogConfig,
        clock: Clock,
        open_files: OpenFiles,
    ) -> LogSegment:
        """Represent a segment on disk. Nothing is read yet; the indexes are checked when they are first used."""
        path = f"{directory}/{file_name(base_offset, LOG_SUFFIX)}"
        log = FileRecords(path, size_bytes, open_files)
        segment = cls(directory, base_offset, log, config, clock, open_files)
        segment._indexes_trusted = False
        return segment

    def __repr__(self) -> str:
        return f"LogSegment(base_offset={self.base_offset}, size_bytes={self.size_bytes}, path={self.log.path})"

    def activate(self, config: LogConfig) -> None:
        """Open the files for appends, with indexes of maximum size, creating missing ones. Raises OSError."""
        self._max_index_bytes = config.segment_index_bytes
        if self.log.size_bytes and not self._indexes_trusted:
            self._check_indexes()
        self.log.activate()
        self._indexes_trusted = True
        self.offset_index.open_writable(self._max_index_bytes)
        self.time_index.open_writable(self._max_index_bytes)
        self._bytes_since_index_entry = 0
        self._largest = self.time_index.last_entry()
        self.index_is_full = self.offset_index.is_full or self.time_index.is_full
        self.update_segment_ms(config.max_segment_ms)

    def update_segment_ms(self, segment_ms: int) -> None:
        """Set the age at which this segment rolls. Raises OSError (the first batch's timestamp may be read)."""
        self._segment_ms = segment_ms
        if self.log.size_bytes == 0:
            self.roll_after = _NEVER
            return
        first = self.first_timestamp()
        self.rolls_by_wall_clock = first < 0
        # Limited to an int64, as all timestamps are: the compiled append reads it as one.
        self.roll_after = min((self.created_ms if first < 0 else first) + segment_ms - self.roll_jitter_ms, _NEVER)

    def should_roll(self, size: int, last_offset: int, max_timestamp: int, now_ms: int, segment_bytes: int) -> bool:
        """Return whether a batch (`size` in bytes) belongs in a new segment.

        It does when this segment would exceed `segment_bytes`, an index is full, segment.ms is over, or `last_offset`
        does not fit the four bytes of a relative offset. An empty segment rolls only for the last reason.
        """
        size_bytes = self.log.size_bytes
        if size_bytes and (
            size_bytes + size > segment_bytes
            or self.index_is_full
            or (now_ms if self.rolls_by_wall_clock else max_timestamp) > self.roll_after
        ):
            return True
        return last_offset - self.base_offset > MAX_RELATIVE_OFFSET

    def append(self, data: memoryview | bytes | bytearray, size: int, last_offset: int, max_timestamp: int) -> None:
        """Write one batch and, every index.interval.bytes, an index entry. Raises OSError; then nothing was added."""
        log = self.log
        position = log.size_bytes
        if position == 0:
            self._append_first(data, size, last_offset, max_timestamp)
            return
        since = self._bytes_since_index_entry
        indexed = since > self._index_interval_bytes
        if indexed:
            # Before the write: if the disk has no space for the index entry, the batch must not be written either.
            self.offset_index.prepare_append()
            self.time_index.prepare_append()
        log.append(data)
        largest = self._largest
        if largest is None or max_timestamp > largest[0]:
            largest = self._largest = _new_tuple(TimestampOffset, (max_timestamp, last_offset))
        if indexed:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(largest[0], largest[1])
            self.index_is_full = self.offset_index.is_full or self.time_index.is_full
            since = 0
        self._bytes_since_index_entry = since + size

    def append_many(self, data: memoryview | bytearray, batches: Sequence[AppendedBatch]) -> None:
        """Write several batches in one call. Raises OSError; then nothing was added.

        If an index becomes full meanwhile, the rest is not indexed, and the next append rolls.
        """
        start = self.log.size_bytes
        self.open_indexes()
        self.offset_index.prepare_append(len(batches))
        self.time_index.prepare_append(len(batches))
        self.log.append(data)
        if self._largest is None:
            self._largest = self.time_index.last_entry()
        since = self._bytes_since_index_entry
        for batch in batches:
            since = self.index_batch(
                start + batch.position, batch.size_bytes, batch.last_offset, batch.max_timestamp, since
            )
        self._bytes_since_index_entry = since
        self.index_is_full = self.offset_index.is_full or self.time_index.is_full
        if start == 0:
            self.update_segment_ms(self._segment_ms)

    def _append_first(
        self, data: memoryview | bytes | bytearray, size: int, last_offset: int, max_timestamp: int
    ) -> None:
        self.open_indexes()
        self.log.append(data)
        if max_timestamp > NO_TIMESTAMP:
            self._largest = TimestampOffset(max_timestamp, last_offset)
        self._first_timestamp = max_timestamp
        self._bytes_since_index_entry += size
        self.update_segment_ms(self._segment_ms)

    def find_batch(self, target_offset: int, limit_position: int) -> BatchLocation | None:
        """Return the first batch with a last offset >= the target that begins below `limit_position`, or None.

        Costs an index lookup and a small read. Raises CorruptRecordError, CorruptFileError, OSError.
        """
        position = self.index_position(target_offset)
        handle = self.log.handle()
        while position < limit_position:
            # Never beyond the limit: there may be half a batch, or preallocated zeros.
            chunk = os.pread(handle.fd, min(self._scan_bytes, limit_position - position), position)
            inside, base_offset, last_offset, size = find_batch(chunk, 0, target_offset)
            position += inside
            if base_offset >= 0:
                if chunk[inside + MAGIC_POSITION] != MAGIC_V2:
                    self._old_messages = True
                return BatchLocation(position, base_offset, last_offset, size)
            if inside == 0:
                return None  # less than a header is left
        return None

    @property
    def holds_old_messages(self) -> bool:
        """Whether to expect messages of format 0 or 1: the first one is, or one was found later. Raises OSError."""
        old = self._old_messages
        if old is None:
            handle = self.log.handle()  # a reference, so that the descriptor is not closed and reused meanwhile
            head = os.pread(handle.fd, MAGIC_POSITION + 1, 0)
            old = self._old_messages = len(head) > MAGIC_POSITION and head[MAGIC_POSITION] != MAGIC_V2
        return old

    def expect_old_messages(self) -> None:
        """Note that a message of format 0 or 1 was written to this segment."""
        self._old_messages = True

    def largest_timestamp(self) -> int:
        """Return the largest timestamp, or the file's modification time without one: for retention. Raises OSError."""
        timestamp = self.largest_timestamp_so_far().timestamp
        return timestamp if timestamp >= 0 else self.last_modified_ms()

    def read_next_offset(self) -> int:
        """Return the offset after the last batch, by index and scan. Raises CorruptRecordError, OSError."""
        next_offset = self.base_offset
        if self.log.size_bytes:
            position = self.index_position(MAX_RELATIVE_OFFSET + self.base_offset)
            for _, header in iter_headers(self.log.handle(), position, self.log.size_bytes):
                next_offset = header.next_offset
        return next_offset

    def seal(self) -> None:
        """End appends: add the closing time entry and trim all files. Raises OSError; may be called again."""
        self._add_closing_entry()
        self.index_is_full = True  # if the rest fails (a full disk), the next append must roll and seal again
        self.offset_index.trim()
        self.time_index.trim()
        self.log.seal()

    def close(self) -> None:
        """Seal the segment if it is active, and release its files. Raises OSError."""
        if self.log.fd >= 0:
            self.seal()
        self.release()


def _draw_jitter(config: LogConfig) -> int:
    limit = min(config.segment_jitter_ms, config.segment_ms)
    if limit <= 0:
        return 0
    import random  # here: few topics have a jitter, and a start would wait 1 ms for it

    return random.randrange(limit)

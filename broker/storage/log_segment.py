"""One segment of a log: a `.log` file and its two indexes, from a base offset on.

The newest segment of a log is active: its files are open for writing and its indexes have their maximum size. All
others are sealed: trimmed, read-only, opened when they are used. A segment knows when it should make room for a new
one, but rolls nothing itself.

Index interval: an entry is added for a batch when more than `index.interval.bytes` were appended since the last entry,
counted without this batch. So the first batch of a segment is never indexed. The count lives in memory only and starts
at 0 at every open. The caller serializes appends (PartitionLog's lock); readers take no lock.
Source: Kafka LogSegment.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import threading
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.broker.storage.clock import Clock
from barnabas.broker.storage.failpoints import reach
from barnabas.broker.storage.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
)
from barnabas.broker.storage.file_records import FileRecords
from barnabas.broker.storage.offset_index import OffsetIndex
from barnabas.broker.storage.open_files import OpenFiles
from barnabas.broker.storage.segment_scan import iter_headers, scan_segment
from barnabas.broker.storage.storage_errors import CorruptFileError
from barnabas.broker.storage.time_index import NO_TIMESTAMP, TimeIndex, TimestampOffset
from barnabas.broker.storage.transaction_index import TransactionIndex
from barnabas.config.log_config import LogConfig
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.kernel import find_batch
from barnabas.protocol.records.layout import MAGIC_POSITION, MAGIC_V2
from barnabas.protocol.records.scan import BatchScan
from barnabas.protocol.records.scanned import ScanFault

MAX_RELATIVE_OFFSET = 2**31 - 1
_NEVER = 2**63
_new_tuple = tuple.__new__  # half the cost of the class's own constructor

_MIN_SCAN_BYTES = 512
_MAX_SCAN_BYTES = 64 * 1024

_log = logging.getLogger(__name__)

_rebuild_lock = threading.Lock()
"""Rebuilding an index is rare and slow; one at a time in the process is enough."""


class BatchLocation(NamedTuple):
    """Where a batch lies in a segment's file, and which offsets it covers."""

    position: int
    base_offset: int
    last_offset: int
    size_bytes: int


class AppendedBatch(NamedTuple):
    """One of several batches that are written at once; `position` is within their buffer."""

    position: int
    size_bytes: int
    last_offset: int
    max_timestamp: int


class LogSegment:
    """A segment, made by `create` (new, active) or `open_sealed` (on disk; `activate` makes it the active one)."""

    __slots__ = (
        "_bytes_since_index_entry",
        "_clock",
        "_directory",
        "_first_timestamp",
        "_index_interval_bytes",
        "_indexes_trusted",
        "_largest",
        "_old_messages",
        "_max_index_bytes",
        "_scan_bytes",
        "_segment_ms",
        "_stage",
        "_transaction_index",
        "base_offset",
        "created_ms",
        "index_is_full",
        "log",
        "offset_index",
        "roll_after",
        "roll_jitter_ms",
        "rolls_by_wall_clock",
        "time_index",
    )

    def __init__(
        self, directory: str, base_offset: int, log: FileRecords, config: LogConfig, clock: Clock, open_files: OpenFiles
    ) -> None:
        self.base_offset = base_offset
        self.log = log
        self.offset_index = OffsetIndex(
            f"{directory}/{file_name(base_offset, OFFSET_INDEX_SUFFIX)}", base_offset, open_files
        )
        self.time_index = TimeIndex(f"{directory}/{file_name(base_offset, TIME_INDEX_SUFFIX)}", base_offset, open_files)
        self._transaction_index: TransactionIndex | None = None
        self.created_ms = clock.wall_ms()
        self.roll_jitter_ms = _draw_jitter(config)
        self._clock = clock
        self._directory = directory
        self._stage = ""
        self._index_interval_bytes = config.index_interval_bytes
        self._max_index_bytes = config.segment_index_bytes
        self._scan_bytes = min(max(config.index_interval_bytes + _MIN_SCAN_BYTES, _MIN_SCAN_BYTES), _MAX_SCAN_BYTES)
        self._bytes_since_index_entry = 0
        self._largest: TimestampOffset | None = None
        """The largest timestamp so far and the last offset of its batch; None until it is asked for after a load."""
        self._first_timestamp: int | None = None
        self._indexes_trusted = True
        self._old_messages: bool | None = None
        """Whether there are messages of format 0 or 1; None until that was looked for."""
        self._segment_ms = _NEVER
        self.index_is_full = False
        """Whether one of the indexes has no room for another entry."""
        self.rolls_by_wall_clock = False
        self.roll_after = _NEVER
        """A batch later than this rolls: by its maximum timestamp, or by the wall clock where there are none."""

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
        """A new segment, active; its index files are made with its first batch. Raises OSError."""
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
        """A segment that lies on disk. Nothing is read yet: its indexes are checked when they are first used."""
        path = f"{directory}/{file_name(base_offset, LOG_SUFFIX)}"
        log = FileRecords(path, size_bytes, open_files)
        segment = cls(directory, base_offset, log, config, clock, open_files)
        segment._indexes_trusted = False
        return segment

    def __repr__(self) -> str:
        return f"LogSegment(base_offset={self.base_offset}, size_bytes={self.size_bytes}, path={self.log.path})"

    @property
    def size_bytes(self) -> int:
        """Bytes of whole batches."""
        return self.log.size_bytes

    @property
    def transaction_index(self) -> TransactionIndex:
        """Which transactions were aborted by a marker in this segment; most segments have no such file."""
        index = self._transaction_index
        if index is None:
            path = self._path(TRANSACTION_INDEX_SUFFIX, self._stage)
            index = self._transaction_index = TransactionIndex(path, self.base_offset)
        return index

    def activate(self, config: LogConfig) -> None:
        """Open the files for appends, with indexes of their maximum size, making missing ones. Raises OSError."""
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
        """Set after what time this segment rolls. Raises OSError (the first batch's timestamp may be read)."""
        self._segment_ms = segment_ms
        if self.log.size_bytes == 0:
            self.roll_after = _NEVER
            return
        first = self.first_timestamp()
        self.rolls_by_wall_clock = first < 0
        self.roll_after = (self.created_ms if first < 0 else first) + segment_ms - self.roll_jitter_ms

    def append(self, data: memoryview | bytes | bytearray, size: int, last_offset: int, max_timestamp: int) -> None:
        """Write one batch and, if its turn has come, an index entry. Raises OSError; then nothing was added."""
        log = self.log
        position = log.size_bytes
        if position == 0:
            self._append_first(data, size, last_offset, max_timestamp)
            return
        since = self._bytes_since_index_entry
        indexed = since > self._index_interval_bytes
        if indexed:
            # Before the write: an index that has no room on a full disk must not leave a batch behind.
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
        """Write several batches at once. Raises OSError; then nothing was added.

        An index that fills on the way gets no more entries: the next append rolls.
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

    def open_indexes(self) -> None:
        """Make the index files of an active segment that has none yet. Raises OSError."""
        if self.offset_index.entries < 0 or self.time_index.entries < 0:
            self.offset_index.open_writable(self._max_index_bytes)
            self.time_index.open_writable(self._max_index_bytes)

    def find_batch(self, target_offset: int, limit_position: int) -> BatchLocation | None:
        """The first batch whose last offset is >= the target and that begins below `limit_position`.

        Index lookup, then one small read. Raises CorruptRecordError, CorruptFileError, OSError.
        """
        position = self.index_position(target_offset)
        handle = self.log.handle()
        while position < limit_position:
            # Never beyond the limit: what lies there may be half a batch, or preallocated zeros.
            chunk = os.pread(handle.fd, min(self._scan_bytes, limit_position - position), position)
            inside, base_offset, last_offset, size = find_batch(chunk, 0, target_offset)
            position += inside
            if base_offset >= 0:
                if chunk[inside + MAGIC_POSITION] != MAGIC_V2:
                    self._old_messages = True
                return BatchLocation(position, base_offset, last_offset, size)
            if inside == 0:
                return None  # not even a header before the file's end
        return None

    @property
    def holds_old_messages(self) -> bool:
        """Whether messages of format 0 or 1 are to be expected: the first is one, or one was met. Raises OSError."""
        old = self._old_messages
        if old is None:
            head = os.pread(self.log.handle().fd, MAGIC_POSITION + 1, 0)
            old = self._old_messages = len(head) > MAGIC_POSITION and head[MAGIC_POSITION] != MAGIC_V2
        return old

    def expect_old_messages(self) -> None:
        """A message of format 0 or 1 was written to it."""
        self._old_messages = True

    def index_position(self, target_offset: int) -> int:
        """Where to start looking for `target_offset`: at or before its batch. Raises OSError."""
        if self.offset_index.entries < 0 and self.log.size_bytes == 0:
            return 0
        if not self._indexes_trusted:
            self._check_indexes()
        return self.offset_index.position_for(target_offset)

    def offset_from_position(self, position: int) -> int | None:
        """The last offset of some batch that begins at `position` or behind it, by the index. Raises OSError."""
        if self.offset_index.entries < 0 and self.log.size_bytes == 0:
            return None
        if not self._indexes_trusted:
            self._check_indexes()
        return self.offset_index.offset_from_position(position)

    def time_position(self, target_timestamp: int, starting_offset: int) -> int:
        """Where to start looking for the first record at or after a timestamp and an offset. Raises OSError."""
        if self.offset_index.entries < 0 and self.log.size_bytes == 0:
            return 0
        if not self._indexes_trusted:
            self._check_indexes()
        entry = self.time_index.lookup(target_timestamp)
        return self.offset_index.position_for(max(entry.offset, starting_offset))

    def largest_timestamp_so_far(self) -> TimestampOffset:
        """The largest timestamp, and its batch's last offset; (-1, base offset) without any. Raises OSError."""
        largest = self._largest
        if largest is None:
            if not self._indexes_trusted:
                self._check_indexes()
            largest = self._largest = self.time_index.last_entry()
        return largest

    def largest_timestamp(self) -> int:
        """What retention and lookups go by: the largest timestamp, or the file's age without one. Raises OSError."""
        timestamp = self.largest_timestamp_so_far().timestamp
        return timestamp if timestamp >= 0 else self.last_modified_ms()

    def last_modified_ms(self) -> int:
        """When the `.log` file was last written to. Raises OSError."""
        return os.stat(self.log.path).st_mtime_ns // 1_000_000

    def set_last_modified(self, ms: int) -> None:
        """Give the `.log` and its indexes this age. Raises OSError."""
        for path in (self.log.path, self.offset_index.path, self.time_index.path):
            os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000))

    def first_timestamp(self) -> int:
        """The first batch's maximum timestamp, -1 without one or without a batch. Raises OSError."""
        if self._first_timestamp is None:
            for _, header in iter_headers(self.log.handle(), 0, self.log.size_bytes):
                self._first_timestamp = header.max_timestamp
                break
        return NO_TIMESTAMP if self._first_timestamp is None else self._first_timestamp

    def read_next_offset(self) -> int:
        """The offset after the last batch, by index and scan. Raises CorruptRecordError, OSError."""
        next_offset = self.base_offset
        if self.log.size_bytes:
            position = self.index_position(MAX_RELATIVE_OFFSET + self.base_offset)
            for _, header in iter_headers(self.log.handle(), position, self.log.size_bytes):
                next_offset = header.next_offset
        return next_offset

    def seal(self) -> None:
        """No more batches: add the closing time entry and trim all files. Raises OSError; may be called again."""
        self._add_closing_entry()
        self.index_is_full = True  # if what follows fails (a full disk), the next append must come here again
        self.offset_index.trim()
        self.time_index.trim()
        self.log.seal()

    def sync(self, *, with_indexes: bool) -> None:
        """Make the batches durable, and the indexes if asked. Raises OSError, which takes the directory offline."""
        self.log.sync()
        if with_indexes:
            self.offset_index.sync()
            self.time_index.sync()
            self.transaction_index.sync()

    def close(self) -> None:
        """Seal if active, and let go of all files. Raises OSError."""
        if self.log.fd >= 0:
            self.seal()
        self.release()

    def release(self) -> None:
        """Let go of all files and write nothing: the disk may have failed."""
        self.offset_index.close()
        self.time_index.close()
        self.log.close()
        if self._transaction_index is not None:
            self._transaction_index.forget()

    def move_to(self, directory: str) -> None:
        """The partition's directory was renamed."""
        self._directory = directory
        self._set_paths()

    def change_stage(self, stage: str) -> None:
        """Rename all files from the present stage ("" or `.swap`, ...) to another. Raises OSError."""
        for suffix in SEGMENT_SUFFIXES:
            with contextlib.suppress(FileNotFoundError):  # indexes are made at first use
                os.rename(self._path(suffix, self._stage), self._path(suffix, stage))
                reach("segment.renamed")
        self.change_stage_names(stage)

    def change_stage_names(self, stage: str) -> None:
        """The files carry this suffix already."""
        self._stage = stage
        self._set_paths()

    def delete_files(self) -> None:
        """Let go of all files and remove them. Raises OSError."""
        self.release()
        for suffix in SEGMENT_SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(suffix, self._stage))

    @property
    def stage(self) -> str:
        """The suffix that the files carry, empty for a segment in service."""
        return self._stage

    def rebuild_indexes(self) -> None:
        """Write both indexes anew from the batches' headers, durably. Raises CorruptRecordError, OSError."""
        scan = self.new_scan(check_crc=False)
        for _ in scan_segment(scan, self.log.handle(), self.log.size_bytes):
            pass
        if scan.fault not in (None, ScanFault.TORN):
            raise CorruptRecordError(f"the batch at position {scan.position} {scan.fault.value}")
        self.replace_indexes(scan)
        self.offset_index.sync()
        self.time_index.sync()

    def new_scan(self, *, check_crc: bool, latest_epoch: int = -1) -> BatchScan:
        """A scan of this segment that will find its index entries."""
        return BatchScan(
            self.base_offset,
            check_crc=check_crc,
            index_interval_bytes=self._index_interval_bytes,
            max_offset_entries=self._max_index_bytes // self.offset_index.ENTRY_SIZE,
            max_time_entries=self._max_index_bytes // self.time_index.ENTRY_SIZE,
            latest_epoch=latest_epoch,
        )

    def replace_indexes(self, scan: BatchScan) -> None:
        """Write both indexes anew from what a scan of the whole segment has found. Raises OSError."""
        self._largest = TimestampOffset(scan.max_timestamp, scan.max_timestamp_offset)
        self._first_timestamp = scan.first_timestamp
        self.offset_index.replace(bytes(scan.offset_entries))
        self.time_index.replace_closed(bytes(scan.time_entries), self._largest)
        self._indexes_trusted = True

    def index_batch(self, position: int, size: int, last_offset: int, max_timestamp: int, since: int) -> int:
        """Note one batch in the indexes by the rule of an append; the bytes since the last entry, to hand in next."""
        assert self._largest is not None
        if self._first_timestamp is None:
            self._first_timestamp = max_timestamp
        if max_timestamp > self._largest.timestamp:
            self._largest = TimestampOffset(max_timestamp, last_offset)
        if since > self._index_interval_bytes and not self.offset_index.is_full and not self.time_index.is_full:
            self.offset_index.prepare_append()
            self.time_index.prepare_append()
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(*self._largest)
            since = 0
        return since + size

    def _add_closing_entry(self) -> None:
        largest = self._largest
        if largest is None or largest.timestamp <= self.time_index.last_timestamp or self.time_index.entries < 0:
            return
        if self.time_index.entries < self.time_index.max_entries:
            self.time_index.prepare_append()
            self.time_index.maybe_append(*largest)

    def _check_indexes(self) -> None:
        """The O(1) look at both indexes before their first use, and the way out when one cannot be right."""
        with _rebuild_lock:
            if self._indexes_trusted:
                return
            try:
                self.offset_index.check(self.log.size_bytes)
                self.time_index.check(self.log.size_bytes)
                self._check_last_index_entry()
            except (CorruptFileError, CorruptRecordError, FileNotFoundError) as error:
                _log.warning("rebuilding the indexes of %s: %s", self.log.path, error)
                self.rebuild_indexes()
            self._indexes_trusted = True

    def _check_last_index_entry(self) -> None:
        """The last entry must point to a batch that ends with its offset. Raises CorruptFileError, OSError."""
        if self.offset_index.entries <= 0:
            return
        offset, position = self.offset_index.entry(self.offset_index.entries - 1)
        for _, header in iter_headers(self.log.handle(), position, self.log.size_bytes):
            if header.last_offset == offset:
                return
            break
        raise CorruptFileError(
            self.offset_index.path, f"no batch at position {position} ends with offset {offset}, as the last entry says"
        )

    def _path(self, suffix: str, stage: str) -> str:
        return f"{self._directory}/{file_name(self.base_offset, suffix, stage)}"

    def _set_paths(self) -> None:
        self.log.path = self._path(LOG_SUFFIX, self._stage)
        self.offset_index.path = self._path(OFFSET_INDEX_SUFFIX, self._stage)
        self.time_index.path = self._path(TIME_INDEX_SUFFIX, self._stage)
        if self._transaction_index is not None:
            self._transaction_index.path = self._path(TRANSACTION_INDEX_SUFFIX, self._stage)


def _draw_jitter(config: LogConfig) -> int:
    limit = min(config.segment_jitter_ms, config.segment_ms)
    return random.randrange(limit) if limit > 0 else 0

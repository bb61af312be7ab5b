"""The indexes of one segment as they are used: looked up, checked before their first use, rebuilt, closed.

Index interval: an entry is added for a batch when more than `index.interval.bytes` were appended since the last entry,
counted without this batch. So the first batch of a segment is never indexed. The count lives in memory only and starts
at 0 at every open.

Indexes that lie on disk are trusted after an O(1) look at their last entries; those that cannot be right are rebuilt
from the batches, which costs a read of the `.log` file once. Source: Kafka LogSegment, AbstractIndex.sanityCheck.
"""

from __future__ import annotations

import logging
import os
import threading

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.file_records import FileRecords
from barnabas.broker.storage.files.open_files import OpenFiles
from barnabas.broker.storage.index.time_index import NO_TIMESTAMP, TimestampOffset
from barnabas.broker.storage.segment.files import SegmentFiles
from barnabas.broker.storage.segment.scan import iter_headers, scan_segment
from barnabas.config.log_config import LogConfig
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.kernels.scan import BatchScan
from barnabas.protocol.records.kernels.scanned import ScanFault

logger = logging.getLogger(__name__)

_rebuild_lock = threading.Lock()
"""Rebuilding an index is rare and slow; one at a time in the process is enough."""


class SegmentIndexes(SegmentFiles):
    """The offset index and the time index of a segment, and the largest and the first timestamp that go with them."""

    __slots__ = (
        "_bytes_since_index_entry",
        "_first_timestamp",
        "_index_interval_bytes",
        "_indexes_trusted",
        "_largest",
        "_max_index_bytes",
        "index_is_full",
    )

    def __init__(
        self, directory: str, base_offset: int, log: FileRecords, config: LogConfig, open_files: OpenFiles
    ) -> None:
        super().__init__(directory, base_offset, log, open_files)
        self._index_interval_bytes = config.index_interval_bytes
        self._max_index_bytes = config.segment_index_bytes
        self._bytes_since_index_entry = 0
        self._largest: TimestampOffset | None = None
        """The largest timestamp so far and the last offset of its batch; None until it is asked for after a load."""
        self._first_timestamp: int | None = None
        self._indexes_trusted = True
        self.index_is_full = False
        """Whether one of the indexes has no room for another entry."""

    def open_indexes(self) -> None:
        """Make the index files of an active segment that has none yet. Raises OSError."""
        if self.offset_index.entries < 0 or self.time_index.entries < 0:
            self.offset_index.open_writable(self._max_index_bytes)
            self.time_index.open_writable(self._max_index_bytes)

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

    def first_timestamp(self) -> int:
        """The first batch's maximum timestamp, -1 without one or without a batch. Raises OSError."""
        if self._first_timestamp is None:
            for _, header in iter_headers(self.log.handle(), 0, self.log.size_bytes):
                self._first_timestamp = header.max_timestamp
                break
        return NO_TIMESTAMP if self._first_timestamp is None else self._first_timestamp

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
                # Gone with the whole segment: what is rebuilt would lie where another segment's index is by now.
                os.stat(self.log.path)
                logger.warning("rebuilding the indexes of %s: %s", self.log.path, error)
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

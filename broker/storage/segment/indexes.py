"""Use of a segment's indexes: lookup, sanity check before the first use, rebuilding, closing.

Index interval: a batch gets an entry when more than `index.interval.bytes` were appended since the last entry, not
counting the batch itself. So the first batch of a segment is never indexed. The count is in memory only and starts at 0
at every open.

Existing indexes are trusted after an O(1) check of their last entries; if it fails they are rebuilt from the batches,
which reads the `.log` file once. Source: Kafka LogSegment, AbstractIndex.sanityCheck.
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
"""Serializes index rebuilds in this process: they are rare and slow."""


class SegmentIndexes(SegmentFiles):
    """Offset index and time index of a segment, with the segment's first and largest timestamp."""

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
        """Largest timestamp so far and the last offset of its batch; None after a load until it is first used."""
        self._first_timestamp: int | None = None
        self._indexes_trusted = True
        self.index_is_full = False
        """Whether one of the indexes has no space for another entry."""

    def open_indexes(self) -> None:
        """Create the index files of a new active segment, if not done yet. Raises OSError."""
        if self.offset_index.entries < 0 or self.time_index.entries < 0:
            self.offset_index.open_writable(self._max_index_bytes)
            self.time_index.open_writable(self._max_index_bytes)

    def index_position(self, target_offset: int) -> int:
        """Return the position to scan from for `target_offset`: at or before its batch. Raises OSError."""
        if self.offset_index.entries < 0 and self.log.size_bytes == 0:
            return 0
        if not self._indexes_trusted:
            self._check_indexes()
        return self.offset_index.position_for(target_offset)

    def offset_from_position(self, position: int) -> int | None:
        """Return the last offset of an indexed batch that begins at or after `position`, or None. Raises OSError."""
        if self.offset_index.entries < 0 and self.log.size_bytes == 0:
            return None
        if not self._indexes_trusted:
            self._check_indexes()
        return self.offset_index.offset_from_position(position)

    def time_position(self, target_timestamp: int, starting_offset: int) -> int:
        """Return the position to scan from for a record at or after a timestamp and an offset. Raises OSError."""
        # The time index is opened last: a look-up that opened it first would keep it from becoming writable.
        if self.time_index.entries < 0 and self.log.size_bytes == 0:
            return 0
        if not self._indexes_trusted:
            self._check_indexes()
        entry = self.time_index.lookup(target_timestamp)
        return self.offset_index.position_for(max(entry.offset, starting_offset))

    def largest_timestamp_so_far(self) -> TimestampOffset:
        """Return the largest timestamp and its batch's last offset, or (-1, base offset). Raises OSError."""
        largest = self._largest
        if largest is None:
            if not self._indexes_trusted:
                self._check_indexes()
            largest = self._largest = self.time_index.last_entry()
        return largest

    def first_timestamp(self) -> int:
        """Return the first batch's maximum timestamp, -1 without one or without a batch. Raises OSError."""
        if self._first_timestamp is None:
            for _, header in iter_headers(self.log.handle(), 0, self.log.size_bytes):
                self._first_timestamp = header.max_timestamp
                break
        return NO_TIMESTAMP if self._first_timestamp is None else self._first_timestamp

    def rebuild_indexes(self) -> None:
        """Rebuild both indexes durably from the batches' headers. Raises CorruptRecordError, OSError."""
        scan = self.new_scan(check_crc=False)
        for _ in scan_segment(scan, self.log.handle(), self.log.size_bytes):
            pass
        if scan.fault not in (None, ScanFault.TORN):
            raise CorruptRecordError(f"the batch at position {scan.position} {scan.fault.value}")
        self.replace_indexes(scan)
        self.offset_index.sync()
        self.time_index.sync()

    def new_scan(self, *, check_crc: bool, latest_epoch: int = -1) -> BatchScan:
        """Create a scan of this segment that collects its index entries."""
        return BatchScan(
            self.base_offset,
            check_crc=check_crc,
            index_interval_bytes=self._index_interval_bytes,
            max_offset_entries=self._max_index_bytes // self.offset_index.ENTRY_SIZE,
            max_time_entries=self._max_index_bytes // self.time_index.ENTRY_SIZE,
            latest_epoch=latest_epoch,
        )

    def replace_indexes(self, scan: BatchScan) -> None:
        """Replace both indexes by the entries of a scan of the whole segment. Raises OSError."""
        self._largest = TimestampOffset(scan.max_timestamp, scan.max_timestamp_offset)
        self._first_timestamp = scan.first_timestamp
        self.offset_index.replace(bytes(scan.offset_entries))
        self.time_index.replace_closed(bytes(scan.time_entries), self._largest)
        self._indexes_trusted = True

    def index_batch(self, position: int, size: int, last_offset: int, max_timestamp: int, since: int) -> int:
        """Index one batch if the interval has passed; return the new count of bytes since the last entry.

        `since` is that count before the batch, which it does not include.
        """
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
        """Check both indexes in O(1) before their first use, and rebuild them if one is wrong."""
        with _rebuild_lock:
            if self._indexes_trusted:
                return
            try:
                self.offset_index.check(self.log.size_bytes)
                self.time_index.check(self.log.size_bytes)
                self._check_last_index_entry()
            except (CorruptFileError, CorruptRecordError, FileNotFoundError) as error:
                # Raises if the whole segment was renamed: a rebuild would overwrite another segment's index.
                os.stat(self.log.path)
                logger.warning("rebuilding the indexes of %s: %s", self.log.path, error)
                self.rebuild_indexes()
            self._indexes_trusted = True

    def _check_last_index_entry(self) -> None:
        """Check that the last entry points to a batch with its offset. Raises CorruptFileError, OSError."""
        if self.offset_index.entries <= 0:
            return
        offset, position = self.offset_index.entry(self.offset_index.entries - 1)
        for _, header in iter_headers(self.log.handle(), position, self.log.size_bytes):
            if header.last_offset == offset:
                return
            break
        raise CorruptFileError(
            self.offset_index.path, f"last entry has offset {offset}, but no batch at position {position} ends with it"
        )

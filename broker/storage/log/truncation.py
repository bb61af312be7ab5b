"""Cutting the end of a live log off: what lies at or above an offset goes, and the next append gets that offset.

    truncate_to(offset)                         batches below it stay; one that contains it goes whole
    truncate_fully_and_start_at(offset)         nothing stays

Everything that knows of the end follows at once, under the log's lock: segments (renamed `.deleted`, removed later),
the last one's file and indexes, leader epochs, producer state and its snapshots, recovery point and start offset. What
is cut is synced, unlike in Kafka: after a power failure an old tail whose CRC is right would be taken for records.

A single node never cuts a live log, so nothing in the broker calls this yet: a follower will, when its leader's log is
another. The offline command has its own way (inspection/truncation), which needs no loaded log.

The caller stops the cleaner before, and writes the directory's checkpoints afterwards (Kafka LogManager.truncateTo). A
crash before that does no harm: recovery reads the newest segment even if the recovery point lies above its end.
Source: Kafka UnifiedLog.truncateTo, LocalLog.truncateTo, LogSegment.truncateTo.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import NoReturn

from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.index.time_index import TimestampOffset
from barnabas.broker.storage.log.producer_rebuild import rebuild_producer_state
from barnabas.broker.storage.log.read import LogEnd
from barnabas.broker.storage.log.writer import LogWriter
from barnabas.broker.storage.segment.deletion import delete_later
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.scan import iter_headers
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.errors import CorruptRecordError

logger = logging.getLogger(__name__)


class LogTruncation(LogWriter):
    """The cutting half of a PartitionLog."""

    def truncate_to(self, offset: int) -> bool:
        """Let the log end at `offset`; whether anything went. Below the first segment all of it goes.

        Raises BrokerError KAFKA_STORAGE_ERROR: the log is offline then, and recovered at the next start.
        """
        if offset < 0:
            raise ValueError(f"{self.topic_partition} cannot be truncated to offset {offset}")
        with self._lock:
            self._ensure_online()
            try:
                if offset >= self.log_end_offset:
                    if self._epochs.truncate_from_end(offset):
                        self._write_truncated_epochs()
                    return False
                logger.info("truncating %s to offset=%s: log_end_offset=%s", self, offset, self.log_end_offset)
                if offset < self._segments.first.base_offset:
                    self._start_anew(offset)
                else:
                    self._cut_to(offset)
            except (OSError, CorruptRecordError, CorruptFileError) as error:
                self._refuse_truncation(error)
            return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop all records; the log begins again at `offset`. Raises BrokerError as `truncate_to`."""
        if offset < 0:
            raise ValueError(f"{self.topic_partition} cannot begin at offset {offset}")
        with self._lock:
            self._ensure_online()
            logger.info("dropping all of %s, it begins again at offset=%s", self, offset)
            try:
                self._start_anew(offset)
            except (OSError, CorruptRecordError, CorruptFileError) as error:
                self._refuse_truncation(error)

    def _cut_to(self, offset: int) -> None:
        view = self._segments.view
        index = view.floor_index(offset)
        self._drop(view.segments[index + 1 :])
        _cut_segment(view.segments[index], offset)
        self._reopen_last(view.segments[index])
        self._epochs.truncate_from_end(offset)
        self._write_truncated_epochs()
        self._end_at(offset, min(self.log_start_offset, offset))

    def _start_anew(self, offset: int) -> None:
        self._drop(self._segments.view.segments)
        self._segments.add(
            LogSegment.create(
                os.fspath(self.directory), offset, self.config, self._services.clock, self._services.open_files
            )
        )
        self._epochs.clear()
        self._latest_epoch = self._epochs.latest_epoch
        self._producers.truncate_fully(offset)
        self._end_at(offset, offset)

    def _drop(self, segments: Iterable[LogSegment]) -> None:
        doomed = tuple(segments)
        self._segments.remove(doomed)
        snapshots = [path for segment in doomed if (path := self._producers.mark_snapshot_deleted(segment.base_offset))]
        # Newest first: a crash in between leaves no hole.
        delete_later(doomed[::-1], snapshots, self.log_dir, self._services, self.config.file_delete_delay_ms)
        sync_directory(self.directory)

    def _reopen_last(self, old: LogSegment) -> None:
        """Put a fresh segment object in the place of one whose file was cut, and open it for appends."""
        old.release()
        last = LogSegment.open_sealed(
            os.fspath(self.directory),
            old.base_offset,
            old.size_bytes,
            self.config,
            self._services.clock,
            self._services.open_files,
        )
        last.activate(self.config)
        self._segments.add(last)

    def _end_at(self, offset: int, log_start_offset: int) -> None:
        """All that is derived from the log's end. The segments are right already."""
        active = self._active = self._segments.last
        self._end = LogEnd(offset, active, active.size_bytes, -1, active.size_bytes)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.truncations += 1
        self.recovery_point = max(min(self.recovery_point, offset), log_start_offset)
        self.durable_offset = max(min(self.durable_offset, offset), log_start_offset)
        segments = self._segments.view.segments
        self._unsynced_sealed = [segment for segment in self._unsynced_sealed if segment in segments[:-1]]
        rebuild_producer_state(
            self._producers, self._segments, log_start_offset, offset, self._wall_ms(), after_clean_stop=False
        )
        self._first_unstable_offset = self._producers.first_unstable_offset

    def _write_truncated_epochs(self) -> None:
        self._epochs.write()
        self._latest_epoch = self._epochs.latest_epoch

    def _refuse_truncation(self, error: Exception) -> NoReturn:
        """Half of it may have happened: only a start sorts that out."""
        if isinstance(error, OSError):
            self._fail("cannot truncate the log", error)
        else:
            self.state = "offline"
            logger.error("%s is offline, it cannot be truncated: %s", self.topic_partition, error)
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic_partition}: cannot truncate: {error}") from error


def _cut_segment(segment: LogSegment, offset: int) -> None:
    """Cut a segment's files before the batch that reaches to `offset`, durably; they are trimmed afterwards.

    The time index gets a closing entry, so that its last one is the segment's largest timestamp again.
    """
    if segment.size_bytes == 0:
        return
    found = segment.find_batch(offset, segment.size_bytes)
    position = segment.size_bytes if found is None else found.position
    offset_entries = segment.offset_index.entries_below(offset)
    time_entries = segment.time_index.entries_below(offset)
    largest = segment.time_index.last_entry_of(time_entries)
    for _, header in iter_headers(segment.log.handle(), segment.index_position(largest.offset), position):
        if header.max_timestamp > largest.timestamp:
            largest = TimestampOffset(header.max_timestamp, header.last_offset)
    if segment.log.fd < 0:
        segment.log.activate()
    segment.log.truncate_to(position)
    segment.offset_index.replace(offset_entries)
    segment.time_index.replace_closed(time_entries, largest)
    segment.transaction_index.truncate_to(offset)
    segment.log.seal()
    segment.sync(with_indexes=True)

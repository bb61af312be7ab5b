"""LogTruncation: cuts off the end of a live log; the next append gets the offset of the cut.

    truncate_to(offset)                         batches below it stay; one that contains it goes as a whole
    truncate_fully_and_start_at(offset)         no batch stays

Everything derived from the end follows in one step, under the log's lock: segments (renamed `.deleted`, removed later),
the last one's file and indexes, leader epochs, producer state and its snapshots, recovery point and start offset. The
cut is synced, unlike in Kafka: after a power failure an old tail with a right CRC would be taken for records.

Copies call it where they differ from their source: mirrors, and standbys. The offline command truncates files without
a loaded log (inspection/truncation).

The first change cannot be taken back, so the descriptors that the others need are held before it: without them nothing
is changed, and the truncation can be repeated.

The caller stops the cleaner before, and writes the directory's checkpoints afterwards (Kafka LogManager.truncateTo). A
crash before that does no harm: recovery reads the newest segment even if the recovery point is above its end.
Source: Kafka UnifiedLog.truncateTo, LocalLog.truncateTo, LogSegment.truncateTo.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Final, NoReturn

from barnabas.broker.storage.files.durable_files import OpenDirectory
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.index.time_index import TimestampOffset
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.loading.producer_rebuild import rebuild_producer_state
from barnabas.broker.storage.log.read import LogEnd
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.segment.deletion import delete_later
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.scan import iter_headers
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.errors import CorruptRecordError

logger = logging.getLogger(__name__)

_FILES_AT_ONCE: Final = 8
"""More than the files that a truncation opens and has open at the same time, the directory left out."""


class LogTruncation:
    """Truncates one log."""

    __slots__ = ("_core",)

    def __init__(self, core: LogCore) -> None:
        self._core = core

    def truncate_to(self, offset: int) -> bool:
        """Let the log end at `offset`; return whether records went. Below the first segment all of them go.

        Raises BrokerError KAFKA_STORAGE_ERROR: nothing is changed if too many files are open, otherwise the log is
        offline, and recovered at the next start.
        """
        core = self._core
        if offset < 0:
            raise ValueError(f"{core.topic_partition} cannot be truncated to offset {offset}")
        with core.lock:
            core.ensure_online()
            try:
                if offset >= core.log_end_offset:
                    if core.epochs.truncate_from_end(offset):
                        self._write_epochs()
                    return False
                with self._open_directory() as directory:
                    logger.info("truncating %s to offset=%s: log_end_offset=%s", core, offset, core.log_end_offset)
                    if offset < core.segments.first.base_offset:
                        self._drop_all(offset, directory)
                    else:
                        self._cut_to(offset, directory)
            except (OSError, CorruptRecordError, CorruptFileError) as error:
                self._refuse(error)
            return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop all records; the log begins again at `offset`. Raises BrokerError as `truncate_to`."""
        core = self._core
        if offset < 0:
            raise ValueError(f"{core.topic_partition} cannot begin at offset {offset}")
        with core.lock:
            core.ensure_online()
            try:
                with self._open_directory() as directory:
                    logger.info("dropping all records of %s, it begins again at offset=%s", core, offset)
                    self._drop_all(offset, directory)
            except (OSError, CorruptRecordError, CorruptFileError) as error:
                self._refuse(error)

    def _open_directory(self) -> OpenDirectory:
        """Open the log's directory, with descriptors to spare. Raises BrokerError while too many files are open."""
        core = self._core
        try:
            return OpenDirectory(core.directory, spares=_FILES_AT_ONCE)
        except OSError as error:
            if not is_shortage(error):
                raise
            message = f"{core.topic_partition} cannot be truncated now: {error}"
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error

    def _cut_to(self, offset: int, directory: OpenDirectory) -> None:
        core = self._core
        view = core.segments.view
        index = view.floor_index(offset)
        self._drop(view.segments[index + 1 :], directory)
        _cut_segment(view.segments[index], offset)
        self._reopen_last(view.segments[index])
        core.epochs.truncate_from_end(offset)
        self._write_epochs()
        self._end_at(offset, min(core.log_start_offset, offset))

    def _drop_all(self, offset: int, directory: OpenDirectory) -> None:
        core = self._core
        self._drop(core.segments.view.segments, directory)
        core.segments.add(
            LogSegment.create(
                os.fspath(core.directory), offset, core.config, core.services.clock, core.services.open_files
            )
        )
        core.epochs.clear()
        core.latest_epoch = core.epochs.latest_epoch
        core.producers.truncate_fully(offset)
        self._end_at(offset, offset)

    def _drop(self, segments: Iterable[LogSegment], directory: OpenDirectory) -> None:
        core = self._core
        doomed = tuple(segments)
        core.segments.remove(doomed)
        snapshots = core.mark_snapshots_deleted(doomed)
        # Newest first: a crash in between leaves no hole.
        delete_later(doomed[::-1], snapshots, core.log_dir, core.services, core.config.file_delete_delay_ms)
        directory.sync()
        directory.release_spares()

    def _reopen_last(self, old: LogSegment) -> None:
        """Replace the object of a segment whose file was cut by a new one, open for appends."""
        core = self._core
        old.release()
        last = LogSegment.open_sealed(
            os.fspath(core.directory),
            old.base_offset,
            old.size_bytes,
            core.config,
            core.services.clock,
            core.services.open_files,
        )
        last.activate(core.config)
        core.segments.add(last)

    def _end_at(self, offset: int, log_start_offset: int) -> None:
        """Set everything that is derived from the log's end. The segments are right already."""
        core = self._core
        active = core.active = core.segments.last
        core.end = LogEnd(offset, active, active.size_bytes, -1, active.size_bytes)
        core.log_end_offset = offset
        if core.replicated_end is not None:  # what is appended at these offsets later is not at the standby
            core.replicated_end = min(core.replicated_end, offset)
        core.log_start_offset = log_start_offset
        core.truncations += 1
        core.recovery_point = max(min(core.recovery_point, offset), log_start_offset)
        core.durable_offset = max(min(core.durable_offset, offset), log_start_offset)
        sealed = core.segments.view.segments[:-1]
        core.unsynced_sealed = [segment for segment in core.unsynced_sealed if segment in sealed]
        rebuild_producer_state(
            core.producers, core.segments, log_start_offset, offset, core.wall_ms(), after_clean_stop=False
        )
        core.first_unstable_offset = core.producers.first_unstable_offset

    def _write_epochs(self) -> None:
        core = self._core
        core.epochs.write()
        core.latest_epoch = core.epochs.latest_epoch

    def _refuse(self, error: Exception) -> NoReturn:
        """Take the log offline: the truncation may be half done, and only a start can repair that."""
        core = self._core
        if isinstance(error, OSError):
            core.fail("cannot truncate the log", error)
        else:
            core.state = LogState.OFFLINE
            logger.error("%s is offline, it cannot be truncated: %s", core.topic_partition, error)
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{core.topic_partition}: cannot truncate: {error}") from error


def _cut_segment(segment: LogSegment, offset: int) -> None:
    """Cut a segment's files before the batch that contains `offset`, durably; they are trimmed afterwards.

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

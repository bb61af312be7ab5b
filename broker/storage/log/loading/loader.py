"""LogLoader: loads one log from its directory, in passes, and recovers it after an unclean stop.

    1. to 3. remove or finish the deletions, cleanings and swaps that a crash interrupted (leftovers.py)
    4. list segments; delete indexes without a segment; a missing .timeindex becomes an empty file; a missing .index
       or a bad .txnindex rebuilds its segment, even after a clean stop
    5. after an unclean stop: recover from the segment that contains the recovery point on. The log is truncated at the
       first damaged or torn batch, and the segments after it are dropped. Indexes are rebuilt. A segment with more than
       its indexes can hold is split, and loading begins again with pass 1, for which the pieces are `.swap`.
    6. a log that ends below its start offset is dropped and begins again at that offset
    7. open the newest segment for appends; cut leader epochs to the log; load producer state

No pass changes a file before it has to, and every pass can be repeated after a crash in it.
Source: Kafka LogLoader, LogSegment.recover.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.file_names import (
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    FileKind,
    ParsedFileName,
    file_name,
)
from barnabas.broker.storage.files.leader_epoch import LeaderEpochFile
from barnabas.broker.storage.index.transaction_index import TransactionIndex
from barnabas.broker.storage.log.loading.leftovers import remove_leftovers
from barnabas.broker.storage.log.loading.producer_rebuild import rebuild_producer_state
from barnabas.broker.storage.log.loading.segment_recovery import recover_segment
from barnabas.broker.storage.log.state import LoadState
from barnabas.broker.storage.producers.entry import ProducerEntry
from barnabas.broker.storage.producers.state import ProducerState
from barnabas.broker.storage.segment.deletion import delete_later
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.log_segments import LogSegments
from barnabas.broker.storage.segment.split import SegmentOverflowError, split_segment
from barnabas.broker.storage.services.services import StorageServices
from barnabas.config.log_config import LogConfig
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.topic_name import CLUSTER_METADATA_TOPIC
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class LoadProgress:
    """The progress of loading a log; the metrics read the fields while it runs.

    Afterwards it tells what the loading did: `seconds`, the segments and bytes that were read through, and the bytes
    and whole segments that were cut off.
    """

    __slots__ = (
        "dropped_bytes",
        "dropped_segments",
        "recovered_bytes",
        "recovered_segments",
        "seconds",
        "segments_left",
        "segments_total",
        "state",
    )

    def __init__(self, state: LoadState = LoadState.LOADING, segments_total: int = 0, segments_left: int = 0) -> None:
        self.state = state
        self.segments_total = segments_total
        self.segments_left = segments_left
        self.seconds = 0.0
        self.recovered_segments = 0
        self.recovered_bytes = 0
        self.dropped_segments = 0
        self.dropped_bytes = 0


class LoadRequest(NamedTuple):
    """The log to load, and its entries in the checkpoints of the log directory."""

    directory: Path
    topic_partition: TopicPartition
    config: LogConfig
    had_clean_shutdown: bool
    recovery_point: int
    log_start_offset: int


class LoadedLog(NamedTuple):
    """A loaded log, ready for appends."""

    segments: LogSegments
    leader_epochs: LeaderEpochFile
    producer_state: ProducerState
    log_start_offset: int
    log_end_offset: int
    recovery_point: int


class LogLoader:
    """Loads one log. Used once."""

    def __init__(self, request: LoadRequest, services: StorageServices, progress: LoadProgress) -> None:
        self._request = request
        self._directory = request.directory
        self._services = services
        self._progress = progress
        self._segments = LogSegments()
        self._epochs = LeaderEpochFile.load(request.directory)
        self._stored_epochs = self._epochs.entries
        self._snapshots: set[int] = set()
        """Offsets of the producer snapshots; shared by all producer states, so that the directory is listed once."""
        self._overdue_producers: dict[int, ProducerEntry] = {}

    def load(self) -> LoadedLog:
        """Run all passes. Raises OSError, CorruptFileError."""
        request = self._request
        self._load_and_recover()
        log_end_offset = self._end_offset_or_drop_all()
        active = self._segments.last
        active.activate(request.config)
        self._epochs.truncate_from_end(log_end_offset)
        self._epochs.truncate_from_start(request.log_start_offset)
        if self._epochs.entries != self._stored_epochs:
            self._epochs.write()
        log_start_offset = max(request.log_start_offset, self._segments.first.base_offset)
        state = self._new_producer_state()
        state.remove_stray_snapshots(set(self._segments.view.base_offsets))
        rebuild_producer_state(
            state,
            self._segments,
            log_start_offset,
            log_end_offset,
            self._services.clock.wall_ms(),
            after_clean_stop=request.had_clean_shutdown,
        )
        recovery_point = log_end_offset if request.had_clean_shutdown else min(request.recovery_point, log_end_offset)
        return LoadedLog(
            self._segments,
            self._epochs,
            state,
            log_start_offset,
            log_end_offset,
            max(recovery_point, log_start_offset),
        )

    def _load_and_recover(self) -> None:
        """Run passes 1 to 5, and repeat them after each segment that had to be split."""
        while True:
            self._segments = LogSegments()
            try:
                self._list_segments(remove_leftovers(self._directory, self._open_segment))
                if not self._request.had_clean_shutdown:
                    self._recover()
            except SegmentOverflowError as error:
                split_segment(error.segment, error.pieces)
                for segment in (*self._segments, error.segment):
                    segment.release()
            else:
                return

    def _list_segments(self, files: list[tuple[str, ParsedFileName]]) -> None:
        self._snapshots = {parsed.offset for _, parsed in files if parsed.kind is FileKind.SNAPSHOT}
        logs = {parsed.offset for _, parsed in files if parsed.kind is FileKind.LOG}
        time_indexes = {parsed.offset for _, parsed in files if parsed.kind is FileKind.TIME_INDEX}
        transaction_indexes = {parsed.offset for _, parsed in files if parsed.kind is FileKind.TRANSACTION_INDEX}
        offset_indexes = {parsed.offset for _, parsed in files if parsed.kind is FileKind.OFFSET_INDEX}
        for name, parsed in files:
            if parsed.kind not in (FileKind.LOG, FileKind.SNAPSHOT) and parsed.offset not in logs:
                logger.warning("removing an index without a segment: %s/%s", self._directory, name)
                os.unlink(self._directory / name)
        self._progress.segments_total = self._progress.segments_left = len(logs)
        bases = sorted(logs)
        for index, base_offset in enumerate(bases):
            segment = self._open_segment(base_offset, "")
            following = bases[index + 1] if index + 1 < len(bases) else None
            if base_offset not in offset_indexes:
                is_flushed = following is not None and following <= self._request.recovery_point
                if self._request.had_clean_shutdown or is_flushed:  # otherwise pass 5 recovers it
                    logger.warning("offset index missing, recovering the segment: %s", segment.log.path)
                    self._recover_segment(segment, following)
            elif base_offset in transaction_indexes and not _is_sane(segment.transaction_index):
                self._recover_segment(segment, following)
            elif base_offset not in time_indexes:
                path = self._directory / file_name(base_offset, TIME_INDEX_SUFFIX)
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
            self._segments.add(segment)

    def _recover(self) -> None:
        self._progress.state = LoadState.RECOVERING
        unflushed = self._segments.view.overlapping(self._request.recovery_point, 2**63)
        self._progress.segments_total = self._progress.segments_left = len(unflushed)
        for index, segment in enumerate(unflushed):
            following = unflushed[index + 1].base_offset if index + 1 < len(unflushed) else None
            dropped_bytes = self._recover_segment(segment, following)
            self._progress.segments_left -= 1
            if dropped_bytes:
                rest = unflushed[index + 1 :]
                logger.warning(
                    "truncated %s at offset=%s: dropped_bytes=%s, and %s segments after it",
                    self._request.topic_partition,
                    segment.read_next_offset(),
                    dropped_bytes,
                    len(rest),
                )
                self._drop(rest)
                break
        self._progress.segments_left = 0

    def _recover_segment(self, segment: LogSegment, next_base_offset: int | None) -> int:
        """Recover one segment and write a snapshot at its end; return how many bytes were cut off."""
        state = self._new_producer_state()
        rebuild_producer_state(
            state,
            self._segments,
            self._request.log_start_offset,
            segment.base_offset,
            self._services.clock.wall_ms(),
            after_clean_stop=False,
        )
        progress = self._progress
        size_bytes = segment.size_bytes
        dropped_bytes = recover_segment(segment, state, self._epochs, next_base_offset=next_base_offset)
        progress.recovered_segments += 1
        progress.recovered_bytes += size_bytes
        progress.dropped_bytes += dropped_bytes
        # Not synced, unlike in Kafka: the CRC detects a torn snapshot, and syncing 64 of them takes 0.2 s.
        state.take_snapshot(durably=False)
        return dropped_bytes

    def _end_offset_or_drop_all(self) -> int:
        """Return the log end offset; drop the whole log first if it ends below its start."""
        start = self._request.log_start_offset
        if len(self._segments):
            log_end_offset = self._read_end_offset(self._segments.last)
            if log_end_offset >= start:
                return log_end_offset
            logger.warning(
                "dropping all segments of %s, which begins again: log_end_offset=%s is below log_start_offset=%s",
                self._request.topic_partition,
                log_end_offset,
                start,
            )
            self._drop(self._segments.view.segments)
            self._epochs.clear()
            self._new_producer_state().truncate_fully(start)
        self._segments.add(
            LogSegment.create(
                os.fspath(self._directory), start, self._request.config, self._services.clock, self._services.open_files
            )
        )
        if self._request.topic_partition.topic == CLUSTER_METADATA_TOPIC:
            # Before its indexes are created: an index without its `.log` would refuse the next start.
            sync_directory(self._directory)
        return start

    def _read_end_offset(self, last: LogSegment) -> int:
        try:
            return last.read_next_offset()
        except CorruptRecordError as error:
            logger.warning("recovering %s although the last stop was clean: %s", last.log.path, error)
            self._recover_segment(last, None)
            return last.read_next_offset()

    def _drop(self, segments: tuple[LogSegment, ...]) -> None:
        self._progress.dropped_segments += len(segments)
        self._progress.dropped_bytes += sum(segment.size_bytes for segment in segments)
        self._segments.remove(segments)
        state = self._new_producer_state()
        snapshots = [path for segment in segments if (path := state.mark_snapshot_deleted(segment.base_offset))]
        delete_later(
            segments, snapshots, self._directory.parent, self._services, self._request.config.file_delete_delay_ms
        )

    def _open_segment(self, base_offset: int, stage: str) -> LogSegment:
        directory = os.fspath(self._directory)
        return LogSegment.open_sealed(
            directory,
            base_offset,
            os.stat(f"{directory}/{file_name(base_offset, LOG_SUFFIX, stage)}").st_size,
            self._request.config,
            self._services.clock,
            self._services.open_files,
        )

    def _new_producer_state(self) -> ProducerState:
        return ProducerState(
            self._request.topic_partition,
            self._directory,
            self._services.producer_expiration,
            self._snapshots,
            self._overdue_producers,
        )


def _is_sane(index: TransactionIndex) -> bool:
    try:
        index.check()
    except CorruptFileError as error:
        logger.warning("recovering a segment because of its transaction index: %s", error)
        return False
    return True

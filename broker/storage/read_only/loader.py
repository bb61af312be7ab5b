"""ReadOnlyLoader: loads a log without changing its files. Every change that LogLoader makes is made in memory.

    leftovers   `.deleted` and `.cleaned` are ignored; a finished `.swap` is served instead of the segments it replaces
    clean       the files are taken as they are; an index that cannot be right is rebuilt in memory
    unclean     from the recovery point on every batch is checked; the log ends at the first damaged or torn one

Source: Kafka LogLoader; log/loading/ does the same with files.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.file_names import (
    CLEANED_SUFFIX,
    SWAP_SUFFIX,
    FileKind,
    parse_file_name,
)
from barnabas.broker.storage.files.leader_epoch import LeaderEpochFile
from barnabas.broker.storage.log.loading.loader import LoadedLog, LoadProgress, LoadRequest
from barnabas.broker.storage.log.loading.producer_rebuild import rebuild_producer_state
from barnabas.broker.storage.log.state import LoadState
from barnabas.broker.storage.producers.state import ProducerState
from barnabas.broker.storage.read_only.segment import ReadOnlySegment
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.log_segments import LogSegments
from barnabas.broker.storage.services.services import StorageServices
from barnabas.protocol.records.errors import CorruptRecordError

logger = logging.getLogger(__name__)


class ReadOnlyProducerState(ProducerState):
    """Producer state that writes and removes no snapshot."""

    def take_snapshot(self, *, durably: bool) -> Path | None:
        """Do nothing."""
        return None

    def _remove_snapshot(self, offset: int) -> None:
        self.snapshot_offsets.discard(offset)


class ReadOnlyLoader:
    """Loads one log. Used once."""

    def __init__(self, request: LoadRequest, services: StorageServices, progress: LoadProgress) -> None:
        self._request = request
        self._directory = os.fspath(request.directory)
        self._services = services
        self._progress = progress
        self._segments = LogSegments()
        self._epochs = _read_epochs(request.directory)
        self._snapshots: set[int] = set()

    def load(self) -> LoadedLog:
        """Return the log as it is served. Raises OSError, CorruptRecordError."""
        request = self._request
        for base_offset, stage in self._listed():
            self._segments.add(self._open(base_offset, stage))
        if not request.had_clean_shutdown:
            self._recover()
        log_end_offset = self._end_offset_or_drop_all()
        self._epochs.truncate_from_end(log_end_offset)
        self._epochs.truncate_from_start(request.log_start_offset)
        log_start_offset = max(request.log_start_offset, self._segments.first.base_offset)
        state = self._state_at(log_start_offset, log_end_offset)
        return LoadedLog(self._segments, self._epochs, state, log_start_offset, log_end_offset, log_end_offset)

    def _listed(self) -> list[tuple[int, str]]:
        """Return base offset and stage of each segment that is served; note the offsets of producer snapshots."""
        plain: set[int] = set()
        swaps: set[int] = set()
        cleaned: set[int] = set()
        for name in os.listdir(self._directory):
            parsed = parse_file_name(name)
            if parsed is None:
                continue
            if parsed.kind is FileKind.SNAPSHOT and not parsed.stage:
                self._snapshots.add(parsed.offset)
            elif parsed.kind is FileKind.LOG and not parsed.stage:
                plain.add(parsed.offset)
            elif parsed.kind is FileKind.LOG and parsed.stage == SWAP_SUFFIX:
                swaps.add(parsed.offset)
            elif parsed.stage == CLEANED_SUFFIX:
                cleaned.add(parsed.offset)
        if cleaned:  # a `.swap` above an unfinished `.cleaned` may be half of a split: the original is still there
            swaps = {offset for offset in swaps if offset < min(cleaned)}
        served = [(offset, "") for offset in plain]
        if swaps:
            first, end = min(swaps), max(max(self._end_of_swap(offset), offset + 1) for offset in swaps)
            served = [(offset, stage) for offset, stage in served if not first <= offset < end]
            # An empty one above the first only marks the end of the replaced offsets: see segment/replacement.py.
            served += [
                (offset, SWAP_SUFFIX) for offset in swaps if offset == first or self._end_of_swap(offset) > offset
            ]
        return sorted(served)

    def _end_of_swap(self, base_offset: int) -> int:
        segment = self._open(base_offset, SWAP_SUFFIX)
        try:
            return segment.read_next_offset()
        finally:
            segment.release()

    def _recover(self) -> None:
        self._progress.state = LoadState.RECOVERING
        unflushed = self._segments.view.overlapping(self._request.recovery_point, 2**63)
        self._progress.segments_total = self._progress.segments_left = len(unflushed)
        for index, segment in enumerate(unflushed):
            not_served = self._recover_segment(segment)
            self._progress.segments_left -= 1
            if not_served:
                rest = unflushed[index + 1 :]
                logger.warning(
                    "%s is served up to offset=%s: bytes_not_served=%s, and %s segments after it",
                    self._request.topic_partition,
                    segment.read_next_offset(),
                    not_served,
                    len(rest),
                )
                self._segments.remove(rest)
                break
        self._progress.segments_left = 0

    def _recover_segment(self, segment: LogSegment) -> int:
        assert isinstance(segment, ReadOnlySegment)
        state = self._state_at(self._request.log_start_offset, segment.base_offset)
        return segment.recover_in_memory(state, self._epochs)

    def _end_offset_or_drop_all(self) -> int:
        start = self._request.log_start_offset
        if len(self._segments):
            last = self._segments.last
            try:
                log_end_offset = last.read_next_offset()
            except CorruptRecordError as error:
                logger.warning("reading %s through although the last stop was clean: %s", last.log.path, error)
                self._recover_segment(last)
                log_end_offset = last.read_next_offset()
            if log_end_offset >= start:
                return log_end_offset
            logger.warning(
                "%s is served empty: log_end_offset=%s is below log_start_offset=%s",
                self._request.topic_partition,
                log_end_offset,
                start,
            )
            self._segments.remove(self._segments.view.segments)
        self._segments.add(ReadOnlySegment.empty(self._directory, start, self._request.config, self._services))
        return start

    def _state_at(self, log_start_offset: int, end_offset: int) -> ProducerState:
        state = ReadOnlyProducerState(
            self._request.topic_partition,
            self._request.directory,
            self._services.producer_expiration,
            set(self._snapshots),
        )
        rebuild_producer_state(
            state,
            self._segments,
            log_start_offset,
            end_offset,
            self._services.clock.wall_ms(),
            after_clean_stop=self._request.had_clean_shutdown,
        )
        return state

    def _open(self, base_offset: int, stage: str) -> ReadOnlySegment:
        return ReadOnlySegment.open_read_only(self._directory, base_offset, stage, self._request.config, self._services)


def _read_epochs(directory: Path) -> LeaderEpochFile:
    try:
        return LeaderEpochFile.read(directory)
    except CorruptFileError as error:
        logger.warning("cannot read the leader epochs, the log is served without them: %s", error)
        return LeaderEpochFile(directory)

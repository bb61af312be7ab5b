"""Offline truncation of a log's end. This writes; the caller holds the directory's lock.

Only whole batches are removed: the batch with the target offset goes, too, so the log ends at or before it. A plan
shows what will be removed before anything is. The order of steps leaves a log that a broker can open after a crash
between any two of them: first the checkpoints (a recovery point beyond the end would be trusted), then snapshots, then
segments from the newest down, then the tail of the last segment, whose indexes are removed before and rebuilt after.
Source: Kafka UnifiedLog.truncateTo, LogManager.truncateTo.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.storage.files.checkpoint_file import LOG_START_OFFSET_CHECKPOINT, OffsetCheckpointFile
from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.files.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
)
from barnabas.broker.storage.files.leader_epoch import LeaderEpochFile
from barnabas.broker.storage.files.open_files import OpenFiles
from barnabas.broker.storage.index.transaction_index import ROW_BYTES
from barnabas.broker.storage.inspection.file_types import OFFSET_CHECKPOINTS, FileType, known_files
from barnabas.broker.storage.inspection.index_entries import read_transaction_index
from barnabas.broker.storage.inspection.log_walk import LogWalk
from barnabas.broker.storage.inspection.positions import position_of_offset
from barnabas.broker.storage.inspection.reindex import reindex_segment
from barnabas.broker.storage.log.loading.producer_rebuild import rebuild_producer_state
from barnabas.broker.storage.producers.expiration import ProducerExpiration
from barnabas.broker.storage.producers.state import ProducerState
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.log_segments import LogSegments
from barnabas.broker.storage.services.clock import SystemClock
from barnabas.config.log_config import LogConfig
from barnabas.protocol.topic_partition import TopicPartition


class CannotTruncateError(Exception):
    """The log cannot be truncated to that offset; the message is one sentence."""


class TruncationPlan(NamedTuple):
    """What a truncation will remove. `new_end` is the new log end offset: the target, or before it within a batch.

    `last_offset` is the last removed offset, -1 without any. `segment` is the base offset of the new last segment,
    which is cut to `keep_bytes`; `files` are removed as a whole.
    """

    directory: Path
    new_end: int
    last_offset: int
    segment: int
    keep_bytes: int
    cut_bytes: int
    files: tuple[Path, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing will be removed."""
        return not self.cut_bytes and not self.files


def plan_truncation(directory: Path, topic_partition: TopicPartition, to_offset: int) -> TruncationPlan:
    """Plan to truncate the log to `to_offset`, without writing.

    Raises CannotTruncateError, CorruptFileError (an unreadable checkpoint), OSError.
    """
    files = [known for known in known_files(directory) if not known.stage]
    bases = sorted(known.offset for known in files if known.type is FileType.LOG)
    if not bases:
        raise CannotTruncateError(f"{directory} has no segment")
    start = max(bases[0], _log_start_offset(directory.parent, topic_partition))
    if to_offset < start:
        raise CannotTruncateError(f"{topic_partition} begins at offset {start}: it cannot be cut before that")
    segment = max(base for base in bases if base <= to_offset)
    new_end, keep_bytes, size = _cut(directory, segment, to_offset)
    if new_end < start:
        raise CannotTruncateError(
            f"{topic_partition} begins at offset {start}, within the batch of {new_end}: that one goes whole or stays"
        )
    doomed = [
        known
        for known in files
        if (known.type is FileType.PRODUCER_SNAPSHOT and known.offset > new_end)
        or (known.type not in (FileType.PRODUCER_SNAPSHOT, FileType.METADATA_SNAPSHOT) and known.offset > segment)
    ]
    # Newest first, and a segment's indexes after its log: the remaining files are a complete log at any moment.
    doomed.sort(
        key=lambda known: (known.type is not FileType.PRODUCER_SNAPSHOT, -known.offset, known.path.suffix != LOG_SUFFIX)
    )
    last = bases[-1]
    last_offset = _last_offset(directory, last) if last != segment or size > keep_bytes else -1
    return TruncationPlan(
        directory,
        new_end,
        last_offset,
        segment,
        keep_bytes,
        sum(known.path.stat().st_size for known in doomed if known.type is FileType.LOG) + size - keep_bytes,
        tuple(known.path for known in doomed),
    )


def truncate(plan: TruncationPlan, topic_partition: TopicPartition, config: LogConfig) -> None:
    """Carry out a plan. Raises CorruptFileError if the rest of the log is damaged, OSError."""
    directory = plan.directory
    _lower_checkpoints(directory.parent, topic_partition, plan.new_end)
    for path in plan.files:
        path.unlink()
    for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
        (directory / file_name(plan.segment, suffix)).unlink(missing_ok=True)
    sync_directory(directory)
    _cut_file(directory / file_name(plan.segment, LOG_SUFFIX), plan.keep_bytes)
    _cut_transaction_index(directory / file_name(plan.segment, TRANSACTION_INDEX_SUFFIX), plan.new_end)
    reindex_segment(directory, plan.segment, config)
    epochs = LeaderEpochFile.load(directory)
    if epochs.truncate_from_end(plan.new_end):
        epochs.write()
    _write_producer_state(directory, topic_partition, plan.new_end, config)
    sync_directory(directory)


def _cut(directory: Path, base_offset: int, to_offset: int) -> tuple[int, int, int]:
    """Return the new log end offset, the bytes of the segment to keep, and its size, checking all kept batches."""
    path = directory / file_name(base_offset, LOG_SUFFIX)
    walk = LogWalk(path)
    end = base_offset
    for step in walk:
        if step.last_offset >= to_offset:
            return max(min(step.first_offset, to_offset), end), step.position, walk.size_bytes
        if step.fault is not None:
            raise CannotTruncateError(
                f"{path} is damaged at position {step.position} ({step.fault}): "
                f"cut it to offset {step.first_offset} or below"
            )
        end = step.last_offset + 1
    return end, walk.position, walk.size_bytes


def _last_offset(directory: Path, base_offset: int) -> int:
    path = directory / file_name(base_offset, LOG_SUFFIX)
    last = base_offset - 1
    for step in LogWalk(path, start=position_of_offset(path, base_offset, 2**62)):
        last = step.last_offset
    return last


def _cut_transaction_index(path: Path, end_offset: int) -> None:
    """Remove rows with markers at or after `end_offset`."""
    if path.exists():
        rows = read_transaction_index(path).entries
        kept = sum(1 for row in rows if row.last_offset < end_offset)
        _cut_file(path, kept * ROW_BYTES)


def _log_start_offset(log_dir: Path, topic_partition: TopicPartition) -> int:
    return OffsetCheckpointFile(log_dir / LOG_START_OFFSET_CHECKPOINT).read().get(topic_partition, 0)


def _lower_checkpoints(log_dir: Path, topic_partition: TopicPartition, end_offset: int) -> None:
    for name in OFFSET_CHECKPOINTS:
        file = OffsetCheckpointFile(log_dir / name)
        offsets = file.read()
        if offsets.get(topic_partition, 0) > end_offset:
            file.write({**offsets, topic_partition: end_offset})


def _cut_file(path: Path, size_bytes: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size_bytes)
        os.fsync(file.fileno())


def _write_producer_state(directory: Path, topic_partition: TopicPartition, end_offset: int, config: LogConfig) -> None:
    """Write a snapshot at the new end: after a clean stop, a log without any is loaded without producer state."""
    open_files, clock = OpenFiles(), SystemClock()
    segments = LogSegments(
        LogSegment.open_sealed(os.fspath(directory), known.offset, known.path.stat().st_size, config, clock, open_files)
        for known in known_files(directory)
        if known.type is FileType.LOG and not known.stage
    )
    state = ProducerState(topic_partition, directory, ProducerExpiration())
    start = max(segments.first.base_offset, _log_start_offset(directory.parent, topic_partition))
    rebuild_producer_state(state, segments, start, end_offset, clock.wall_ms(), after_clean_stop=False)
    for segment in segments:
        segment.release()

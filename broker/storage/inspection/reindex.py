"""Offline rebuild of a log's `.index` and `.timeindex`. This writes; the caller holds the directory's lock.

The indexes are built by LogSegment.rebuild_indexes in a work directory. Once they are on disk, a rename replaces the
old files: an interruption leaves the old index or the new one, never a part, which the next start after a clean stop
would trust.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.file_names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, file_name
from barnabas.broker.storage.files.file_records import FileRecords
from barnabas.broker.storage.files.open_files import OpenFiles
from barnabas.broker.storage.inspection.file_types import FileType, known_files
from barnabas.broker.storage.inspection.log_walk import LogWalk
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.services.clock import SystemClock
from barnabas.config.log_config import LogConfig

WORK_DIRECTORY = ".barnabas-reindex"
"""Work directory in the partition directory, where Kafka and Barnabas ignore directories."""


class ReindexedSegment(NamedTuple):
    """Number of entries in a segment's rebuilt indexes, and whether the files differ from the old ones."""

    log_path: Path
    offset_entries: int
    time_entries: int
    is_changed: bool


def reindex_log(directory: Path, config: LogConfig) -> Iterator[ReindexedSegment]:
    """Rebuild the indexes of a partition directory's segments, one per step.

    Raises CorruptFileError at a segment with damaged batches, before any of its files is changed; OSError.
    """
    for known in known_files(directory):
        if known.type is FileType.LOG and not known.stage:
            yield reindex_segment(directory, known.offset, config)


def reindex_segment(directory: Path, base_offset: int, config: LogConfig) -> ReindexedSegment:
    """Rebuild the indexes of one segment. Raises the errors of `reindex_log`."""
    log_path = directory / file_name(base_offset, LOG_SUFFIX)
    _ensure_whole(log_path)
    work = directory / WORK_DIRECTORY
    _remove_work(work, base_offset)  # left by an interrupted run
    work.mkdir(exist_ok=True)
    try:
        open_files = OpenFiles()
        log = FileRecords(os.fspath(log_path), log_path.stat().st_size, open_files)
        segment = LogSegment(os.fspath(work), base_offset, log, config, SystemClock(), open_files)
        segment.rebuild_indexes()
        changed = False
        for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            name = file_name(base_offset, suffix)
            changed |= not _same_content(work / name, directory / name)
        for index in (segment.offset_index, segment.time_index):
            index.check(segment.size_bytes)
        entries = (segment.offset_index.entries, segment.time_index.entries)
        segment.release()
        for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            name = file_name(base_offset, suffix)
            os.replace(work / name, directory / name)
    finally:
        _remove_work(work, base_offset)
    sync_directory(directory)
    return ReindexedSegment(log_path, *entries, is_changed=changed)


def _ensure_whole(log_path: Path) -> None:
    """Raise CorruptFileError unless the whole file is batches with correct CRCs: only these may get index entries."""
    walk = LogWalk(log_path)
    for step in walk:
        if step.fault is not None:
            raise CorruptFileError(log_path, f"the batch at position {step.position} is damaged: {step.fault}")
    if walk.end_fault is not None:
        raise CorruptFileError(
            log_path, f"{walk.left_bytes} bytes from position {walk.position} on are not a batch: {walk.end_fault}"
        )


def _remove_work(work: Path, base_offset: int) -> None:
    """Remove only the files that this tool creates, and then the directory if it is empty."""
    if work.is_dir():
        for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            (work / file_name(base_offset, suffix)).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty: other files, for example from an interrupted run
            work.rmdir()


def _same_content(new: Path, old: Path) -> bool:
    try:
        return new.read_bytes() == old.read_bytes()
    except FileNotFoundError:
        return False

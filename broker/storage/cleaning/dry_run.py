"""Dry run of a compaction: the cleaner runs on a log without changing any of its files.

The log is opened in a scratch directory with symbolic links to its sealed segments, copies of indexes and producer
snapshots, and an empty active segment, which is never cleaned. There the cleaner runs one round, into segments that
count batches and discard them. So a dry run needs a few MiB of scratch space for a log of any size. If the map becomes
full, the effect of the following rounds is not included.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.files.file_names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX
from barnabas.broker.storage.files.partition_directory import directory_name
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.replacer import SegmentReplacer
from barnabas.broker.storage.segment.log_segment import AppendedBatch, LogSegment
from barnabas.broker.storage.segment.replacement import remove_staged
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.topic_partition import TopicPartition


class CountingSegment(LogSegment):
    """Segment that counts the tombstones of appended batches and discards the batches."""

    __slots__ = ("tombstones",)

    tombstones: int

    def append_many(self, data: memoryview | bytearray, batches: Sequence[AppendedBatch]) -> None:
        """Count tombstones."""
        self.tombstones += count_tombstones(memoryview(data))


class DryRunReplacer(SegmentReplacer):
    """Replaces no segments; `tombstones_kept` is the total over all rounds."""

    __slots__ = ("tombstones_kept",)

    def __init__(self, core: LogCore) -> None:
        super().__init__(core)
        self.tombstones_kept = 0

    def create_segment(self, base_offset: int, stage: str) -> LogSegment:
        """Create a counting segment. Raises OSError."""
        core = self._core
        remove_staged(core.directory, base_offset, stage)
        segment = CountingSegment.create(
            os.fspath(core.directory),
            base_offset,
            core.config,
            core.services.clock,
            core.services.open_files,
            stage=stage,
        )
        assert isinstance(segment, CountingSegment)
        segment.tombstones = 0
        segment.open_indexes()
        return segment

    def replace_segments(self, new: Sequence[LogSegment], old: Sequence[LogSegment]) -> None:
        """Add up the new segments' tombstones, and keep the old segments."""
        for segment in new:
            assert isinstance(segment, CountingSegment)
            self.tombstones_kept += segment.tombstones
            segment.delete_files()


class DryRunLog(PartitionLog):
    """Log whose segments are never replaced."""

    __slots__ = ("_replacer",)

    def __init__(self, core: LogCore) -> None:
        self._replacer = DryRunReplacer(core)
        super().__init__(core, self._replacer)

    @property
    def tombstones_kept(self) -> int:
        """Tombstones that the rounds would have kept."""
        return self._replacer.tombstones_kept

    def tombstones_below(self, offset: int) -> int:
        """Count tombstones in the segments that a round up to `offset` reads. Raises DecodeError, OSError."""
        count = 0
        for segment in self.segments_view.overlapping(0, offset):
            data = Path(segment.log.path).read_bytes()  # a segment at a time: usually 1 GiB at most
            count += count_tombstones(memoryview(data))
        return count


def count_tombstones(data: memoryview) -> int:
    """Count records with a null value in whole batches, without control records. Raises DecodeError."""
    return sum(
        record.value is None for batch in iter_batches(data) if not batch.is_control for record in read_records(batch)
    )


def make_scratch_copy(directory: Path, scratch: Path, topic_partition: TopicPartition) -> Path:
    """Create a directory below `scratch` that can be opened as the log in `directory`, which is not changed.

    Raises OSError, StorageError if a crash left work that a start has to finish first.
    """
    copy = scratch / directory_name(topic_partition)
    copy.mkdir()
    bases = sorted(path.stem for path in directory.glob(f"*{LOG_SUFFIX}"))
    if not bases:
        raise StorageError(directory, "the log has no segment")
    for path in directory.iterdir():
        if path.suffix in (".swap", ".cleaned"):
            raise StorageError(path, "a crash left this behind: compact without --dry-run, or start a broker, first")
        if path.name == bases[-1] + LOG_SUFFIX:
            (copy / path.name).touch()
            (copy / path.name).with_suffix(OFFSET_INDEX_SUFFIX).touch()  # otherwise the loader would warn and recover
        elif path.suffix == LOG_SUFFIX:
            (copy / path.name).symlink_to(path)
        elif path.stem != bases[-1] and path.suffix != ".deleted" and path.is_file():
            shutil.copy2(path, copy / path.name)
    return copy

"""The files of one segment: where they lie, what they are called, and how they are made durable, renamed and removed.

    <base_offset:020d>.log  .index  .timeindex  .txnindex        and a stage behind it: "", .cleaned, .swap, .deleted

All of a segment's files carry one stage. The indexes are made at first use and most segments have no `.txnindex`, so
a file that is not there is no error where files are renamed or removed. Source: Kafka LogSegment.changeFileSuffixes.
"""

from __future__ import annotations

import contextlib
import os

from barnabas.broker.storage.files.failpoints import failpoint
from barnabas.broker.storage.files.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
)
from barnabas.broker.storage.files.file_records import FileRecords
from barnabas.broker.storage.files.open_files import OpenFiles
from barnabas.broker.storage.index.offset_index import OffsetIndex
from barnabas.broker.storage.index.time_index import TimeIndex
from barnabas.broker.storage.index.transaction_index import TransactionIndex


class SegmentFiles:
    """The `.log` file and the indexes of a segment, as files."""

    __slots__ = ("_directory", "_stage", "_transaction_index", "base_offset", "log", "offset_index", "time_index")

    def __init__(self, directory: str, base_offset: int, log: FileRecords, open_files: OpenFiles) -> None:
        self.base_offset = base_offset
        self.log = log
        self.offset_index = OffsetIndex(
            f"{directory}/{file_name(base_offset, OFFSET_INDEX_SUFFIX)}", base_offset, open_files
        )
        self.time_index = TimeIndex(f"{directory}/{file_name(base_offset, TIME_INDEX_SUFFIX)}", base_offset, open_files)
        self._transaction_index: TransactionIndex | None = None
        self._directory = directory
        self._stage = ""

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

    def last_modified_ms(self) -> int:
        """When the `.log` file was last written to. Raises OSError."""
        return os.stat(self.log.path).st_mtime_ns // 1_000_000

    def set_last_modified(self, ms: int) -> None:
        """Give the `.log` and its indexes this age. Raises OSError."""
        for path in (self.log.path, self.offset_index.path, self.time_index.path):
            os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000))

    def sync(self, *, with_indexes: bool) -> None:
        """Make the batches durable, and the indexes if asked. Raises OSError, which takes the directory offline."""
        self.log.sync()
        if with_indexes:
            self.offset_index.sync()
            self.time_index.sync()
            self.transaction_index.sync()

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
                failpoint("segment.renamed")
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

    def _path(self, suffix: str, stage: str) -> str:
        return f"{self._directory}/{file_name(self.base_offset, suffix, stage)}"

    def _set_paths(self) -> None:
        self.log.path = self._path(LOG_SUFFIX, self._stage)
        self.offset_index.path = self._path(OFFSET_INDEX_SUFFIX, self._stage)
        self.time_index.path = self._path(TIME_INDEX_SUFFIX, self._stage)
        if self._transaction_index is not None:
            self._transaction_index.path = self._path(TRANSACTION_INDEX_SUFFIX, self._stage)

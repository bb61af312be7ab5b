"""The files of one segment: their names, and how they are synced, renamed and removed.

    <base_offset:020d>.log  .index  .timeindex  .txnindex        followed by a stage: "", .cleaned, .swap, .deleted

All files of a segment have the same stage. Indexes are created on first use and most segments have no `.txnindex`, so
renames and removals ignore missing files. Source: Kafka LogSegment.changeFileSuffixes.
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
    """The `.log` file and the index files of a segment."""

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
        """Size of the `.log` file's batches."""
        return self.log.size_bytes

    @property
    def transaction_index(self) -> TransactionIndex:
        """Transactions that were aborted by a marker in this segment; for most segments the file does not exist."""
        index = self._transaction_index
        if index is None:
            path = self._path(TRANSACTION_INDEX_SUFFIX, self._stage)
            index = self._transaction_index = TransactionIndex(path, self.base_offset)
        return index

    def last_modified_ms(self) -> int:
        """Return the modification time of the `.log` file. Raises OSError."""
        return os.stat(self.log.path).st_mtime_ns // 1_000_000

    def set_last_modified(self, ms: int) -> None:
        """Set the modification time of the `.log` file and its indexes. Raises OSError."""
        for path in (self.log.path, self.offset_index.path, self.time_index.path):
            os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000))

    def sync(self, *, with_indexes: bool) -> None:
        """Make the batches durable, and optionally the indexes. Raises OSError: the directory must go offline."""
        self.log.sync()
        if with_indexes:
            self.offset_index.sync()
            self.time_index.sync()
            self.transaction_index.sync()

    def release(self) -> None:
        """Release all files without writing: the disk may have failed."""
        self.offset_index.close()
        self.time_index.close()
        self.log.close()
        if self._transaction_index is not None:
            self._transaction_index.forget()

    def move_to(self, directory: str) -> None:
        """Follow a rename of the partition directory."""
        self._directory = directory
        self._set_paths()

    def change_stage(self, stage: str) -> None:
        """Rename all files from the current stage ("", `.swap`, ...) to another. Raises OSError."""
        for suffix in SEGMENT_SUFFIXES:
            with contextlib.suppress(FileNotFoundError):  # indexes are created on first use
                os.rename(self._path(suffix, self._stage), self._path(suffix, stage))
                failpoint("segment.renamed")
        self.change_stage_names(stage)

    def change_stage_names(self, stage: str) -> None:
        """Set the stage of files that already have its suffix."""
        self._stage = stage
        self._set_paths()

    def delete_files(self) -> None:
        """Release all files and remove them. Raises OSError."""
        self.release()
        for suffix in SEGMENT_SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(suffix, self._stage))

    @property
    def stage(self) -> str:
        """Suffix of the files; empty for a segment in service."""
        return self._stage

    def _path(self, suffix: str, stage: str) -> str:
        return f"{self._directory}/{file_name(self.base_offset, suffix, stage)}"

    def _set_paths(self) -> None:
        self.log.path = self._path(LOG_SUFFIX, self._stage)
        self.offset_index.path = self._path(OFFSET_INDEX_SUFFIX, self._stage)
        self.time_index.path = self._path(TIME_INDEX_SUFFIX, self._stage)
        if self._transaction_index is not None:
            self._transaction_index.path = self._path(TRANSACTION_INDEX_SUFFIX, self._stage)

"""Replacement of segments by new ones, such that a crash at any moment leaves either the old ones or the new ones.

    0. the new segments are complete and synced: <base>.log.cleaned, .index.cleaned, ...
    1. sync the directory; rename .cleaned to .swap, the last segment first, of each segment the .log first; sync again
    2. in the log's map, add the new and remove the old segments          (under the log's lock)
    3. rename the old files to .deleted, from the first segment on; sync the directory
    4. remove the suffix .swap                                            (under the log's lock)
    5. sync the directory; remove old files after file.delete.delay.ms

The last rename of step 1 decides. Before it a `.cleaned` file is left over, and a start drops it together with all
`.swap` files from its base offset on. After it a start deletes the segments that the `.swap` files cover, and renames
the `.swap` files.

A start knows the covered range only from the offsets in the `.swap` files: from the first base offset to the end of the
last batch. If the cleaner has dropped all records of the last old segments, those would be outside of the range and
come back beside the new segment after a crash. Kafka accepts that (stale values come back). Here an empty `.swap` file
at the last old base offset marks the end of the range, for Kafka's loader, too; it is removed after step 3.

A power failure may keep some changes of names since the last sync and lose others before them. Hence the syncs before
the renames of step 1 and after step 3: otherwise a new segment could be there without its suffix, or without its mark,
and an old one beside it; or its indexes without its `.log`, which a start would give to the old one. Kafka has neither
sync.

The directory is opened before the first rename: once step 1 is done, a lack of descriptors could not be retried.
Source: Kafka LocalLog.replaceSegments, LogLoader.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from barnabas.broker.storage.files.durable_files import OpenDirectory
from barnabas.broker.storage.files.failpoints import failpoint
from barnabas.broker.storage.files.file_names import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    file_name,
)
from barnabas.broker.storage.segment.deletion import delete_later
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.log_segments import LogSegments, SegmentsView
from barnabas.broker.storage.services.services import StorageServices


class SegmentsChangedError(Exception):
    """The segments to be replaced are no longer in the log; nothing was changed."""


class Replacement:
    """One replacement. Methods raise OSError. If `is_begun`, a start after a crash would finish it."""

    def __init__(self, directory: Path, new: Sequence[LogSegment], old: Sequence[LogSegment]) -> None:
        """`new` are sealed and synced `.cleaned` segments, `old` the segments to replace, both ascending.

        To be closed in the end.
        """
        bases = {segment.base_offset for segment in new}
        self.gone = [segment for segment in old if segment.base_offset not in bases]
        """Old segments whose base offset no new segment has."""
        self.is_begun = False
        self._directory = directory
        self._opened: OpenDirectory | None = None
        self._new = new
        self._old = old
        self._mark: Path | None = None

    def prepare(self) -> None:
        """Do step 1; afterwards a start would finish the replacement."""
        self._opened = OpenDirectory(self._directory)
        last_base = self._old[-1].base_offset
        if self._new[-1].base_offset < last_base and self._new[-1].read_next_offset() <= last_base:
            self._mark = self._directory / file_name(last_base, LOG_SUFFIX, SWAP_SUFFIX)
            os.close(os.open(self._mark, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644))
        self._sync()
        if self._mark is not None:
            failpoint("replace.marked")
        for segment in reversed(self._new):
            segment.change_stage(SWAP_SUFFIX)
        self.is_begun = True
        self._sync()
        failpoint("replace.staged")

    def is_due(self, view: SegmentsView, active: LogSegment) -> bool:
        """Return whether all old segments are still in the log and sealed."""
        there = {id(segment) for segment in view.segments if segment is not active}
        return all(id(segment) in there for segment in self._old)

    def swap_in(self, segments: LogSegments) -> None:
        """Do step 2. The caller holds the log's lock."""
        for segment in self._new:
            segments.add(segment)
        segments.remove(self.gone)
        failpoint("replace.mapped")

    def retire(self, log_dir: Path, services: StorageServices, delay_ms: int) -> None:
        """Do step 3. A reader that misses an old file finds the new segment in the map."""
        delete_later(self._old, [], log_dir, services, delay_ms)
        self._sync()
        failpoint("replace.retired")

    def strip(self) -> None:
        """Do step 4. The caller holds the log's lock."""
        if self._mark is not None:
            os.unlink(self._mark)
            failpoint("replace.unmarked")
        for segment in self._new:
            segment.change_stage("")

    def finish(self) -> None:
        """Make the renames durable."""
        self._sync()
        failpoint("replace.synced")

    def undo(self) -> None:
        """Remove the new segments. A crash during this leaves the old or the new segments, too.

        Only a `.log.swap` makes a start finish the replacement. So it is removed last if all segments are `.swap`, and
        first if one is still `.cleaned`, which makes a start drop them.
        """
        for segment in self._new:
            segment.release()
        bases = [segment.base_offset for segment in self._new]
        for stage in (SWAP_SUFFIX, CLEANED_SUFFIX):
            for base in bases:
                for suffix in reversed(SEGMENT_SUFFIXES) if self.is_begun else SEGMENT_SUFFIXES:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(self._directory / file_name(base, suffix, stage))
        if self._mark is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._mark)
        if self.is_begun:
            # Otherwise a `.swap` could reappear after a power failure, and with it records dropped since.
            self._sync()

    def close(self) -> None:
        """Close the directory."""
        if self._opened is not None:
            self._opened.close()

    def _sync(self) -> None:
        assert self._opened is not None, "step 1 has opened it"
        self._opened.sync()


def remove_staged(directory: Path, base_offset: int, stage: str) -> None:
    """Remove a segment's files of one stage, left by an interrupted cleaning. Raises OSError."""
    for suffix in SEGMENT_SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(directory / file_name(base_offset, suffix, stage))

"""Replacing segments of a log by new ones, so that a crash at any moment leaves the old ones or the new ones.

    <base>.log.cleaned, .index.cleaned, ...    complete, synced, of the new segments; nobody reads them
    1. .cleaned -> .swap, the last segment first, each .log first; directory synced
    2. the log's map: new in, old out            (the lock is held from here to 4)
    3. old files -> .deleted, from the first segment on
    4. .swap -> no suffix; directory synced afterwards, old files removed after file.delete.delay.ms

The moment that counts is the last rename of step 1. Before it a `.cleaned` is left over, and a start drops it with all
`.swap` from its base on; from then on a start deletes what the `.swap` files cover and renames them.

What they cover is all a start has to go by: from the first base to the end of the last batch. Where the cleaner dropped
everything at the end, the last old segments would lie beyond and come back beside the new ones. Kafka leaves it at that
(the values that come back are stale ones). Here an empty segment, `.swap` too, stands for the last old one: it lets a
start see the whole range, Kafka's too, and goes with step 3.
Source: Kafka LocalLog.replaceSegments, LogLoader.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from barnabas.broker.storage.files.durable_files import sync_directory
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
    """The segments to be replaced are not in the log any more: nothing was changed."""


class Replacement:
    """One replacement. Every method raises OSError; `is_begun` says whether a start would finish it."""

    def __init__(self, directory: Path, new: Sequence[LogSegment], old: Sequence[LogSegment]) -> None:
        """`new` are sealed and synced `.cleaned` segments, `old` what they replace, both ascending."""
        bases = {segment.base_offset for segment in new}
        self.gone = [segment for segment in old if segment.base_offset not in bases]
        """Old segments in whose place no new one begins."""
        self.is_begun = False
        self._directory = directory
        self._new = new
        self._old = old
        self._mark: Path | None = None

    def prepare(self) -> None:
        """Step 1: when this returns, a start finishes the replacement."""
        last_base = self._old[-1].base_offset
        if self._new[-1].base_offset < last_base and self._new[-1].read_next_offset() <= last_base:
            self._mark = self._directory / file_name(last_base, LOG_SUFFIX, SWAP_SUFFIX)
            os.close(os.open(self._mark, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644))
            failpoint("replace.marked")
        for segment in reversed(self._new):
            segment.change_stage(SWAP_SUFFIX)
        self.is_begun = True
        sync_directory(self._directory)
        failpoint("replace.staged")

    def is_due(self, view: SegmentsView, active: LogSegment) -> bool:
        """Whether the old segments are still all there, and sealed."""
        there = {id(segment) for segment in view.segments if segment is not active}
        return all(id(segment) in there for segment in self._old)

    def swap_in(self, segments: LogSegments, log_dir: Path, services: StorageServices, delay_ms: int) -> None:
        """Steps 2 to 4 without the last sync; the log's lock is held."""
        for segment in self._new:
            segments.add(segment)
        segments.remove(self.gone)
        failpoint("replace.mapped")
        delete_later(self._old, [], log_dir, services, delay_ms)
        if self._mark is not None:
            os.unlink(self._mark)
            failpoint("replace.unmarked")
        for segment in self._new:
            segment.change_stage("")

    def finish(self) -> None:
        """What was renamed lasts when this returns."""
        sync_directory(self._directory)
        failpoint("replace.synced")

    def undo(self) -> None:
        """Remove the new segments, which nobody reads yet; a crash in here leaves the old ones or the new ones, too.

        Nothing but `.log.swap` makes a start finish the replacement, so it goes last where all are `.swap`; and first
        where one is still `.cleaned`, which makes a start drop them.
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
            # Lest a `.swap` comes back with the power, and brings back what the log has dropped since.
            sync_directory(self._directory)


def remove_staged(directory: Path, base_offset: int, stage: str) -> None:
    """Remove what an interrupted cleaning left behind. Raises OSError."""
    for suffix in SEGMENT_SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(directory / file_name(base_offset, suffix, stage))

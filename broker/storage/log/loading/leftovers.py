"""Removes or finishes what a crash interrupted in a log's directory: deletions, cleanings and swaps.

    1. remove `.deleted`; drop `.swap` files whose base is not below the smallest `.cleaned`, then all `.cleaned`
    2. find the offsets that the remaining, finished `.swap` segments cover
    3. delete the segments that they replace, then strip their suffix

A `.cleaned` is unfinished, and the segments that it was built from are all there; a `.swap` is finished and durable,
and some of the segments that it replaces may be gone. Each pass can be repeated after a crash in it. Source: Kafka
LogLoader.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.files.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SWAP_SUFFIX,
    FileKind,
    ParsedFileName,
    parse_file_name,
)
from barnabas.broker.storage.segment.log_segment import LogSegment

logger = logging.getLogger(__name__)

METADATA_SNAPSHOT_SUFFIX = ".checkpoint.deleted"
"""A deleted snapshot of the metadata log; the snapshotter removes it."""

OpenSegment = Callable[[int, str], LogSegment]
"""Opens the segment with a base offset and a stage suffix."""


def remove_leftovers(directory: Path, open_segment: OpenSegment) -> list[tuple[str, ParsedFileName]]:
    """Run passes 1 to 3; return the segment files and snapshots that remain, by name. Raises OSError."""
    names = os.listdir(directory)
    deleted = [name for name in names if name.endswith(DELETED_SUFFIX) and not name.endswith(METADATA_SNAPSHOT_SUFFIX)]
    for name in deleted:
        logger.debug("removing a file of an interrupted deletion: %s/%s", directory, name)
        os.unlink(directory / name)
    files = _segment_files(directory) if deleted else _parse_names(names)
    if not any(parsed.stage for _, parsed in files):
        return files
    cleaned = [(name, parsed.offset) for name, parsed in files if parsed.stage == CLEANED_SUFFIX]
    swaps = [(name, parsed) for name, parsed in files if parsed.stage == SWAP_SUFFIX]
    if cleaned:
        # A `.swap` above an unfinished `.cleaned` may be half of a split: the original is still there.
        smallest = min(offset for _, offset in cleaned)
        for name, parsed in swaps:
            if parsed.offset >= smallest:
                os.unlink(directory / name)
        if any(parsed.offset >= smallest for _, parsed in swaps):
            # Without its `.cleaned`, a `.swap` that a power failure brings back would count as finished.
            sync_directory(directory)
        swaps = [(name, parsed) for name, parsed in swaps if parsed.offset < smallest]
        for name, _ in cleaned:
            os.unlink(directory / name)
    if swaps:
        _finish_swaps(directory, swaps, open_segment)
    return _segment_files(directory)


def _finish_swaps(directory: Path, swaps: list[tuple[str, ParsedFileName]], open_segment: OpenSegment) -> None:
    logs = [parsed.offset for _, parsed in swaps if parsed.kind is FileKind.LOG]
    if logs:
        first = min(logs)
        # A segment that the cleaner emptied covers its base offset too: its old files must go.
        end = max(max(_end_of_swap(offset, open_segment), offset + 1) for offset in logs)
        for name, parsed in _segment_files(directory):
            if not parsed.stage and first <= parsed.offset < end:
                logger.info("removing %s/%s: a finished .swap replaces it", directory, name)
                os.unlink(directory / name)
        sync_directory(directory)  # or a power failure could bring them back beside the renamed ones
        # An empty one above the first only marks the end of the replaced offsets: see segment/replacement.py.
        marks = {offset for offset in logs if offset > first and _end_of_swap(offset, open_segment) == offset}
        for name, parsed in swaps:
            if parsed.offset in marks:
                os.unlink(directory / name)
        swaps = [(name, parsed) for name, parsed in swaps if parsed.offset not in marks]
    for name, parsed in set(_segment_files(directory)) - set(swaps):
        if parsed.stage == SWAP_SUFFIX:
            # An index created while looking for an end; without it the segment is recovered, .txnindex too.
            os.unlink(directory / name)
    for name, _ in swaps:
        logger.info("finishing the interrupted swap of %s/%s", directory, name)
        os.rename(directory / name, directory / name.removesuffix(SWAP_SUFFIX))
    sync_directory(directory)


def _end_of_swap(base_offset: int, open_segment: OpenSegment) -> int:
    segment = open_segment(base_offset, SWAP_SUFFIX)
    segment.change_stage_names(SWAP_SUFFIX)
    try:
        return segment.read_next_offset()
    finally:
        segment.release()


def _segment_files(directory: Path) -> list[tuple[str, ParsedFileName]]:
    """Return the directory's segment files and snapshots, sorted by name."""
    return _parse_names(os.listdir(directory))


def _parse_names(names: list[str]) -> list[tuple[str, ParsedFileName]]:
    return [(name, parsed) for name in sorted(names) if (parsed := parse_file_name(name))]

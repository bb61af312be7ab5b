"""Start position for an offset in a segment's file, from an index that may be wrong."""

from __future__ import annotations

from pathlib import Path

from barnabas.broker.storage.files.file_names import OFFSET_INDEX_SUFFIX
from barnabas.broker.storage.inspection.index_entries import read_offset_index
from barnabas.broker.storage.inspection.log_walk import LogWalk


def position_of_offset(log_path: Path, base_offset: int, offset: int) -> int:
    """Return the position of a batch at or before the one with `offset`. Raises OSError.

    It is the index's position if the batch there matches the entry, else 0.
    """
    try:
        entries = read_offset_index(log_path.with_suffix(OFFSET_INDEX_SUFFIX), base_offset).entries
    except FileNotFoundError:
        return 0
    below = [entry for entry in entries if entry.offset <= offset]
    if not below or below[-1].position < 0:
        return 0
    for step in LogWalk(log_path, start=below[-1].position):
        return below[-1].position if step.last_offset == below[-1].offset else 0
    return 0

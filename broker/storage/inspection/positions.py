"""Where to begin in a segment's file for an offset, by an index that need not be right."""

from __future__ import annotations

from pathlib import Path

from barnabas.broker.storage.files.file_names import OFFSET_INDEX_SUFFIX
from barnabas.broker.storage.inspection.index_entries import read_offset_index
from barnabas.broker.storage.inspection.log_walk import LogWalk


def position_of_offset(log_path: Path, base_offset: int, offset: int) -> int:
    """A batch's position at or before the one that holds `offset`: the index's, if a batch there agrees with it, or 0.

    Raises OSError.
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

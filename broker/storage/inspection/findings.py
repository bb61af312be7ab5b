"""Findings of `verify`, and the state of a data directory that it takes into account."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Finding(NamedTuple):
    """One error in a file. `position` is a byte position in the file, if there is one."""

    path: Path
    position: int | None
    message: str


class Circumstances(NamedTuple):
    """State of a data directory, which determines what is accepted in the newest segment of each log.

    is_in_use    a broker uses it: writes may be seen half done, and files may disappear meanwhile
    is_clean     it was stopped cleanly: no file has unused space, and the next start trusts the indexes

    Neither after a crash, or in a copy. Then unused space in the newest segment is no error, because a start cuts it; a
    torn batch is, because a start drops it.
    """

    is_in_use: bool = False
    is_clean: bool = False


class LogExtent(NamedTuple):
    """Offset range of a log as found; the end is the offset after the last whole batch."""

    first_base_offset: int
    log_end_offset: int

"""What `verify` has found wrong, and what it knows of the place when it judges."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Finding(NamedTuple):
    """One thing that is not as it must be. `position` is a byte of the file, where one can be named."""

    path: Path
    position: int | None
    message: str


class Circumstances(NamedTuple):
    """What a data directory's present state excuses in the newest segment of each log.

    is_in_use    a broker has it: what is written now may be seen half, and files may go meanwhile
    is_clean     it was stopped cleanly: no unused room is left in any file, and indexes are believed unchecked

    Neither: a crash, or a copy. Then unused room in the newest segment is no finding, because a start will cut it; a
    torn batch is one, because a start will drop it.
    """

    is_in_use: bool = False
    is_clean: bool = False


class LogExtent(NamedTuple):
    """How far a log was found to reach; the end is the offset after the last whole batch."""

    first_base_offset: int
    log_end_offset: int

"""explain_start (key 1004, native dialect): what a start found and did. Times are ms since 1970."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class ExplainStartRequest:
    """Has no fields."""


class StartedDirectory(NamedTuple):
    """A log directory. `last_change_ms`: before this start, None for a new directory. `seconds`: of its loading."""

    path: str
    had_clean_shutdown: bool
    last_change_ms: int | None
    logs: int
    seconds: float


class RecoveredLog(NamedTuple):
    """A log of which segments were read through, or cut off."""

    topic: str
    partition: int
    log_dir: str
    seconds: float
    segments: int
    size_bytes: int
    dropped_segments: int
    dropped_bytes: int


@dataclass(slots=True)
class ExplainStartResponse:
    """`booted_ms`: the machine's start, None if it is not known.

    `logs`: those that were cut first, then those that took longest, at most 100 of `recovered_logs`.
    """

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    began_ms: int = 0
    loaded_ms: int = 0
    ready_ms: int = 0
    booted_ms: int | None = None
    directories: Sequence[StartedDirectory] = ()
    recovered_logs: int = 0
    recovered_bytes: int = 0
    logs: Sequence[RecoveredLog] = ()

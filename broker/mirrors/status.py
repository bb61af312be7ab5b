"""State of mirrors at one moment, as `barnabas mirror describe` and the metrics show it.

BrokerMirrors provides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

UNKNOWN_OFFSET = -1
"""Of an offset that is not known (yet)."""


class MirrorState(StrEnum):
    """State of a whole mirror."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    PROMOTING = "promoting"
    PROMOTED = "promoted"
    FAILED = "failed"


class PartitionCopyState(StrEnum):
    """State of one partition's copy."""

    WAITING = "waiting"
    """The leader at the source is not known, or the first fetch has not been answered."""
    COPYING = "copying"
    CAUGHT_UP = "caught_up"
    FAILED = "failed"
    PAUSED = "paused"
    PROMOTED = "promoted"


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One partition. `offset` is the log end offset here, `source_offset` the high watermark at the source.

    Lag is None until the source has answered. `lag_seconds` is the time since the copy last had everything.
    """

    topic: str
    partition: int
    state: PartitionCopyState
    offset: int
    source_offset: int = UNKNOWN_OFFSET
    lag_records: int | None = None
    lag_seconds: float | None = None
    error: str | None = None
    bytes_copied: int = 0
    """Since the mirror started in this process."""
    errors: int = 0
    """Failures since the mirror started in this process."""
    lag_bytes: int | None = None
    """Estimated from the mean size of the copy's records; None also for a copy without any."""


@dataclass(frozen=True, slots=True)
class TopicProblem:
    """A topic of the source that matches, and that the mirror does not copy; `reason` is a sentence."""

    topic: str
    reason: str


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """One mirror, with its partitions ordered by topic and number. `error` is why the mirror does not make progress."""

    name: str
    state: MirrorState
    error: str | None = None
    partitions: tuple[PartitionStatus, ...] = ()
    problems: tuple[TopicProblem, ...] = ()


class MirrorStatuses(Protocol):
    """The statuses of the running mirrors."""

    def statuses(self) -> Mapping[str, MirrorStatus]:
        """Return the statuses by the mirrors' names, those of paused mirrors included. Any thread may call it."""
        ...

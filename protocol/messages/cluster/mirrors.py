"""Mirrors: create, alter, promote, delete and describe mirrors. An API of Barnabas, in the native dialect only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from barnabas.protocol.errors import ErrorCode


class MirrorAction(StrEnum):
    """What a request does."""

    CREATE = "create"
    ALTER = "alter"
    DELETE = "delete"
    DESCRIBE = "describe"
    PROMOTE = "promote"


@dataclass(slots=True)
class MirrorsRequest:
    """`names`: exactly one, except for DESCRIBE, which describes all mirrors without names.

    `fields` are those of the definition (CREATE) or its changes (ALTER), by MirrorDefinition's names. PROMOTE has
    `topics`, patterns of the topics to promote (empty: all, and the mirror ends), and `undecided` (cut, abort).
    `releases_topics` (DELETE): read-only topics become ordinary topics.
    """

    action: MirrorAction
    names: list[str] = field(default_factory=list)
    fields: Mapping[str, Any] = field(default_factory=dict)
    releases_topics: bool = False


@dataclass(slots=True)
class MirroredPartition:
    """One partition of a mirror. `source_offset` is -1 and lag None while they are not known.

    `lag_bytes` is an estimate from the mean size of the copy's records.
    """

    topic: str
    partition: int
    state: str
    offset: int
    source_offset: int = -1
    lag_records: int | None = None
    lag_seconds: float | None = None
    error: str | None = None
    lag_bytes: int | None = None


@dataclass(slots=True)
class MirroredTopic:
    """One topic of a mirror: its state, and its id at the source as text."""

    topic: str
    state: str
    source_id: str | None = None


@dataclass(slots=True)
class PromotedPartition:
    """One partition of a promoted topic; see PartitionPromotion. `leader_epoch` begins at `copied_end`."""

    topic: str
    partition: int
    copied_end: int
    source_epoch: int
    end: int
    leader_epoch: int
    committed: int = 0
    aborted: int = 0
    cut: int = 0


@dataclass(slots=True)
class MirrorDescription:
    """One mirror. `fields` are those of its definition; `problems` are pairs of a topic and a reason.

    The reason is why the topic is not copied, or is copied without the source's configs.
    """

    name: str
    fields: Mapping[str, Any]
    state: str
    error: str | None = None
    topics: list[MirroredTopic] = field(default_factory=list)
    partitions: list[MirroredPartition] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    promoted: list[PromotedPartition] = field(default_factory=list)


@dataclass(slots=True)
class MirrorsResponse:
    """`mirrors`: the described ones, by name. `released`: topics that a deletion made writable."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    mirrors: list[MirrorDescription] = field(default_factory=list)
    released: list[str] = field(default_factory=list)

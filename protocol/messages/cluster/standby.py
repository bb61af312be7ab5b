"""Standby: what a standby copies beside the partitions, and the planned switch. Barnabas only, native dialect only."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode


class StandbyAction(StrEnum):
    """What a request does."""

    IDENTIFY = "identify"
    METADATA = "metadata"
    SNAPSHOT = "snapshot"
    FREEZE = "freeze"
    UNFREEZE = "unfreeze"
    RETIRE = "retire"
    FENCE = "fence"


class StandbyIdentity(NamedTuple):
    """The identity of the active broker. `directory_ids`: of its log directories, the metadata log's first.

    `number`: how often a standby has taken over in this cluster.
    """

    cluster_id: str
    node_id: int
    directory_ids: tuple[bytes, ...]
    number: int
    bootstrap_checkpoint: bytes = b""


class SnapshotName(NamedTuple):
    """A snapshot of the metadata log: the end offset that it covers, and the epoch of the last record."""

    end_offset: int
    epoch: int


class PartitionEnd(NamedTuple):
    """Log end offset of a partition."""

    topic: str
    partition: int
    end_offset: int


@dataclass(slots=True)
class StandbyRequest:
    """One request.

    METADATA    batches of the metadata log from `offset` on; `last_crc` is that of the batch before `offset` in the
                standby's log, None to compare nothing; waits up to `max_wait_ms` for a first batch
    SNAPSHOT    bytes of `snapshot` from `offset`, a position in bytes, on
    FREEZE      accept no more writes for `max_wait_ms`
    UNFREEZE    accept writes again
    FENCE       stop and never serve again, because a standby has taken over as `number` without a plan
    RETIRE      never accept writes again, and stop: the standby takes over as `number`. Only after FREEZE
    """

    action: StandbyAction
    offset: int = 0
    last_crc: int | None = None
    max_wait_ms: int = 0
    snapshot: SnapshotName | None = None
    number: int = 0


@dataclass(slots=True)
class StandbyResponse:
    """The answer.

    IDENTIFY    identity
    METADATA    `data`, whole batches; or `snapshot`, which the standby needs first; or `is_other_log`: the standby's
                metadata log is no prefix of this one. `end_offset`: the metadata log's end
    SNAPSHOT    `data`; empty at the end of the snapshot
    FREEZE      `ends` of all partitions, and `end_offset` of the metadata log
    """

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    identity: StandbyIdentity | None = None
    end_offset: int = -1
    data: bytes = b""
    snapshot: SnapshotName | None = None
    is_other_log: bool = False
    ends: list[PartitionEnd] = field(default_factory=list)

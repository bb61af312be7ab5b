"""ShareGroupHeartbeat (key 76): a member of a share group joins, stays, gets partitions, and leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.protocol.errors import ErrorCode

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1


@dataclass(slots=True)
class ShareGroupHeartbeatRequest:
    """`member_id` is created by the client. None means unchanged."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None = None
    topic_names: Sequence[str] | None = None


@dataclass(slots=True)
class ShareGroupHeartbeatResponse:
    """`assignment`: the partitions that the member may read from now on, by topic id; None: unchanged."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Mapping[bytes, Sequence[int]] | None = None

"""ConsumerGroupHeartbeat (key 68): a member of a consumer group joins, stays, reports its partitions, and leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.protocol.errors import ErrorCode

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2
"""Sent by a static member that leaves and will come back."""

UNCHANGED_TIMEOUT: Final = -1


@dataclass(slots=True)
class ConsumerGroupHeartbeatRequest:
    """None, and -1 as `rebalance_timeout_ms`, mean unchanged.

    `owned`: the member's present partitions by topic id. `requires_member_id`: in this version clients create their id.
    """

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = UNCHANGED_TIMEOUT
    topic_names: Sequence[str] | None = None
    topic_regex: str | None = None
    assignor: str | None = None
    owned: Mapping[bytes, Sequence[int]] | None = None
    requires_member_id: bool = True


@dataclass(slots=True)
class ConsumerGroupHeartbeatResponse:
    """`assignment`: the partitions that the member may use from now on, by topic id; None: unchanged."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Mapping[bytes, Sequence[int]] | None = None

"""Heartbeat (key 12): keeps a member's session alive, and tells it when its generation ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class HeartbeatRequest:
    """`group_instance_id`: only of a static member."""

    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None


class HeartbeatResponse(NamedTuple):
    """REBALANCE_IN_PROGRESS: the member has to join again."""

    error: ErrorCode = ErrorCode.NONE

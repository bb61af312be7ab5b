"""SyncGroup (key 14): the leader sends the assignment, and each member gets its own part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class SyncGroupRequest:
    """`assignments` by member id, only from the leader. `protocol_type` and `protocol` are None in old versions."""

    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol: str | None
    assignments: Mapping[str, bytes]


class SyncGroupResponse(NamedTuple):
    """The member's own assignment, as the leader encoded it."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""

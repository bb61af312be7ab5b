"""SyncGroup (key 14): the leader hands in what it assigned, everybody gets their own part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class SyncGroupRequest:
    """`assignments` by member id, of the leader only; `protocol_type` and `protocol` where the version has them."""

    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol: str | None
    assignments: Mapping[str, bytes]


class SyncGroupResponse(NamedTuple):
    """The member's own assignment, in the leader's bytes."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""

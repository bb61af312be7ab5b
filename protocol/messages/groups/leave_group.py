"""LeaveGroup (key 13): members go, so that nobody has to wait for their session to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode


class LeavingMember(NamedTuple):
    """By its id, or with an empty one by the instance id of a static member."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


@dataclass(slots=True)
class LeaveGroupRequest:
    """One member before version 3, any number from then on."""

    group_id: str
    members: Sequence[LeavingMember]


class LeftMember(NamedTuple):
    """What became of one."""

    member_id: str
    group_instance_id: str | None
    error: ErrorCode = ErrorCode.NONE


class LeaveGroupResponse(NamedTuple):
    """`error` of the request as a whole."""

    error: ErrorCode = ErrorCode.NONE
    members: Sequence[LeftMember] = ()

"""LeaveGroup (key 13): members leave without waiting for their session to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode


class LeavingMember(NamedTuple):
    """A member id, or an empty one and the instance id of a static member."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


@dataclass(slots=True)
class LeaveGroupRequest:
    """One member before version 3, any number from then on."""

    group_id: str
    members: Sequence[LeavingMember]


class LeftMember(NamedTuple):
    """The result for one member."""

    member_id: str
    group_instance_id: str | None
    error: ErrorCode = ErrorCode.NONE


class LeaveGroupResponse(NamedTuple):
    """`error` of the request as a whole."""

    error: ErrorCode = ErrorCode.NONE
    members: Sequence[LeftMember] = ()

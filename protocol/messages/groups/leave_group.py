"""LeaveGroup (key 13): members leave without waiting for their session to end.

Before version 3 it is about one member, whose error is the answer's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since, until
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int32, NullableString, String

_MEMBERS_FROM: Final = 3


class LeftMember(Struct):
    """The result for one member."""

    member_id: String
    group_instance_id: NullableString
    error: Error = ErrorCode.NONE


class LeaveGroupResponse(Struct, flexible=4):
    """`error` of the request as a whole."""

    throttle_ms: Int32 = since(1, default=0)
    error: Error = ErrorCode.NONE
    members: Sequence[LeftMember] = since(_MEMBERS_FROM, default=())

    def encode(self, version: int) -> bytes:
        """Return the bytes. A version without results of members has that of the only one as its own."""
        if self.members and version < _MEMBERS_FROM:
            return LeaveGroupResponse(error=self.error or self.members[0].error).encode(version)
        return super().encode(version)


class LeavingMember(Struct):
    """A member id, or an empty one and the instance id of a static member."""

    member_id: String
    group_instance_id: NullableString = None
    reason: NullableString = since(5, default=None)


class LeaveGroupRequest(Request[LeaveGroupResponse], api=ApiKey.LEAVE_GROUP, flexible=4):
    """`leaving` has the members of every version."""

    group_id: String
    member_id: String = until(_MEMBERS_FROM - 1, default="")
    members: Sequence[LeavingMember] = since(_MEMBERS_FROM, default=())

    @property
    def leaving(self) -> Sequence[LeavingMember]:
        """One member before version 3, any number from then on."""
        return self.members if self.version >= _MEMBERS_FROM else [LeavingMember(member_id=self.member_id)]

    def refused(self, code: ErrorCode, message: str) -> LeaveGroupResponse:
        """The refusal of all."""
        return LeaveGroupResponse(error=code)

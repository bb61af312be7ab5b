"""SyncGroup (key 14): the leader sends the assignment, and each member gets its own part."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bytes, Error, Int32, NullableString, String


class SyncGroupResponse(Struct, flexible=4):
    """The member's own assignment, as the leader encoded it."""

    throttle_ms: Int32 = since(1, default=0)
    error: Error = ErrorCode.NONE
    protocol_type: NullableString = since(5, default=None)
    protocol: NullableString = since(5, default=None)
    assignment: Bytes = b""


class MemberAssignment(Struct):
    """One member's part of the assignment."""

    member_id: String
    assignment: Bytes


class SyncGroupRequest(Request[SyncGroupResponse], api=ApiKey.SYNC_GROUP, flexible=4):
    """`assignments`: only from the leader."""

    group_id: String
    generation: Int32
    member_id: String
    group_instance_id: NullableString = since(3, default=None)
    protocol_type: NullableString = since(5, default=None)
    protocol: NullableString = since(5, default=None)
    assignments: Sequence[MemberAssignment] = ()

    def check(self) -> None:
        """Raise BrokerError where protocol type or name is null in a version that has them."""
        if self.version >= 5 and None in (self.protocol_type, self.protocol):
            raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "protocol type and name are not there")

    def refused(self, code: ErrorCode, message: str) -> SyncGroupResponse:
        """The refusal."""
        return SyncGroupResponse(error=code)

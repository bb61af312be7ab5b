"""Heartbeat (key 12): keeps a member's session alive, and tells it when its generation ends."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int32, NullableString, String


class HeartbeatResponse(Struct, flexible=4):
    """REBALANCE_IN_PROGRESS: the member has to join again."""

    throttle_ms: Int32 = since(1, default=0)
    error: Error = ErrorCode.NONE


class HeartbeatRequest(Request[HeartbeatResponse], api=ApiKey.HEARTBEAT, flexible=4):
    """`group_instance_id`: only of a static member."""

    group_id: String
    generation: Int32
    member_id: String
    group_instance_id: NullableString = since(3, default=None)

    def refused(self, code: ErrorCode, message: str) -> HeartbeatResponse:
        """The code."""
        return HeartbeatResponse(error=code)

"""ShareGroupHeartbeat (key 76): a member of a share group joins, stays, gets partitions, and leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.consumer_group_heartbeat import Assignment
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int32, Message, Nullable, NullableString, String

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1


class ShareGroupHeartbeatResponse(Struct, flexible=0):
    """`assignment`: the partitions that the member may read from now on; None: unchanged."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    member_id: NullableString = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Annotated[Assignment | None, Nullable()] = None


class ShareGroupHeartbeatRequest(Request[ShareGroupHeartbeatResponse], api=ApiKey.SHARE_GROUP_HEARTBEAT, flexible=0):
    """`member_id` is created by the client. None means unchanged."""

    group_id: String
    member_id: String
    member_epoch: Int32
    rack_id: NullableString = None
    topic_names: Annotated[Sequence[String] | None, Nullable()] = None

    def refused(self, code: ErrorCode, message: str) -> ShareGroupHeartbeatResponse:
        """The refusal."""
        return ShareGroupHeartbeatResponse(error=code, message=message)

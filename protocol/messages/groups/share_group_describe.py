"""ShareGroupDescribe (key 77): share groups with their members, for administration."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.authorized_operations import NOT_ASKED
from barnabas.protocol.messages.groups.consumer_group_describe import Assignment
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Int32, Message, NullableString, String


class ShareGroupMemberDescription(Struct):
    """One member."""

    member_id: String
    rack_id: NullableString = None
    member_epoch: Int32
    client_id: String
    client_host: String
    topic_names: Sequence[String]
    assignment: Assignment


class ShareGroupDescription(Struct):
    """`state` by Kafka's name: Empty, Stable, Dead."""

    error: Error = ErrorCode.NONE
    message: Message = None
    group_id: String
    state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor: String = ""
    members: Sequence[ShareGroupMemberDescription] = ()
    authorized_operations: Int32 = NOT_ASKED


class ShareGroupDescribeResponse(Struct, flexible=0):
    """In the order of the request."""

    throttle_ms: Int32 = 0
    groups: Sequence[ShareGroupDescription]


class ShareGroupDescribeRequest(Request[ShareGroupDescribeResponse], api=ApiKey.SHARE_GROUP_DESCRIBE, flexible=0):
    """Group ids."""

    group_ids: Sequence[String]
    include_authorized_operations: Bool = False

    def refused(self, code: ErrorCode, message: str) -> ShareGroupDescribeResponse:
        """The same refusal for every group."""
        return ShareGroupDescribeResponse(
            groups=[ShareGroupDescription(group_id=each, error=code, message=message) for each in self.group_ids]
        )

"""DescribeGroups (key 15): groups with their members, for administration."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.authorized_operations import NOT_ASKED
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Bytes, Error, Int32, Message, NullableString, String


class DescribedMember(Struct):
    """`metadata` and `assignment` are the clients' bytes."""

    member_id: String
    group_instance_id: NullableString = since(4, default=None)
    client_id: String
    client_host: String
    metadata: Bytes
    assignment: Bytes


class DescribedGroup(Struct):
    """`state` by Kafka's name. `protocol` is the assignor, empty until one is selected."""

    error: Error = ErrorCode.NONE
    message: Message = since(6, default=None)
    group_id: String
    state: String = ""
    protocol_type: String = ""
    protocol: String = ""
    members: Sequence[DescribedMember] = ()
    authorized_operations: Int32 = since(3, default=NOT_ASKED)


class DescribeGroupsResponse(Struct, flexible=5):
    """In the order of the request."""

    throttle_ms: Int32 = since(1, default=0)
    groups: Sequence[DescribedGroup]


class DescribeGroupsRequest(Request[DescribeGroupsResponse], api=ApiKey.DESCRIBE_GROUPS, flexible=5):
    """Group ids."""

    groups: Sequence[String]
    include_authorized_operations: Bool = since(3, default=False)

    @property
    def unknown_is_error(self) -> bool:
        """Whether an unknown group is GROUP_ID_NOT_FOUND instead of Dead."""
        return self.version >= 6

    def refused(self, code: ErrorCode, message: str) -> DescribeGroupsResponse:
        """The same refusal for every group."""
        groups = [DescribedGroup(group_id=each, error=code, message=message) for each in self.groups]
        return DescribeGroupsResponse(groups=groups)

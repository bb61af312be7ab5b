"""ListGroups (key 16) and DeleteGroups (42): the groups of a broker."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int32, String


class ListedGroup(Struct):
    """`protocol_type`: "consumer", another client's own, or "" for a group that never had a member.

    `state` by Kafka's name: Empty, Stable, ...; `type` likewise, but in lower case, as Kafka's brokers write it.
    """

    group_id: String
    protocol_type: String
    state: String = since(4, default="")
    type: String = since(5, default="")

    @property
    def group_type(self) -> str:
        """The type by Kafka's name: Classic, Consumer, ...; empty in versions without it."""
        return self.type.capitalize()


class ListGroupsResponse(Struct, flexible=3):
    """The groups that match, or an error."""

    throttle_ms: Int32 = since(1, default=0)
    error: Error = ErrorCode.NONE
    groups: Sequence[ListedGroup] = ()


class ListGroupsRequest(Request[ListGroupsResponse], api=ApiKey.LIST_GROUPS, flexible=3):
    """Filters of states and types, case-insensitive; an empty one matches every group."""

    states: Sequence[String] = since(4, default=())
    types: Sequence[String] = since(5, default=())

    def refused(self, code: ErrorCode, message: str) -> ListGroupsResponse:
        """The code for the whole request."""
        return ListGroupsResponse(error=code)


class DeleteGroupResult(Struct):
    """NONE if the group and its offsets are deleted, or the error."""

    group_id: String
    error: Error = ErrorCode.NONE


class DeleteGroupsResponse(Struct, flexible=2):
    """In the order of the request."""

    throttle_ms: Int32 = 0
    results: Sequence[DeleteGroupResult]


class DeleteGroupsRequest(Request[DeleteGroupsResponse], api=ApiKey.DELETE_GROUPS, flexible=2):
    """Group ids."""

    group_ids: Sequence[String]

    def refused(self, code: ErrorCode, message: str) -> DeleteGroupsResponse:
        """The code for every group."""
        return DeleteGroupsResponse(results=[DeleteGroupResult(group_id=each, error=code) for each in self.group_ids])

"""ConsumerGroupDescribe (key 69): consumer groups with their members, for administration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.authorized_operations import NOT_ASKED
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Int8, Int32, Message, NullableString, String, Uuid

CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1


class AssignedTopic(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    topic: String
    partitions: Sequence[Int32]


class Assignment(Struct):
    """Partitions of a member."""

    topics: Sequence[AssignedTopic] = ()


class ConsumerGroupMemberDescription(Struct):
    """`member_type`: the protocol that the member uses, from version 1 on."""

    member_id: String
    instance_id: NullableString = None
    rack_id: NullableString = None
    member_epoch: Int32
    client_id: String
    client_host: String
    topic_names: Sequence[String]
    topic_regex: NullableString = None
    assignment: Assignment
    target: Assignment
    member_type: Int8 = since(1, default=-1)


class ConsumerGroupDescription(Struct):
    """`state` by Kafka's name: Empty, Assigning, Reconciling, Stable, Dead."""

    error: Error = ErrorCode.NONE
    message: Message = None
    group_id: String
    state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor: String = ""
    members: Sequence[ConsumerGroupMemberDescription] = ()
    authorized_operations: Int32 = NOT_ASKED


class ConsumerGroupDescribeResponse(Struct, flexible=0):
    """In the order of the request."""

    throttle_ms: Int32 = 0
    groups: Sequence[ConsumerGroupDescription]


class ConsumerGroupDescribeRequest(
    Request[ConsumerGroupDescribeResponse], api=ApiKey.CONSUMER_GROUP_DESCRIBE, flexible=0
):
    """Group ids."""

    group_ids: Sequence[String]
    include_authorized_operations: Bool = False

    def refused(self, code: ErrorCode, message: str) -> ConsumerGroupDescribeResponse:
        """The same refusal for every group."""
        return ConsumerGroupDescribeResponse(
            groups=[ConsumerGroupDescription(group_id=each, error=code, message=message) for each in self.group_ids]
        )

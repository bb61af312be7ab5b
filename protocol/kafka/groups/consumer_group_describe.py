"""ConsumerGroupDescribe (69), versions 0 and 1: version 1 adds whether a member uses the classic protocol."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    MESSAGE,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    UUID,
    Array,
    Computed,
    Message,
    Struct,
    rows,
    since,
)
from barnabas.protocol.messages.groups.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescription,
)

_CLASSIC_MEMBER: Final = 0
_CONSUMER_MEMBER: Final = 1

REQUEST = Message(
    0, ConsumerGroupDescribeRequest, group_ids=Array(STRING, make=tuple), include_authorized_operations=BOOL
)
_TOPICS = rows(topic_id=UUID, topic=STRING, partitions=Array(INT32))
_ASSIGNMENT = Struct(topics=Computed(_TOPICS, lambda topics: topics))
_MEMBER = Struct(
    member_id=STRING,
    instance_id=NULLABLE_STRING,
    rack_id=NULLABLE_STRING,
    member_epoch=INT32,
    client_id=STRING,
    client_host=STRING,
    topic_names=Array(STRING),
    topic_regex=NULLABLE_STRING,
    assignment=_ASSIGNMENT,
    target=_ASSIGNMENT,
    type=since(1, Computed(INT8, lambda member: _CLASSIC_MEMBER if member.is_classic else _CONSUMER_MEMBER)),
)
_GROUP = Struct(
    error=INT16,
    message=MESSAGE,
    group_id=STRING,
    state=STRING,
    group_epoch=INT32,
    assignment_epoch=INT32,
    assignor=STRING,
    members=Array(_MEMBER),
    authorized_operations=INT32,
)
RESPONSE = Message(0, throttle_ms=NO_THROTTLE, groups=Array(_GROUP))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: ConsumerGroupDescribeRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every group."""
    groups = [ConsumerGroupDescription(group_id, error=code, message=message) for group_id in request.group_ids]
    return RESPONSE.write(version, ConsumerGroupDescribeResponse(groups))

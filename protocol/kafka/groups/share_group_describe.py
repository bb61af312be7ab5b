"""ShareGroupDescribe (77), version 1; Kafka 4.1 removed version 0, of its early access."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
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
)
from barnabas.protocol.messages.groups.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupDescription,
)

REQUEST = Message(0, ShareGroupDescribeRequest, group_ids=Array(STRING, make=tuple), include_authorized_operations=BOOL)
_TOPICS = rows(topic_id=UUID, topic=STRING, partitions=Array(INT32))
_MEMBER = Struct(
    member_id=STRING,
    rack_id=NULLABLE_STRING,
    member_epoch=INT32,
    client_id=STRING,
    client_host=STRING,
    topic_names=Array(STRING),
    assignment=Struct(topics=Computed(_TOPICS, lambda topics: topics)),
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


def encode_error(version: int, request: ShareGroupDescribeRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every group."""
    groups = [ShareGroupDescription(group_id, error=code, message=message) for group_id in request.group_ids]
    return RESPONSE.write(version, ShareGroupDescribeResponse(groups))

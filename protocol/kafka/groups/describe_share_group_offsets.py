"""DescribeShareGroupOffsets (90), versions 0 and 1: version 1 adds the lag."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    INT16,
    INT32,
    INT64,
    MESSAGE,
    NO_THROTTLE,
    STRING,
    UUID,
    Array,
    Message,
    Struct,
    rows,
    since,
)
from barnabas.protocol.messages.groups.share_group_offsets import (
    DescribedGroupOffsets,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    GroupToDescribe,
    NamedPartitions,
)

_TOPIC = Struct(NamedPartitions, topic=STRING, partitions=Array(INT32, make=tuple))
REQUEST = Message(
    0,
    DescribeShareGroupOffsetsRequest,
    groups=rows(GroupToDescribe, group_id=STRING, topics=Array(_TOPIC, nullable_from=0, make=tuple)),
)
_PARTITIONS = rows(
    partition=INT32, start_offset=INT64, leader_epoch=INT32, lag=since(1, INT64), error=INT16, message=MESSAGE
)
_GROUP = Struct(
    group_id=STRING,
    topics=rows(topic=STRING, topic_id=UUID, partitions=_PARTITIONS),
    error=INT16,
    message=MESSAGE,
)
RESPONSE = Message(0, throttle_ms=NO_THROTTLE, groups=Array(_GROUP))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: DescribeShareGroupOffsetsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every group."""
    groups = [DescribedGroupOffsets(each.group_id, error=code, message=message) for each in request.groups]
    return RESPONSE.write(version, DescribeShareGroupOffsetsResponse(groups))

"""ConsumerGroupHeartbeat (68), versions 0 and 1: from 1 on the client chooses its member id, and may send a regex."""

from __future__ import annotations

from operator import itemgetter
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
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
    Nullable,
    Struct,
    since,
)
from barnabas.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

_MEMBER_ID_FROM: Final = 1

_OWNED = Struct(lambda topic_id, partitions: (topic_id, partitions), topic_id=UUID, partitions=Array(INT32, make=tuple))
REQUEST = Message(
    0,
    ConsumerGroupHeartbeatRequest,
    group_id=STRING,
    member_id=STRING,
    member_epoch=INT32,
    instance_id=NULLABLE_STRING,
    rack_id=NULLABLE_STRING,
    rebalance_timeout_ms=INT32,
    topic_names=Array(STRING, nullable_from=0, make=tuple),
    topic_regex=since(1, NULLABLE_STRING),
    assignor=NULLABLE_STRING,
    owned=Array(_OWNED, nullable_from=0, make=dict),
)
_ASSIGNED = Struct(topic_id=Computed(UUID, itemgetter(0)), partitions=Computed(Array(INT32), itemgetter(1)))
RESPONSE = Message(
    0,
    throttle_ms=NO_THROTTLE,
    error=INT16,
    message=MESSAGE,
    member_id=NULLABLE_STRING,
    member_epoch=INT32,
    heartbeat_interval_ms=INT32,
    assignment=Nullable(Struct(topics=Computed(Array(_ASSIGNED), lambda assignment: assignment.items()))),
)

encode_response = RESPONSE.write


def decode_request(version: int, body: memoryview) -> ConsumerGroupHeartbeatRequest:
    """Raises DecodeError."""
    request: ConsumerGroupHeartbeatRequest = REQUEST.read(version, body)
    request.requires_member_id = version >= _MEMBER_ID_FROM
    return request


def encode_error(version: int, request: ConsumerGroupHeartbeatRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal."""
    return RESPONSE.write(version, ConsumerGroupHeartbeatResponse(code, message))

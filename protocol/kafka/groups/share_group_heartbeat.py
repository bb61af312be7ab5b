"""ShareGroupHeartbeat (76), version 1; Kafka 4.1 removed version 0, of its early access."""

from __future__ import annotations

from operator import itemgetter

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
)
from barnabas.protocol.messages.groups.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

REQUEST = Message(
    0,
    ShareGroupHeartbeatRequest,
    group_id=STRING,
    member_id=STRING,
    member_epoch=INT32,
    rack_id=NULLABLE_STRING,
    topic_names=Array(STRING, nullable_from=0, make=tuple),
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

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: ShareGroupHeartbeatRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal."""
    return RESPONSE.write(version, ShareGroupHeartbeatResponse(code, message))

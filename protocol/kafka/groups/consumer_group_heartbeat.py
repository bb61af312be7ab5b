"""ConsumerGroupHeartbeat (68), versions 0 and 1: from 1 on the client makes its own member id, and may send a regex."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

_API: Final = "consumer_group_heartbeat"
_MEMBER_ID_FROM: Final = 1


def decode_request(version: int, body: memoryview) -> ConsumerGroupHeartbeatRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    topics = request.topic_partitions
    return ConsumerGroupHeartbeatRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=entities.milliseconds(request.rebalance_timeout),
        topic_names=request.subscribed_topic_names,
        topic_regex=getattr(request, "subscribed_topic_regex", None),
        assignor=request.server_assignor,
        owned=None if topics is None else {entities.id_bytes(each.topic_id): each.partitions for each in topics},
        requires_member_id=version >= _MEMBER_ID_FROM,
    )


def encode_response(version: int, response: ConsumerGroupHeartbeatResponse) -> bytes:
    """An assignment only where there is one."""
    schema = entities.response_schema(_API, version)
    return entities.write(
        schema.ConsumerGroupHeartbeatResponse(
            throttle_time=entities.NO_THROTTLE,
            error_code=response.error,
            error_message=entities.sentence(response.message),
            member_id=response.member_id,
            member_epoch=response.member_epoch,
            heartbeat_interval=entities.duration(response.heartbeat_interval_ms),
            assignment=_assignment(schema, response),
        )
    )


def encode_error(version: int, request: ConsumerGroupHeartbeatRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal."""
    return encode_response(version, ConsumerGroupHeartbeatResponse(code, message))


def _assignment(schema: Any, response: ConsumerGroupHeartbeatResponse) -> Any:
    if response.assignment is None:
        return None
    return schema.Assignment(
        topic_partitions=tuple(
            schema.TopicPartitions(topic_id=entities.uuid_of(topic_id), partitions=tuple(partitions))
            for topic_id, partitions in response.assignment.items()
        )
    )

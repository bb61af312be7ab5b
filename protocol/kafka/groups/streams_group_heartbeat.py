"""StreamsGroupHeartbeat (88), version 0."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.groups.streams_topology import (
    ENDPOINT,
    KEY_VALUES,
    PARTITIONS_BY_NAME,
    TOPOLOGY,
    sorted_tasks,
)
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    MESSAGE,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    Array,
    Computed,
    Constant,
    Message,
    Nullable,
    Struct,
    rows,
)
from barnabas.protocol.messages.groups.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

_OWNED = Array(
    Struct(
        lambda subtopology_id, partitions: (subtopology_id, frozenset(partitions)),
        subtopology_id=STRING,
        partitions=Array(INT32),
    ),
    nullable_from=0,
    make=dict,
)
_OFFSETS = Array(
    Struct(
        lambda subtopology_id, partition, offset: (subtopology_id, partition, offset),
        subtopology_id=STRING,
        partition=INT32,
        offset=INT64,
    ),
    nullable_from=0,
)
REQUEST = Message(
    0,
    StreamsGroupHeartbeatRequest,
    group_id=STRING,
    member_id=STRING,
    member_epoch=INT32,
    endpoint_epoch=INT32,
    instance_id=NULLABLE_STRING,
    rack_id=NULLABLE_STRING,
    rebalance_timeout_ms=INT32,
    topology=TOPOLOGY,
    active_tasks=_OWNED,
    standby_tasks=_OWNED,
    warmup_tasks=_OWNED,
    process_id=NULLABLE_STRING,
    user_endpoint=Nullable(ENDPOINT),
    client_tags=KEY_VALUES._replace(nullable_from=0),
    task_offsets=_OFFSETS,
    task_end_offsets=_OFFSETS,
    shutdown_application=BOOL,
)
_TASKS = PARTITIONS_BY_NAME._replace(nullable_from=0)
RESPONSE = Message(
    0,
    throttle_ms=NO_THROTTLE,
    error=INT16,
    message=MESSAGE,
    member_id=STRING,
    member_epoch=INT32,
    heartbeat_interval_ms=INT32,
    acceptable_recovery_lag=Constant(INT32, 0),
    task_offset_interval_ms=Constant(INT32, 0),
    status=Array(Struct(code=INT8, detail=STRING), nullable_from=0),
    active_tasks=Computed(_TASKS, lambda response: sorted_tasks(response.active_tasks)),
    standby_tasks=Computed(_TASKS, lambda response: sorted_tasks(response.standby_tasks)),
    warmup_tasks=Computed(_TASKS, lambda response: sorted_tasks(response.warmup_tasks)),
    endpoint_epoch=INT32,
    endpoints=rows(
        endpoint=ENDPOINT,
        active=Computed(PARTITIONS_BY_NAME, lambda each: each.active.items()),
        standby=Computed(PARTITIONS_BY_NAME, lambda each: each.standby.items()),
    )._replace(nullable_from=0),
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: StreamsGroupHeartbeatRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal."""
    return RESPONSE.write(version, StreamsGroupHeartbeatResponse(code, message))

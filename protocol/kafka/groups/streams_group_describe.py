"""StreamsGroupDescribe (89), version 0."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.groups.streams_topology import (
    ENDPOINT,
    KEY_VALUES,
    PARTITIONS_BY_NAME,
    TOPIC_INFOS,
    sorted_tasks,
)
from barnabas.protocol.kafka.schema import (
    BOOL,
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
from barnabas.protocol.messages.groups.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupDescription,
)

REQUEST = Message(
    0, StreamsGroupDescribeRequest, group_ids=Array(STRING, make=tuple), include_authorized_operations=BOOL
)
_ASSIGNMENT = Struct(
    active=Computed(PARTITIONS_BY_NAME, lambda tasks: sorted_tasks(tasks.active)),
    standby=Computed(PARTITIONS_BY_NAME, lambda tasks: sorted_tasks(tasks.standby)),
    warmup=Computed(PARTITIONS_BY_NAME, lambda tasks: sorted_tasks(tasks.warmup)),
)
_NO_OFFSETS = Constant(rows(subtopology_id=STRING, partition=INT32, offset=INT64), ())
_MEMBER = Struct(
    member_id=STRING,
    member_epoch=INT32,
    instance_id=NULLABLE_STRING,
    rack_id=NULLABLE_STRING,
    client_id=STRING,
    client_host=STRING,
    topology_epoch=INT32,
    process_id=STRING,
    user_endpoint=Nullable(ENDPOINT),
    client_tags=KEY_VALUES,
    task_offsets=_NO_OFFSETS,
    task_end_offsets=_NO_OFFSETS,
    assignment=_ASSIGNMENT,
    target=_ASSIGNMENT,
    is_classic=Constant(BOOL, False),
)
_TOPOLOGY = Struct(
    epoch=INT32,
    subtopologies=rows(
        subtopology_id=STRING,
        source_topics=Array(STRING),
        repartition_sink_topics=Array(STRING),
        changelog_topics=TOPIC_INFOS,
        repartition_source_topics=TOPIC_INFOS,
    )._replace(nullable_from=0),
)
_GROUP = Struct(
    error=INT16,
    message=MESSAGE,
    group_id=STRING,
    state=STRING,
    group_epoch=INT32,
    assignment_epoch=INT32,
    topology=Nullable(_TOPOLOGY),
    members=Array(_MEMBER),
    authorized_operations=INT32,
)
RESPONSE = Message(0, throttle_ms=NO_THROTTLE, groups=Array(_GROUP))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: StreamsGroupDescribeRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every group."""
    groups = [StreamsGroupDescription(group_id, error=code, message=message) for group_id in request.group_ids]
    return RESPONSE.write(version, StreamsGroupDescribeResponse(groups))

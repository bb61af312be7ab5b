"""StreamsGroupDescribe (89), version 0: streams groups with their topology, and the members' tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.groups import streams_group_describe
from barnabas.protocol.kafka.groups.streams_topology import ENDPOINT, KEY_VALUES, TOPIC_INFOS
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    Array,
    Message,
    Nullable,
    Struct,
    rows,
)
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.streams_group_describe import (
    DescribedSubtopology,
    DescribedTopology,
    StreamsGroupDescribeResponse,
    StreamsGroupDescription,
    StreamsGroupMemberDescription,
    TaskAssignment,
)
from barnabas.protocol.messages.groups.streams_topology import Tasks


def _task(name: str, partitions: frozenset[int]) -> tuple[str, frozenset[int]]:
    return name, partitions


def _assignment(**kinds: Sequence[tuple[str, frozenset[int]]]) -> TaskAssignment:
    tasks: dict[str, Tasks] = {kind: dict(found) for kind, found in kinds.items()}
    return TaskAssignment(**tasks)


def _topology(**fields: Any) -> DescribedTopology:
    return DescribedTopology(fields["epoch"], fields["subtopologies"] or ())


def _dropped(**_fields: Any) -> None:
    """Drop offsets, which only the clients know."""


_NAMES: Final = Array(STRING, make=tuple)
_TASKS: Final = rows(_task, name=STRING, partitions=Array(INT32, make=frozenset))
_ASSIGNMENT: Final = Struct(_assignment, active=_TASKS, standby=_TASKS, warmup=_TASKS)
_OFFSETS: Final = rows(_dropped, subtopology_id=STRING, partition=INT32, offset=INT64)
_MEMBER: Final = Struct(
    StreamsGroupMemberDescription,
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
    _task_offsets=_OFFSETS,
    _task_end_offsets=_OFFSETS,
    assignment=_ASSIGNMENT,
    target=_ASSIGNMENT,
    _is_classic=BOOL,
)
_TOPOLOGY: Final = Struct(
    _topology,
    epoch=INT32,
    subtopologies=rows(
        DescribedSubtopology,
        subtopology_id=STRING,
        source_topics=_NAMES,
        repartition_sink_topics=_NAMES,
        changelog_topics=TOPIC_INFOS,
        repartition_source_topics=TOPIC_INFOS,
    )._replace(nullable_from=0),
)
STREAMS_GROUP_DESCRIBE: Final = ClientApi(
    ApiKey.STREAMS_GROUP_DESCRIBE,
    0,
    0,
    streams_group_describe.REQUEST,
    Message(
        0,
        StreamsGroupDescribeResponse,
        _throttle_ms=INT32,
        groups=rows(
            StreamsGroupDescription,
            error=ERROR,
            message=NULLABLE_STRING,
            group_id=STRING,
            state=STRING,
            group_epoch=INT32,
            assignment_epoch=INT32,
            topology=Nullable(_TOPOLOGY),
            members=Array(_MEMBER),
            authorized_operations=INT32,
        ),
    ),
)
"""Writes a StreamsGroupDescribeRequest, reads a StreamsGroupDescribeResponse."""

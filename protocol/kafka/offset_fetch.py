"""OffsetFetch (9), versions 1-10.

Version 2 brought null for all topics and an error of the whole, 5 the leader epoch, 7 require_stable, 8 several groups
in one request, 9 members of the newer protocol (which has no members here), 10 topics by their ids.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchPartitionResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    refuse_fetch,
)
from barnabas.protocol.uuids import ZERO_UUID

_API: Final = "offset_fetch"

_GROUPS_FROM: Final = 8
_BY_ID_FROM: Final = 10


def decode_request(version: int, body: memoryview) -> OffsetFetchRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    groups = request.groups if version >= _GROUPS_FROM else (request,)
    return OffsetFetchRequest(
        [OffsetFetchGroup(each.group_id, _topics(version, each.topics)) for each in groups],
        getattr(request, "require_stable", False),
        version >= _BY_ID_FROM,
    )


def _topics(version: int, topics: Any) -> list[OffsetFetchTopic] | None:
    if topics is None:
        return None
    if version >= _BY_ID_FROM:
        return [OffsetFetchTopic("", each.partition_indexes, entities.id_bytes(each.topic_id)) for each in topics]
    return [OffsetFetchTopic(each.name, each.partition_indexes) for each in topics]


def encode_response(version: int, response: OffsetFetchResponse) -> bytes:
    """Groups, or before version 8 the one that was asked for."""
    schema = entities.response_schema(_API, version)
    if version >= _GROUPS_FROM:
        groups = tuple(
            schema.OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=_written(group, schema.OffsetFetchResponseTopics, schema.OffsetFetchResponsePartitions),
                error_code=group.error,
            )
            for group in response.groups
        )
        return entities.write(schema.OffsetFetchResponse(throttle_time=entities.NO_THROTTLE, groups=groups))
    (group,) = response.groups
    return entities.write(
        entities.make(
            schema.OffsetFetchResponse,
            throttle_time=entities.NO_THROTTLE,
            topics=_written(group, schema.OffsetFetchResponseTopic, schema.OffsetFetchResponsePartition),
            error_code=group.error,
        )
    )


def encode_error(version: int, request: OffsetFetchRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every group and partition."""
    return encode_response(version, OffsetFetchResponse([refuse_fetch(each, code) for each in request.groups]))


def _written(group: OffsetFetchGroupResult, topic_kind: Any, partition_kind: Any) -> tuple[Any, ...]:
    return tuple(
        entities.make(
            topic_kind,
            name=topic.name,
            topic_id=entities.uuid_of(topic.topic_id or ZERO_UUID),
            partitions=tuple(_partition(partition_kind, each) for each in topic.partitions),
        )
        for topic in group.topics
    )


def _partition(kind: Any, result: OffsetFetchPartitionResult) -> Any:
    return entities.make(
        kind,
        partition_index=result.partition,
        committed_offset=result.offset,
        committed_leader_epoch=result.leader_epoch,
        metadata=result.metadata,
        error_code=result.error,
    )

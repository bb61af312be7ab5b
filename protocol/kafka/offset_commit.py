"""OffsetCommit (8), versions 2-10.

Versions 2 to 4 say how long to keep the offsets, 6 brought the leader epoch, 7 the group instance id, 9 members of the
newer protocol, 10 topics by their ids. An error of the whole request is every partition's.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.offset_commit import (
    DEFAULT_RETENTION,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    refuse_commit,
)
from barnabas.protocol.uuids import ZERO_UUID

_API: Final = "offset_commit"

_BY_ID_FROM: Final = 10
_UNKNOWN_GROUPS_FROM: Final = 9


def decode_request(version: int, body: memoryview) -> OffsetCommitRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    retention = getattr(request, "retention_time", None)
    return OffsetCommitRequest(
        request.group_id,
        [_topic(version, each) for each in request.topics],
        request.generation_id_or_member_epoch,
        request.member_id,
        getattr(request, "group_instance_id", None),
        DEFAULT_RETENTION if retention is None else entities.milliseconds(retention),
        knows_unknown_groups=version >= _UNKNOWN_GROUPS_FROM,
    )


def _topic(version: int, topic: Any) -> OffsetCommitTopic:
    partitions = [
        OffsetCommitPartition(
            each.partition_index,
            each.committed_offset,
            getattr(each, "committed_leader_epoch", -1),
            each.committed_metadata,
        )
        for each in topic.partitions
    ]
    if version >= _BY_ID_FROM:
        return OffsetCommitTopic("", partitions, entities.id_bytes(topic.topic_id))
    return OffsetCommitTopic(topic.name, partitions)


def encode_response(version: int, response: OffsetCommitResponse) -> bytes:
    """A code for each partition."""
    schema = entities.response_schema(_API, version)
    topics = tuple(
        entities.make(
            schema.OffsetCommitResponseTopic,
            name=topic.name,
            topic_id=entities.uuid_of(topic.topic_id or ZERO_UUID),
            partitions=tuple(
                schema.OffsetCommitResponsePartition(partition_index=each.partition, error_code=each.error)
                for each in topic.partitions
            ),
        )
        for topic in response.topics
    )
    return entities.write(entities.make(schema.OffsetCommitResponse, throttle_time=entities.NO_THROTTLE, topics=topics))


def encode_error(version: int, request: OffsetCommitRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every partition."""
    return encode_response(version, refuse_commit(request, code))

"""OffsetCommit (key 8): a group's offsets, partition by partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.uuids import ZERO_UUID
from barnabas.protocol.wire.fields import since, until
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int32, Int64, NullableString, String, Uuid

NO_GENERATION: Final = -1
"""Sent by a consumer that assigned its partitions itself."""

DEFAULT_RETENTION: Final = -1

_UNKNOWN_GROUPS_FROM: Final = 9
_BY_ID_FROM: Final = 10


class OffsetCommitPartitionResult(Struct, kw_only=False):
    """NONE if the offset is committed, or the error."""

    partition: Int32
    error: Error = ErrorCode.NONE


class OffsetCommitTopicResult(Struct):
    """One topic's results, named as in the request."""

    name: String = until(9, default="")
    topic_id: Uuid = since(10, default=ZERO_UUID)
    partitions: Sequence[OffsetCommitPartitionResult]


class OffsetCommitResponse(Struct, flexible=8):
    """In the order of the request."""

    throttle_ms: Int32 = since(3, default=0)
    topics: Sequence[OffsetCommitTopicResult]


class OffsetCommitPartition(Struct):
    """`offset`: the next one to read. `leader_epoch`: of the last record read, -1 if unknown."""

    partition: Int32
    offset: Int64
    leader_epoch: Int32 = since(6, default=-1)
    metadata: NullableString = None


class OffsetCommitTopic(Struct):
    """One topic by name, or by id; then the name is empty."""

    name: String = until(9, default="")
    topic_id: Uuid = since(10, default=ZERO_UUID)
    partitions: Sequence[OffsetCommitPartition]


class OffsetCommitRequest(Request[OffsetCommitResponse], api=ApiKey.OFFSET_COMMIT, flexible=8):
    """`generation`: or epoch of the member. `retention_ms`: how long to keep the offsets, -1: as the broker's setting.

    An error of the whole request is set for every partition: the answer has no other place.
    """

    group_id: String
    generation: Int32 = NO_GENERATION
    member_id: String = ""
    group_instance_id: NullableString = since(7, default=None)
    retention_ms: Int64 = until(4, default=DEFAULT_RETENTION)
    topics: Sequence[OffsetCommitTopic]

    @property
    def knows_unknown_groups(self) -> bool:
        """Whether the client knows GROUP_ID_NOT_FOUND for a member of an unknown group."""
        return self.version >= _UNKNOWN_GROUPS_FROM

    @property
    def is_by_id(self) -> bool:
        """Whether topics without a name are named by their ids."""
        return self.version >= _BY_ID_FROM

    def refused(self, code: ErrorCode, message: str = "") -> OffsetCommitResponse:
        """The code for every partition."""
        return OffsetCommitResponse(topics=refused_topics(self.topics, code))


def refused_topics(topics: Sequence[OffsetCommitTopic], error: ErrorCode) -> list[OffsetCommitTopicResult]:
    """Return results with the error for every partition."""
    return [
        OffsetCommitTopicResult(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[OffsetCommitPartitionResult(each.partition, error) for each in topic.partitions],
        )
        for topic in topics
    ]

"""OffsetCommit (key 8): a group's offsets, partition by partition."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode

NO_GENERATION = -1
"""Sent by a consumer that assigned its partitions itself."""

DEFAULT_RETENTION = -1


@dataclass(slots=True)
class OffsetCommitPartition:
    """`offset`: the next one to read. `leader_epoch`: of the last record read, -1 if unknown."""

    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = None


@dataclass(slots=True)
class OffsetCommitTopic:
    """One topic by name, or by `topic_id` if that is not None; then the name is empty."""

    name: str
    partitions: list[OffsetCommitPartition]
    topic_id: bytes | None = None


@dataclass(slots=True)
class OffsetCommitRequest:
    """`retention_ms`: how long to keep the offsets, -1 for the broker's setting.

    `knows_unknown_groups`: the request's version has GROUP_ID_NOT_FOUND for a member of an unknown group.
    """

    group_id: str
    topics: list[OffsetCommitTopic]
    generation: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None
    retention_ms: int = DEFAULT_RETENTION
    knows_unknown_groups: bool = True


@dataclass(slots=True)
class OffsetCommitPartitionResult:
    """NONE if the offset is committed, or the error."""

    partition: int
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class OffsetCommitTopicResult:
    """One topic's results, named as in the request."""

    name: str
    partitions: list[OffsetCommitPartitionResult]
    topic_id: bytes | None = None


@dataclass(slots=True)
class OffsetCommitResponse:
    """In the order of the request."""

    topics: list[OffsetCommitTopicResult]


def refuse_commit(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """Return a response with the error for every partition: the message has no error of the whole request."""
    return OffsetCommitResponse(
        [
            OffsetCommitTopicResult(
                topic.name,
                [OffsetCommitPartitionResult(each.partition, error) for each in topic.partitions],
                topic.topic_id,
            )
            for topic in request.topics
        ]
    )

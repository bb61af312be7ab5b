"""OffsetForLeaderEpoch (23), versions 2-4: see the handler of that name."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.data.offset_for_leader_epoch import (
    EpochPartition,
    EpochPartitionResult,
    EpochTopic,
    EpochTopicResult,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

_API: Final = "offset_for_leader_epoch"


def decode_request(version: int, body: memoryview) -> OffsetForLeaderEpochRequest:
    """Raises DecodeError."""
    return OffsetForLeaderEpochRequest(
        [
            EpochTopic(
                topic.topic,
                [
                    EpochPartition(each.partition, each.leader_epoch, each.current_leader_epoch)
                    for each in topic.partitions
                ],
            )
            for topic in entities.read_request(_API, version, body).topics
        ]
    )


def encode_response(version: int, response: OffsetForLeaderEpochResponse) -> bytes:
    """The body of an answer."""
    schema = entities.response_schema(_API, version)
    topics = tuple(
        schema.OffsetForLeaderTopicResult(
            topic=topic.name,
            partitions=tuple(
                schema.EpochEndOffset(
                    error_code=each.error,
                    partition=each.partition,
                    leader_epoch=each.leader_epoch,
                    end_offset=each.end_offset,
                )
                for each in topic.partitions
            ),
        )
        for topic in response.topics
    )
    return entities.write(
        entities.make(schema.OffsetForLeaderEpochResponse, throttle_time=entities.NO_THROTTLE, topics=topics)
    )


def encode_error(version: int, request: OffsetForLeaderEpochRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every partition."""
    return encode_response(
        version,
        OffsetForLeaderEpochResponse(
            [
                EpochTopicResult(topic.name, [EpochPartitionResult(each.partition, code) for each in topic.partitions])
                for topic in request.topics
            ]
        ),
    )

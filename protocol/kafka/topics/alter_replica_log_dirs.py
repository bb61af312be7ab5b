"""AlterReplicaLogDirs (34), versions 1-2. The answer has no room for a message."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.topics.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirsTopic,
    AlterReplicaLogDirsTopicResult,
)

_API: Final = "alter_replica_log_dirs"


def decode_request(version: int, body: memoryview) -> AlterReplicaLogDirsRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    return AlterReplicaLogDirsRequest(
        [
            AlterReplicaLogDir(
                each.path, [AlterReplicaLogDirsTopic(topic.name, list(topic.partitions)) for topic in each.topics]
            )
            for each in request.dirs
        ]
    )


def encode_response(version: int, response: AlterReplicaLogDirsResponse) -> bytes:
    """A row for each partition."""
    schema = entities.response_schema(_API, version)
    results = tuple(
        schema.AlterReplicaLogDirTopicResult(
            topic_name=topic.name,
            partitions=tuple(
                schema.AlterReplicaLogDirPartitionResult(partition_index=each.partition, error_code=each.error)
                for each in topic.partitions
            ),
        )
        for topic in response.topics
    )
    return entities.write(schema.AlterReplicaLogDirsResponse(throttle_time=entities.NO_THROTTLE, results=results))


def encode_error(version: int, request: AlterReplicaLogDirsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every partition."""
    topics = [
        AlterReplicaLogDirsTopicResult(
            topic.name, [AlterReplicaLogDirsPartitionResult(partition, code) for partition in topic.partitions]
        )
        for each in request.dirs
        for topic in each.topics
    ]
    return encode_response(version, AlterReplicaLogDirsResponse(topics))

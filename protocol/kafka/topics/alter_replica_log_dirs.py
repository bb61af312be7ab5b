"""AlterReplicaLogDirs (34), versions 1-2. The answer has no field for a message."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, INT32, NO_THROTTLE, STRING, Array, Message, Struct, rows
from barnabas.protocol.messages.topics.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirsTopic,
    AlterReplicaLogDirsTopicResult,
)

_TOPIC = Struct(AlterReplicaLogDirsTopic, name=STRING, partitions=Array(INT32))
REQUEST = Message(2, AlterReplicaLogDirsRequest, dirs=rows(AlterReplicaLogDir, path=STRING, topics=Array(_TOPIC)))
_RESULT = Struct(partition=INT32, error=INT16)
RESPONSE = Message(2, throttle_ms=NO_THROTTLE, topics=rows(name=STRING, partitions=Array(_RESULT)))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: AlterReplicaLogDirsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every partition."""
    topics = [
        AlterReplicaLogDirsTopicResult(
            topic.name, [AlterReplicaLogDirsPartitionResult(partition, code) for partition in topic.partitions]
        )
        for each in request.dirs
        for topic in each.topics
    ]
    return RESPONSE.write(version, AlterReplicaLogDirsResponse(topics))

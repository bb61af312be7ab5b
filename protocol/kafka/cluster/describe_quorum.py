"""DescribeQuorum (55), versions 0-2: times from version 1 on; sentences, directories and nodes in 2. No observers."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.cluster.describe_quorum import (
    DescribeQuorumPartitionResult,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopic,
    QuorumNode,
    QuorumReplica,
)

_API: Final = "describe_quorum"
_NODES_FROM: Final = 2


def decode_request(version: int, body: memoryview) -> DescribeQuorumRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    return DescribeQuorumRequest(
        [
            DescribeQuorumTopic(topic.topic_name, [each.partition_index for each in topic.partitions])
            for topic in request.topics
        ]
    )


def encode_response(version: int, response: DescribeQuorumResponse) -> bytes:
    """A row for each partition."""
    schema = entities.response_schema(_API, version)
    nodes = tuple(_node(schema, each) for each in response.nodes) if version >= _NODES_FROM else ()
    return entities.write(
        entities.make(
            schema.DescribeQuorumResponse,
            error_code=response.error,
            error_message=entities.sentence(response.message),
            topics=tuple(
                schema.TopicData(
                    topic_name=topic.name, partitions=tuple(_partition(schema, each) for each in topic.partitions)
                )
                for topic in response.topics
            ),
            nodes=nodes,
        )
    )


def encode_error(version: int, request: DescribeQuorumRequest, code: ErrorCode, message: str) -> bytes:
    """The code of the whole, and no rows."""
    return encode_response(version, DescribeQuorumResponse([], error=code, message=message))


def _partition(schema: ModuleType, result: DescribeQuorumPartitionResult) -> Any:
    return entities.make(
        schema.PartitionData,
        partition_index=result.partition,
        error_code=result.error,
        error_message=entities.sentence(result.message),
        leader_id=result.leader_id,
        leader_epoch=result.leader_epoch,
        high_watermark=result.high_watermark,
        current_voters=tuple(_replica(schema, each) for each in result.voters),
        observers=(),
    )


def _replica(schema: ModuleType, replica: QuorumReplica) -> Any:
    return entities.make(
        schema.ReplicaState,
        replica_id=replica.node_id,
        replica_directory_id=entities.uuid_of(replica.directory_id),
        log_end_offset=replica.log_end_offset,
        last_fetch_timestamp=replica.last_fetch_timestamp,
        last_caught_up_timestamp=replica.last_caught_up_timestamp,
    )


def _node(schema: ModuleType, node: QuorumNode) -> Any:
    listener = schema.Listener(name=node.listener, host=node.host, port=node.port)
    return schema.Node(node_id=node.node_id, listeners=(listener,))

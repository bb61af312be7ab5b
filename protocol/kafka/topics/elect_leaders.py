"""ElectLeaders (43), versions 0-2. From 1 on there is a type of election, and a code of the whole."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.topics.elect_leaders import (
    PREFERRED,
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopic,
    ElectLeadersTopicResult,
)

_API: Final = "elect_leaders"


def decode_request(version: int, body: memoryview) -> ElectLeadersRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    asked = request.topic_partitions
    topics = None if asked is None else [ElectLeadersTopic(each.topic, list(each.partitions)) for each in asked]
    return ElectLeadersRequest(getattr(request, "election_type", PREFERRED), topics)


def encode_response(version: int, response: ElectLeadersResponse) -> bytes:
    """A row for each partition."""
    schema = entities.response_schema(_API, version)
    results = tuple(
        schema.ReplicaElectionResult(
            topic=topic.name,
            partition_result=tuple(
                schema.PartitionResult(
                    partition_id=each.partition, error_code=each.error, error_message=entities.sentence(each.message)
                )
                for each in topic.partitions
            ),
        )
        for topic in response.topics
    )
    return entities.write(
        entities.make(
            schema.ElectLeadersResponse,
            throttle_time=entities.NO_THROTTLE,
            error_code=response.error,
            replica_election_results=results,
        )
    )


def encode_error(version: int, request: ElectLeadersRequest, code: ErrorCode, message: str) -> bytes:
    """The code of the whole, and for every partition that was named."""
    topics = [
        ElectLeadersTopicResult(
            topic.name, [ElectLeadersPartitionResult(each, code, message) for each in topic.partitions]
        )
        for topic in request.topics or ()
    ]
    return encode_response(version, ElectLeadersResponse(topics, code))

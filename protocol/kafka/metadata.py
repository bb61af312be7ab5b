"""Metadata (3), versions 0-13: see the handler of that name.

Version 0 asks for all topics by an empty list, 1+ by null. Topics are asked for by id from version 12 on (10 and 11
have the field, but a request that uses it, or leaves out the name, is INVALID_REQUEST). Whether a missing topic may be
created is asked from version 4 on; a client older than that has always wanted it.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse, PartitionMetadata, TopicMetadata

_API: Final = "metadata"
_TOPIC_IDS_FROM: Final = 12


def decode_request(version: int, body: memoryview) -> MetadataRequest:
    """Raises DecodeError; BrokerError INVALID_REQUEST for topic ids in a version that has only their field."""
    request = entities.read_request(_API, version, body)
    names: list[str] | None = None
    ids: list[bytes] | None = None
    if request.topics is not None and (request.topics or version > 0):
        found = [entities.id_bytes(each.topic_id) for each in request.topics if getattr(each, "topic_id", None)]
        if version < _TOPIC_IDS_FROM and (found or any(each.name is None for each in request.topics)):
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Metadata version {version} takes names, no ids")
        if found:
            ids = found
        else:
            names = [each.name or "" for each in request.topics]
    return MetadataRequest(
        topics=names,
        allow_auto_creation=getattr(request, "allow_auto_topic_creation", True),
        topic_ids=ids,
        include_topic_operations=getattr(request, "include_topic_authorized_operations", False),
        include_cluster_operations=getattr(request, "include_cluster_authorized_operations", False),
    )


def encode_response(version: int, response: MetadataResponse) -> bytes:
    """The body of an answer."""
    return _encode(version, response, ErrorCode.NONE)


def encode_error(version: int, request: MetadataRequest | None, code: ErrorCode, message: str) -> bytes:
    """The code for every topic that was named, and from version 13 on for the whole."""
    names = [] if request is None or request.topics is None else request.topics
    return _encode(version, MetadataResponse("", [], [TopicMetadata(name, code) for name in names]), code)


def _encode(version: int, response: MetadataResponse, code: ErrorCode) -> bytes:
    schema = entities.response_schema(_API, version)
    return entities.write(
        entities.make(
            schema.MetadataResponse,
            throttle_time=entities.NO_THROTTLE,
            brokers=tuple(
                schema.MetadataResponseBroker(node_id=each.node_id, host=each.host, port=each.port)
                for each in response.brokers
            ),
            cluster_id=response.cluster_id or None,
            controller_id=response.controller_id,
            topics=tuple(_topic(schema, version, each) for each in response.topics),
            cluster_authorized_operations=response.authorized_operations,
            error_code=code,
        )
    )


def _topic(schema: Any, version: int, topic: TopicMetadata) -> Any:
    return entities.make(
        schema.MetadataResponseTopic,
        error_code=topic.error,
        name=topic.name or (None if version >= _TOPIC_IDS_FROM else ""),
        topic_id=entities.uuid_of(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=tuple(_partition(schema, each) for each in topic.partitions),
        topic_authorized_operations=topic.authorized_operations,
    )


def _partition(schema: Any, partition: PartitionMetadata) -> Any:
    return entities.make(
        schema.MetadataResponsePartition,
        error_code=partition.error,
        partition_index=partition.partition,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        offline_replicas=partition.offline,
    )

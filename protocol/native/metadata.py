"""metadata (3): brokers, topics, leaders.

    request   topics [name] or nil = all; allow_auto_creation bool (default false)
    response  cluster_id str, brokers [[id, host, port]],
              topics [[error, name, topic_id, [[error, partition, leader, leader_epoch]]]]

`topic_id` is the text of the id, as Kafka's tools and files write it (22 characters).
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.nodes import BrokerAddress
from barnabas.protocol.messages.topics.metadata import (
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from barnabas.protocol.native.fields import INT32, array, boolean, error_code, field, integer, row, text
from barnabas.protocol.uuids import parse_uuid, uuid_text


def encode_request(request: MetadataRequest) -> dict[str, Any]:
    """The body of a request."""
    return {"topics": request.names, "allow_auto_creation": request.allow_auto_creation}


def decode_request(body: dict[str, Any]) -> MetadataRequest:
    """Raises DecodeError, naming the field."""
    topics = field(body, "topics", None)
    return MetadataRequest.of_names(
        None if topics is None else [text(name, "topics[]") for name in array(topics, "topics")],
        allow_auto_creation=boolean(field(body, "allow_auto_creation", False), "allow_auto_creation"),
    )


def encode_response(response: MetadataResponse) -> dict[str, Any]:
    """The body of an answer."""
    return {
        "cluster_id": response.cluster_id,
        "brokers": [[broker.node_id, broker.host, broker.port] for broker in response.brokers],
        "topics": [
            [
                int(topic.error),
                topic.name or "",
                uuid_text(topic.topic_id),
                [[int(p.error), p.partition, p.leader, p.leader_epoch] for p in topic.partitions],
            ]
            for topic in response.topics
        ],
    }


def decode_response(body: dict[str, Any]) -> MetadataResponse:
    """Raises DecodeError, naming the field."""
    return MetadataResponse(
        cluster_id=text(field(body, "cluster_id"), "cluster_id"),
        brokers=[_broker(entry) for entry in array(field(body, "brokers"), "brokers")],
        topics=[_topic(entry) for entry in array(field(body, "topics"), "topics")],
    )


def _broker(entry: Any) -> BrokerAddress:
    node_id, host, port = row(entry, "brokers[]", 3)
    return BrokerAddress(integer(node_id, "id", INT32), text(host, "host"), integer(port, "port", (0, 65535)))


def _topic(entry: Any) -> TopicMetadata:
    error, name, topic_id, partitions = row(entry, "topics[]", 4)
    return TopicMetadata(
        name=text(name, "name"),
        error=error_code(error, "error"),
        topic_id=parse_uuid(text(topic_id, "topic_id")),
        partitions=tuple(_partition(partition) for partition in array(partitions, "partitions")),
    )


def _partition(entry: Any) -> PartitionMetadata:
    error, partition, leader, leader_epoch = row(entry, "partitions[]", 4)
    return PartitionMetadata(
        partition=integer(partition, "partition", INT32),
        error=error_code(error, "error"),
        leader=integer(leader, "leader", INT32),
        leader_epoch=integer(leader_epoch, "leader_epoch", INT32),
    )

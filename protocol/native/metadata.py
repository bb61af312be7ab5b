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
from barnabas.protocol.native.fields import INT32, array, error_code, field, integer, row, text
from barnabas.protocol.uuids import parse_uuid


def encode_request(request: MetadataRequest) -> dict[str, Any]:
    """The body of a request."""
    return {"topics": request.names, "allow_auto_creation": request.allow_auto_creation}


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

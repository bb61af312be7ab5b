"""Metadata (key 3): brokers, topics and the leaders of their partitions."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.uuids import ZERO_UUID


@dataclass(slots=True)
class MetadataRequest:
    """`topics`: names, or None for all of them. `allow_auto_creation`: create what is missing where the broker may."""

    topics: list[str] | None
    allow_auto_creation: bool = False


@dataclass(slots=True)
class BrokerAddress:
    """Where clients of the listener that was asked reach a broker."""

    node_id: int
    host: str
    port: int


@dataclass(slots=True)
class PartitionMetadata:
    """`leader` is a node id, -1 without one."""

    partition: int
    error: ErrorCode
    leader: int
    leader_epoch: int


@dataclass(slots=True)
class TopicMetadata:
    """`topic_id` is 16 bytes, zeros where the topic is unknown."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionMetadata, ...] = ()


@dataclass(slots=True)
class MetadataResponse:
    """`cluster_id` is the text of an id."""

    cluster_id: str
    brokers: list[BrokerAddress]
    topics: list[TopicMetadata]

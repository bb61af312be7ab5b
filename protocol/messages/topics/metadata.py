"""Metadata (key 3): brokers, topics and the leaders of their partitions."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.authorized_operations import NOT_ASKED
from barnabas.protocol.uuids import ZERO_UUID


@dataclass(slots=True)
class MetadataRequest:
    """`topics`: names, or None for all of them. `allow_auto_creation`: create what is missing where the broker may.

    `topic_ids` (16 bytes each) ask for topics by their ids instead. The `include` fields ask what the client may do.
    """

    topics: list[str] | None
    allow_auto_creation: bool = False
    topic_ids: list[bytes] | None = None
    include_topic_operations: bool = False
    include_cluster_operations: bool = False


@dataclass(slots=True)
class BrokerAddress:
    """Where clients of the listener that was asked reach a broker."""

    node_id: int
    host: str
    port: int


@dataclass(slots=True)
class PartitionMetadata:
    """`leader` is a node id, -1 without one; the others are node ids too: `offline` those without the log at hand."""

    partition: int
    error: ErrorCode
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()


@dataclass(slots=True)
class TopicMetadata:
    """`topic_id` is 16 bytes, zeros where the topic is unknown; `name` is empty where an unknown id was asked for."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionMetadata, ...] = ()
    is_internal: bool = False
    authorized_operations: int = NOT_ASKED


@dataclass(slots=True)
class MetadataResponse:
    """`cluster_id` is the text of an id, `controller_id` one of the brokers'."""

    cluster_id: str
    brokers: list[BrokerAddress]
    topics: list[TopicMetadata]
    controller_id: int = -1
    authorized_operations: int = NOT_ASKED

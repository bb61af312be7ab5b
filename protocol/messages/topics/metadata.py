"""Metadata (key 3): brokers, topics and the leaders of their partitions."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.authorized_operations import NOT_ASKED
from barnabas.protocol.messages.message import Message
from barnabas.protocol.uuids import ZERO_UUID


@dataclass(slots=True, eq=False, repr=False)
class MetadataRequest(Message):
    """`topics`: names, or None for all. `allow_auto_creation`: create missing topics if the broker allows it.

    `topic_ids` (16 bytes each) name topics by their ids instead. The `include` fields request authorized operations.
    `refusal`: why the request is refused as a whole.
    """

    topics: list[str] | None
    allow_auto_creation: bool = False
    topic_ids: list[bytes] | None = None
    include_topic_operations: bool = False
    include_cluster_operations: bool = False
    refusal: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class BrokerAddress(Message):
    """A broker's address for clients of the listener that received the request."""

    node_id: int
    host: str
    port: int


@dataclass(slots=True, eq=False, repr=False)
class PartitionMetadata(Message):
    """`leader` is a node id, -1 without a leader; `offline` are the node ids of offline replicas."""

    partition: int
    error: ErrorCode
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class TopicMetadata(Message):
    """`topic_id` is 16 bytes, zeros for an unknown topic; `name` is empty for an unknown id."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    topic_id: bytes = ZERO_UUID
    partitions: tuple[PartitionMetadata, ...] = ()
    is_internal: bool = False
    authorized_operations: int = NOT_ASKED


@dataclass(slots=True, eq=False, repr=False)
class MetadataResponse(Message):
    """`cluster_id` is the text of an id, `controller_id` one of the brokers'."""

    cluster_id: str
    brokers: list[BrokerAddress]
    topics: list[TopicMetadata]
    controller_id: int = -1
    authorized_operations: int = NOT_ASKED

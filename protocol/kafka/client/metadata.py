"""Metadata (3), versions 4-13: brokers, topics, and the leaders of their partitions.

Version 4 is the first in which a request can leave missing topics uncreated. Topic ids are there from 10 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT32,
    NULLABLE_STRING,
    STRING,
    UUID,
    Array,
    Computed,
    Constant,
    Message,
    Sized,
    Struct,
    Versions,
    rows,
    since,
)
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.topics.metadata import BrokerAddress, PartitionMetadata, TopicMetadata
from barnabas.protocol.uuids import ZERO_UUID

_NODES: Final = Array(INT32, make=tuple)


class MetadataQuery(NamedTuple):
    """Names of topics; None for all, none of them for the brokers alone. Missing topics are not created."""

    topics: Sequence[str] | None


class ClusterMetadata(NamedTuple):
    """Answer. `error` is that of the whole request."""

    error: ErrorCode
    cluster_id: str | None
    controller_id: int
    brokers: Sequence[BrokerAddress]
    topics: Sequence[TopicMetadata]


def _cluster(
    brokers: list[BrokerAddress],
    cluster_id: str | None,
    controller_id: int,
    topics: list[TopicMetadata],
    error: ErrorCode = ErrorCode.NONE,
) -> ClusterMetadata:
    return ClusterMetadata(error, cluster_id, controller_id, brokers, topics)


def _topic(
    error: ErrorCode,
    name: str | None,
    is_internal: bool,
    partitions: tuple[PartitionMetadata, ...],
    topic_id: bytes = ZERO_UUID,
) -> TopicMetadata:
    return TopicMetadata(name or "", error, topic_id, partitions, is_internal)


def _partition(
    error: ErrorCode,
    partition: int,
    leader: int,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    leader_epoch: int = -1,
    offline: tuple[int, ...] = (),
) -> PartitionMetadata:
    return PartitionMetadata(partition, error, leader, leader_epoch, replicas, isr, offline)


_PARTITION: Final = Struct(
    _partition,
    error=ERROR,
    partition=INT32,
    leader=INT32,
    leader_epoch=since(7, INT32),
    replicas=_NODES,
    isr=_NODES,
    offline=since(5, _NODES),
)
METADATA: Final = ClientApi(
    ApiKey.METADATA,
    4,
    13,
    Message(
        9,
        topics=Array(
            Struct(
                topic_id=since(10, Constant(UUID, ZERO_UUID)),
                name=Computed(Sized("string", nullable_from=10), lambda name: name),
            ),
            nullable_from=1,
        ),
        allow_auto_creation=Constant(BOOL, False),
        include_cluster_operations=Versions(Constant(BOOL, False), 8, 10),
        include_topic_operations=since(8, Constant(BOOL, False)),
    ),
    Message(
        9,
        _cluster,
        _throttle_ms=INT32,
        brokers=rows(BrokerAddress, node_id=INT32, host=STRING, port=INT32, _rack=NULLABLE_STRING),
        cluster_id=NULLABLE_STRING,
        controller_id=INT32,
        topics=rows(
            _topic,
            error=ERROR,
            name=Sized("string", nullable_from=12),
            topic_id=since(10, UUID),
            is_internal=BOOL,
            partitions=Array(_PARTITION, make=tuple),
            _operations=since(8, INT32),
        ),
        _cluster_operations=Versions(INT32, 8, 10),
        error=since(13, ERROR),
    ),
)

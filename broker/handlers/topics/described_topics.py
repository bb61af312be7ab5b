"""Topics and partitions as described by Metadata and DescribeTopicPartitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics.metadata import PartitionMetadata, TopicMetadata
from barnabas.protocol.metadata.partition_state import NO_LEADER
from barnabas.protocol.topic_name import is_internal, topic_name_fault

if TYPE_CHECKING:
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.protocol.metadata.partition_state import PartitionState


def unknown_topic(name: str) -> TopicMetadata:
    """Describe a missing topic: UNKNOWN_TOPIC_OR_PARTITION, or INVALID_TOPIC_EXCEPTION for an illegal name."""
    is_legal = topic_name_fault(name) is None
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION
    return TopicMetadata(name=name, error=error, is_internal=is_internal(name))


def describe_partition(
    partitions: PartitionRegistry, topic: str, number: int, state: PartitionState, *, node_id: int
) -> PartitionMetadata:
    """Describe a partition. As in Kafka, the only replica cannot lead while its log directory is offline.

    A partition whose log is being created has its leader already: LEADER_NOT_AVAILABLE for one of the fifty partitions
    of an internal topic would make clients such as kafkajs refresh all their metadata.
    """
    is_online = not partitions.is_offline(topic, number)
    return PartitionMetadata(
        error=ErrorCode.NONE if is_online and state.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        partition=number,
        leader=state.leader if is_online else NO_LEADER,
        leader_epoch=state.leader_epoch,
        replicas=state.replicas,
        isr=state.isr,
        offline=() if is_online or node_id not in state.replicas else (node_id,),
    )

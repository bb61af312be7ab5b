"""Records that assign a partition to a log directory, in the `directories` of its state.

A PartitionChange with one directory id per replica and no new leader epoch, as Kafka's controller writes it after
AssignReplicasToDirs. Source: Kafka ReplicationControlManager.handleAssignReplicasToDirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.plan import Plan
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.metadata.partition_state import PartitionDelta
from barnabas.protocol.metadata.records import MetadataRecord, PartitionChangeRecord
from barnabas.protocol.topic_partition import TopicPartition


def plan_assignment(
    image: MetadataImage, topic_partition: TopicPartition, topic_id: bytes | None, directory_id: bytes
) -> Plan[None]:
    """Plan the assignment; no record if it holds already. Raises BrokerError if the partition does not exist."""
    topic = image.topics.get(topic_partition.topic)
    state = None if topic is None else topic.partitions.get(topic_partition.partition)
    if topic is None or state is None or topic.topic_id != topic_id:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {topic_partition} does not exist any more")
    return Plan([], _records(topic.topic_id, topic_partition.partition, state.directories, directory_id))


def plan_found_assignments(image: MetadataImage, found: Mapping[TopicPartition, bytes]) -> Plan[TopicPartition]:
    """Plan the assignments of logs found in another directory than the image has: a crash interrupted a move."""
    moved: list[TopicPartition] = []
    records: list[MetadataRecord] = []
    for topic_partition, directory_id in found.items():
        state = image.partition(*topic_partition)
        if state is not None:
            topic_id = image.topics[topic_partition.topic].topic_id
            change = _records(topic_id, topic_partition.partition, state.directories, directory_id)
            records += change
            moved += [topic_partition] * len(change)
    return Plan(moved, records)


def _records(
    topic_id: bytes, partition: int, directories: Iterable[bytes], directory_id: bytes
) -> list[MetadataRecord]:
    if tuple(directories) == (directory_id,):
        return []
    return [PartitionChangeRecord(partition, topic_id, PartitionDelta(directories=(directory_id,)))]

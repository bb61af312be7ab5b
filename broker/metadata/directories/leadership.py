"""The records that make this node the leader of its partitions when the directory opens.

Kafka's clean stop leaves its partitions without a leader (-1); after an unclean stop, ours or Kafka's, records that
were not yet on disk may be lost. In both cases each partition gets this node as its leader with the next leader epoch,
so that no epoch ever has two different sequences of records.
"""

from __future__ import annotations

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.image import MetadataImage, TopicImage
from barnabas.protocol.metadata.partition_state import PartitionDelta, PartitionState
from barnabas.protocol.metadata.records import MetadataRecord, PartitionChangeRecord


def ensure_single_node(image: MetadataImage, node_id: int, source: str) -> None:
    """Raise MetadataError if a partition has replicas on other nodes: this one may be incomplete."""
    for topic in image.topics.values():
        for number, state in topic.partitions.items():
            if state.replicas != (node_id,):
                raise MetadataError(
                    f"{source} belongs to a cluster of several brokers: partition {topic.name}-{number} has replicas "
                    f"{list(state.replicas)} and this is node {node_id}; reassign every partition to node {node_id} "
                    "alone before it is opened here"
                )


def leadership_records(image: MetadataImage, node_id: int, *, raise_epochs: bool) -> list[MetadataRecord]:
    """Return changes for the partitions that this node does not lead, or for all with `raise_epochs`."""
    records: list[MetadataRecord] = []
    for topic in image.topics.values():
        records.extend(_records_of(topic, node_id, raise_epochs))
    return records


def _records_of(topic: TopicImage, node_id: int, raise_epochs: bool) -> list[MetadataRecord]:
    return [
        PartitionChangeRecord(number, topic.topic_id, _lead(state, node_id))
        for number, state in topic.partitions.items()
        if raise_epochs or state.leader != node_id or node_id not in state.isr
    ]


def _lead(state: PartitionState, node_id: int) -> PartitionDelta:
    return PartitionDelta(
        leader=node_id,
        isr=None if state.isr == (node_id,) else (node_id,),
        leader_recovery_state=0 if state.leader_recovery_state else -1,
        eligible_leaders=() if state.eligible_leaders else None,
        last_known_eligible=() if state.last_known_eligible else None,
    )

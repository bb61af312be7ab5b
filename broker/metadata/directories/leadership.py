"""The records that make this node the leader of its partitions when the directory opens.

Kafka's clean stop leaves its partitions without a leader (-1); after an unclean stop, ours or Kafka's, records that
were not yet on disk may be lost. In both cases each partition gets this node as its leader with the next leader epoch,
so that no epoch ever has two different sequences of records. A standby that takes over begins an epoch far above: the
lost broker may be started again by mistake, and raise its epochs one by one.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.image import MetadataImage
from barnabas.protocol.metadata.partition_state import PartitionDelta, PartitionState
from barnabas.protocol.metadata.records import MetadataRecord, PartitionChangeRecord, PartitionRecord

TAKEOVER_EPOCHS: Final = 1024
"""How many leader epochs a takeover leaves to the broker that it replaces: two million takeovers fit."""

MAX_EPOCH: Final = 2**31 - 1


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


def leadership_records(
    image: MetadataImage, node_id: int, *, raise_epochs: bool, takes_over: bool = False
) -> list[MetadataRecord]:
    """Return changes for the partitions that this node does not lead; for all with `raise_epochs` or `takes_over`."""
    records: list[MetadataRecord] = []
    for topic in image.topics.values():
        for number, state in topic.partitions.items():
            if takes_over:
                # It replaces the state, in Kafka as well; a PartitionChangeRecord could only raise the epoch by one.
                records.append(PartitionRecord(number, topic.topic_id, _taken_over(state, node_id)))
            elif raise_epochs or state.leader != node_id or node_id not in state.isr:
                records.append(PartitionChangeRecord(number, topic.topic_id, _lead(state, node_id)))
    return records


def _taken_over(state: PartitionState, node_id: int) -> PartitionState:
    taken = state.changed_by(_lead(state, node_id))
    return taken._replace(leader_epoch=min(state.leader_epoch + TAKEOVER_EPOCHS, MAX_EPOCH))


def _lead(state: PartitionState, node_id: int) -> PartitionDelta:
    return PartitionDelta(
        leader=node_id,
        isr=None if state.isr == (node_id,) else (node_id,),
        leader_recovery_state=0 if state.leader_recovery_state else -1,
        eligible_leaders=() if state.eligible_leaders else None,
        last_known_eligible=() if state.last_known_eligible else None,
    )

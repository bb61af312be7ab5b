"""One member of a consumer group, as the group's records describe it: a value that every change replaces.

    Stable                  it has its target, or has not been told of a newer one
    UnrevokedPartitions     it has to give up partitions before it may enter the next epoch
    UnreleasedPartitions    it is in the target's epoch, and waits for partitions that other members still own

Source: Kafka's ConsumerGroupMember, MemberState.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from barnabas.protocol.groups.consumer_group_values import (
    NO_CLASSIC,
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    PartitionEpochs,
    held_rows,
)


class MemberState(IntEnum):
    """An int8 in the records. UNKNOWN stands for a state of a newer Kafka."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def of(cls, value: int) -> MemberState:
        """Return the state of a record's value."""
        return cls(value) if value in cls._value2member_map_ else cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    """One member. `topic_regex` is empty if it has none. `classic` is None unless it uses the classic protocol."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    assignor: str | None = None
    state: MemberState = MemberState.STABLE
    assigned: PartitionEpochs = field(default_factory=dict)
    pending_revocation: PartitionEpochs = field(default_factory=dict)
    classic: ClassicMemberMetadata | None = None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether it has all of its target of that epoch."""
        return self.state == MemberState.STABLE and self.member_epoch == assignment_epoch

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """Return the epoch in which it was assigned a partition; None if it does not have the partition."""
        for topics in (self.assigned, self.pending_revocation):
            epoch = topics.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerGroupMember:
        """Return the member with this metadata."""
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
            topic_regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=None if value.classic_member_metadata == NO_CLASSIC else value.classic_member_metadata,
        )

    def with_current(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerGroupMember:
        """Return the member with this current assignment."""
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            assigned=value.epochs_of(value.assigned_partitions),
            pending_revocation=value.epochs_of(value.partitions_pending_revocation),
        )

    def metadata_record(self) -> ConsumerGroupMemberMetadataValue:
        """Return its metadata as a record's value."""
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=tuple(sorted(self.topic_names)),
            subscribed_topic_regex=self.topic_regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.assignor,
            classic_member_metadata=self.classic,
        )

    def current_record(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        """Return its current assignment as a record's value."""
        return ConsumerGroupCurrentMemberAssignmentValue(
            self.member_epoch,
            self.previous_member_epoch,
            int(self.state),
            held_rows(self.assigned),
            held_rows(self.pending_revocation),
        )


def without_epochs(topics: PartitionEpochs) -> Mapping[bytes, frozenset[int]]:
    """Return the partitions without their epochs."""
    return {topic_id: frozenset(epochs) for topic_id, epochs in topics.items()}

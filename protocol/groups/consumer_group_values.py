"""Values of the records of consumer groups (KIP-848).

A member of the consumer protocol has a null as its classic metadata, because Kafka takes a member without that tag for
a classic member without protocols. Unknown tags are skipped. Source: Kafka's messages of these names,
GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final, Self, TypeAlias

from barnabas.protocol.groups.keys import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from barnabas.protocol.wire.fields import tagged
from barnabas.protocol.wire.records import RecordValue
from barnabas.protocol.wire.structures import Struct
from barnabas.protocol.wire.types import Bytes, Int8, Int32, Int64, Nullable, NullableString, String, Uuid

Partitions: TypeAlias = Mapping[bytes, frozenset[int]]
"""By topic id."""

PartitionEpochs: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""By topic id and partition: the member epoch in which it was assigned."""


class TopicPartitions(Struct, frozen=True, kw_only=False):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: tuple[Int32, ...]


class HeldPartitions(TopicPartitions, frozen=True, kw_only=False):
    """Partitions of one topic that a member has. `assignment_epochs`: of each; none from Kafka before 4.2."""

    assignment_epochs: Annotated[tuple[Int32, ...] | None, Nullable()] = tagged(0, default=())


class ClassicProtocol(Struct, frozen=True, kw_only=False):
    """An assignor of a member, with what it sent for it."""

    name: String
    metadata: Bytes


class ClassicMemberMetadata(Struct, frozen=True, kw_only=False):
    """Data of a member that uses the classic protocol: its protocols, in the order of its preference."""

    session_timeout_ms: Int32
    supported_protocols: tuple[ClassicProtocol, ...]

    @property
    def names(self) -> list[str]:
        """The names of its assignors."""
        return [each.name for each in self.supported_protocols]

    def metadata_of(self, name: str) -> bytes:
        """Return what it sent for an assignor. Of a repeated name the last counts."""
        return {each.name: each.metadata for each in self.supported_protocols}[name]


NO_CLASSIC: Final = ClassicMemberMetadata(0, ())
"""What a record without the tag has in Kafka, which never writes that."""


class PartitionMetadata(Struct, frozen=True):
    """Racks of a partition's replicas."""

    partition: Int32
    racks: tuple[String, ...]


class TopicMetadata(Struct, frozen=True):
    """The number of partitions of a topic."""

    topic_id: Uuid
    topic_name: String
    num_partitions: Int32
    partition_metadata: tuple[PartitionMetadata, ...]


class ConsumerGroupMetadataValue(RecordValue, flexible=0, frozen=True, kw_only=False):
    """`epoch` grows with every change that needs a new assignment. `metadata_hash`: of the group's topics, signed."""

    epoch: Int32
    metadata_hash: Int64 = tagged(0, default=0)


class ConsumerGroupPartitionMetadataValue(RecordValue, flexible=0, frozen=True):
    """The partition counts of topics, from Kafka before 4.1. It is never written."""

    topics: tuple[TopicMetadata, ...]


class ConsumerGroupMemberMetadataValue(RecordValue, flexible=0, frozen=True):
    """A member's metadata, with sorted topics."""

    instance_id: NullableString
    rack_id: NullableString
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[String, ...]
    subscribed_topic_regex: NullableString
    rebalance_timeout_ms: Int32
    server_assignor: NullableString
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, Nullable()] = tagged(0, default=NO_CLASSIC)


class ConsumerGroupTargetAssignmentMetadataValue(RecordValue, flexible=0, frozen=True, kw_only=False):
    """The group epoch of the target assignment, and when it was computed, in ms of wall time."""

    assignment_epoch: Int32
    assignment_timestamp: Int64 = tagged(0, default=0)


class ConsumerGroupTargetAssignmentMemberValue(RecordValue, flexible=0, frozen=True, kw_only=False):
    """A member's target assignment."""

    topic_partitions: tuple[TopicPartitions, ...]

    @classmethod
    def of(cls, partitions: Partitions) -> Self:
        """Return the value of partitions by topic."""
        return cls(rows_of(partitions))

    @property
    def partitions(self) -> Partitions:
        """The partitions by topic."""
        return partitions_of(self.topic_partitions)


class ConsumerGroupCurrentMemberAssignmentValue(RecordValue, flexible=0, frozen=True, kw_only=False):
    """A member's current assignment. `state`: 0 stable, 1 has partitions to revoke, 2 waits for others' partitions."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[HeldPartitions, ...]
    partitions_pending_revocation: tuple[HeldPartitions, ...]

    def epochs_of(self, rows: Iterable[HeldPartitions]) -> PartitionEpochs:
        """Return the epochs of its partitions. Those without epochs (Kafka before 4.2) get the member epoch."""
        default = max(self.member_epoch, 0)  # a static member that left for a while has epoch -2
        found = {}
        for each in rows:
            epochs = each.assignment_epochs
            if epochs is None or len(epochs) != len(each.partitions):
                epochs = (default,) * len(each.partitions)
            found[each.topic_id] = dict(zip(each.partitions, epochs, strict=True))
        return found


class ConsumerGroupRegularExpressionValue(RecordValue, flexible=0, frozen=True, kw_only=False):
    """The matching topics, at the metadata offset `version` and the time `timestamp` in ms."""

    topics: tuple[String, ...]
    version: Int64
    timestamp: Int64


ConsumerGroupValue: TypeAlias = (
    ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
)

VALUES: Final[dict[type[ConsumerGroupKey], type[ConsumerGroupValue]]] = {
    ConsumerGroupMetadataKey: ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey: ConsumerGroupPartitionMetadataValue,
    ConsumerGroupMemberMetadataKey: ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey: ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey: ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerGroupCurrentMemberAssignmentKey: ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupRegularExpressionKey: ConsumerGroupRegularExpressionValue,
}
"""The value of each key, in the order in which a start replays the records of a group.

A member's current assignment follows the member and sets its epoch.
"""


def rows_of(partitions: Partitions) -> tuple[TopicPartitions, ...]:
    """Return partitions by topic as a record has them."""
    return tuple([TopicPartitions(topic_id, tuple(sorted(numbers))) for topic_id, numbers in partitions.items()])


def partitions_of(rows: Iterable[TopicPartitions]) -> Partitions:
    """Return the partitions of a record by topic."""
    return {each.topic_id: frozenset(each.partitions) for each in rows}


def held_rows(topics: PartitionEpochs) -> tuple[HeldPartitions, ...]:
    """Return partitions and their epochs as a record has them."""
    return tuple(
        [
            HeldPartitions(topic_id, tuple(numbers := sorted(epochs)), tuple([epochs[number] for number in numbers]))
            for topic_id, epochs in topics.items()
        ]
    )

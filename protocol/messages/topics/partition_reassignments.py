"""AlterPartitionReassignments (45): put partitions on other nodes, or cancel that. ListPartitionReassignments (46)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Int32, Message, Nullable, String


class ReassignedPartitionResult(Struct):
    """One partition's result."""

    partition: Int32
    error: Error
    message: Message = None


class ReassignedTopicResult(Struct):
    """Results of one topic."""

    name: String
    partitions: Sequence[ReassignedPartitionResult]


class AlterPartitionReassignmentsResponse(Struct, flexible=0):
    """In the order of the request; `error` is that of the whole request, and `allows_other_factor` is repeated."""

    throttle_ms: Int32 = 0
    allows_other_factor: Bool = since(1, default=True)
    error: Error = ErrorCode.NONE
    message: Message = None
    topics: Sequence[ReassignedTopicResult]


class ReassignedPartition(Struct):
    """The replicas that one partition shall have; None: cancel its reassignment."""

    partition: Int32
    replicas: Annotated[tuple[Int32, ...] | None, Nullable()]


class ReassignedTopic(Struct):
    """Partitions of one topic."""

    name: String
    partitions: Sequence[ReassignedPartition]


class AlterPartitionReassignmentsRequest(
    Request[AlterPartitionReassignmentsResponse], api=ApiKey.ALTER_PARTITION_REASSIGNMENTS, flexible=0
):
    """`allows_other_factor`: whether a partition may get more or fewer replicas than it has (KIP-860)."""

    timeout_ms: Int32 = 60_000
    allows_other_factor: Bool = since(1, default=True)
    topics: Sequence[ReassignedTopic]

    def refused(self, code: ErrorCode, message: str) -> AlterPartitionReassignmentsResponse:
        """The code for the whole request, and for every partition that it names."""
        topics = [
            ReassignedTopicResult(
                name=topic.name,
                partitions=[
                    ReassignedPartitionResult(partition=each.partition, error=code, message=message)
                    for each in topic.partitions
                ],
            )
            for topic in self.topics
        ]
        return AlterPartitionReassignmentsResponse(
            allows_other_factor=self.allows_other_factor, error=code, message=message, topics=topics
        )


class OngoingPartitionReassignment(Struct):
    """A partition that moves between nodes."""

    partition: Int32
    replicas: tuple[Int32, ...]
    adding: tuple[Int32, ...]
    removing: tuple[Int32, ...]


class OngoingTopicReassignment(Struct):
    """Partitions of one topic."""

    name: String
    partitions: Sequence[OngoingPartitionReassignment]


class ListPartitionReassignmentsResponse(Struct, flexible=0):
    """Partitions that move between nodes; a single node has none."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    topics: Sequence[OngoingTopicReassignment] = ()


class ListedPartitions(Struct):
    """Partitions of one topic."""

    name: String
    partitions: Sequence[Int32]


class ListPartitionReassignmentsRequest(
    Request[ListPartitionReassignmentsResponse], api=ApiKey.LIST_PARTITION_REASSIGNMENTS, flexible=0
):
    """`topics` None: all partitions."""

    timeout_ms: Int32 = 60_000
    topics: Annotated[Sequence[ListedPartitions] | None, Nullable()] = None

    def refused(self, code: ErrorCode, message: str) -> ListPartitionReassignmentsResponse:
        """The refusal alone."""
        return ListPartitionReassignmentsResponse(error=code, message=message)

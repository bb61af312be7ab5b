"""DescribeTopicPartitions (key 75): topics with their partitions, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.authorized_operations import NOT_ASKED
from barnabas.protocol.uuids import ZERO_UUID
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Int32, Nullable, NullableString, String, Uuid

NullableNodes = Annotated[tuple[Int32, ...] | None, Nullable()]


class Cursor(Struct):
    """The start of a page: a topic and a partition."""

    topic: String
    partition: Int32


class DescribedPartition(Struct):
    """As PartitionMetadata. Eligible leader replicas are not kept."""

    error: Error = ErrorCode.NONE
    partition: Int32
    leader: Int32
    leader_epoch: Int32 = -1
    replicas: tuple[Int32, ...] = ()
    isr: tuple[Int32, ...] = ()
    eligible_leader_replicas: NullableNodes = ()
    last_known_eligible_leader_replicas: NullableNodes = ()
    offline: tuple[Int32, ...] = ()


class DescribedTopic(Struct):
    """As TopicMetadata."""

    error: Error = ErrorCode.NONE
    name: NullableString
    topic_id: Uuid = ZERO_UUID
    is_internal: Bool = False
    partitions: Sequence[DescribedPartition] = ()
    authorized_operations: Int32 = NOT_ASKED


class DescribeTopicPartitionsResponse(Struct, flexible=0):
    """Topics by name. `next_cursor` None: this was the last page."""

    throttle_ms: Int32 = 0
    topics: Sequence[DescribedTopic]
    next_cursor: Annotated[Cursor | None, Nullable()] = None


class TopicToDescribe(Struct):
    """A topic."""

    name: String


class DescribeTopicPartitionsRequest(
    Request[DescribeTopicPartitionsResponse], api=ApiKey.DESCRIBE_TOPIC_PARTITIONS, flexible=0
):
    """No `topics` means all. A page has at most `partition_limit` partitions and starts at `cursor`."""

    topics: Sequence[TopicToDescribe]
    partition_limit: Int32 = 2000
    cursor: Annotated[Cursor | None, Nullable()] = None

    @property
    def names(self) -> list[str]:
        """The names of the topics."""
        return [each.name for each in self.topics]

    def refused(self, code: ErrorCode, message: str) -> DescribeTopicPartitionsResponse:
        """The same refusal for every topic: the answer has no field for an error as a whole."""
        return DescribeTopicPartitionsResponse(topics=[DescribedTopic(name=name, error=code) for name in self.names])

"""The APIs of share partitions' states (keys 83 to 87), by which brokers talk to the share coordinator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.share.state_records import StateBatch
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Answer, Request, Struct
from barnabas.protocol.wire.types import Error, Int32, Int64, Message, String, Uuid


class PartitionResult(Struct):
    """The answer for one partition."""

    partition: Int32
    error: Error = ErrorCode.NONE
    message: Message = None


class TopicResult(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: Sequence[PartitionResult]


class GroupStateRequest(Request[Answer], flexible=0):
    """What the requests of these APIs have in common. `topic_result` and `partition_result` are in the answer."""

    group_id: String
    topics: Sequence[Any]
    topic_result: ClassVar[Any] = TopicResult
    partition_result: ClassVar[Any] = PartitionResult

    def answer_of(self, topics: Sequence[Any]) -> Struct:
        """Return the answer with these results."""
        answer_type: Any = self.answer_type
        return cast(Struct, answer_type(topics=topics))

    def refused(self, code: ErrorCode, message: str) -> Struct:
        """The same refusal for every partition."""
        topics = []
        for topic in self.topics:
            rows = [
                self.partition_result(partition=each.partition, error=code, message=message)
                for each in topic.partitions
            ]
            topics.append(self.topic_result(topic_id=topic.topic_id, partitions=rows))
        return self.answer_of(topics)


class InitializeShareGroupStateResponse(Struct, flexible=0):
    """In the order of the request."""

    topics: Sequence[TopicResult]


class InitializedPartition(Struct):
    """A state to begin."""

    partition: Int32
    state_epoch: Int32
    start_offset: Int64


class InitializedTopic(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: Sequence[InitializedPartition]


class InitializeShareGroupStateRequest(
    GroupStateRequest[InitializeShareGroupStateResponse], api=ApiKey.INITIALIZE_SHARE_GROUP_STATE, flexible=0
):
    """States to begin."""

    topics: Sequence[InitializedTopic]


class PartitionState(Struct):
    """A state, or why there is none."""

    partition: Int32
    error: Error = ErrorCode.NONE
    message: Message = None
    state_epoch: Int32 = 0
    start_offset: Int64 = 0
    state_batches: Sequence[StateBatch] = ()


class TopicState(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: Sequence[PartitionState]


class ReadShareGroupStateResponse(Struct, flexible=0):
    """In the order of the request."""

    topics: Sequence[TopicState]


class ReadPartition(Struct):
    """A state to read, by a leader of that epoch."""

    partition: Int32
    leader_epoch: Int32


class ReadTopic(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: Sequence[ReadPartition]


class ReadShareGroupStateRequest(
    GroupStateRequest[ReadShareGroupStateResponse], api=ApiKey.READ_SHARE_GROUP_STATE, flexible=0
):
    """States to read."""

    topics: Sequence[ReadTopic]
    topic_result = TopicState
    partition_result = PartitionState


class WriteShareGroupStateResponse(Struct, flexible=0):
    """In the order of the request."""

    topics: Sequence[TopicResult]


class WrittenPartition(Struct):
    """A change of a state."""

    partition: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = since(1, default=-1)
    state_batches: Sequence[StateBatch]


class WrittenTopic(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: Sequence[WrittenPartition]


class WriteShareGroupStateRequest(
    GroupStateRequest[WriteShareGroupStateResponse], api=ApiKey.WRITE_SHARE_GROUP_STATE, flexible=0
):
    """Changes of states. Version 1 adds the count of completed deliveries."""

    topics: Sequence[WrittenTopic]


class DeleteShareGroupStateResponse(Struct, flexible=0):
    """In the order of the request."""

    topics: Sequence[TopicResult]


class DeletedPartition(Struct):
    """A state to delete."""

    partition: Int32


class DeletedTopic(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: Sequence[DeletedPartition]


class DeleteShareGroupStateRequest(
    GroupStateRequest[DeleteShareGroupStateResponse], api=ApiKey.DELETE_SHARE_GROUP_STATE, flexible=0
):
    """States to delete."""

    topics: Sequence[DeletedTopic]


class PartitionSummary(Struct):
    """A state without its batches, or why there is none."""

    partition: Int32
    error: Error = ErrorCode.NONE
    message: Message = None
    state_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    delivery_complete_count: Int32 = since(1, default=-1)


class TopicSummary(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: Sequence[PartitionSummary]


class ReadShareGroupStateSummaryResponse(Struct, flexible=0):
    """In the order of the request."""

    topics: Sequence[TopicSummary]


class ReadShareGroupStateSummaryRequest(
    GroupStateRequest[ReadShareGroupStateSummaryResponse], api=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, flexible=0
):
    """States to summarize. Version 1 adds the count of completed deliveries."""

    topics: Sequence[ReadTopic]
    topic_result = TopicSummary
    partition_result = PartitionSummary

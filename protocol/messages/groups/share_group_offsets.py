"""DescribeShareGroupOffsets (key 90), AlterShareGroupOffsets (91) and DeleteShareGroupOffsets (92).

The offset of a share partition is where its group begins: records below it are done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.uuids import ZERO_UUID
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int32, Int64, Message, Nullable, String, Uuid

NO_OFFSET: Final = -1
"""Start offset and lag of a share partition from which nothing was delivered."""


class DescribedOffset(Struct):
    """`lag`: records between the start offset and the end of the partition that are not done."""

    partition: Int32
    start_offset: Int64 = NO_OFFSET
    leader_epoch: Int32 = 0
    lag: Int64 = since(1, default=NO_OFFSET)
    error: Error = ErrorCode.NONE
    message: Message = None


class DescribedTopicOffsets(Struct):
    """The partitions of one topic."""

    topic: String
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[DescribedOffset]


class DescribedGroupOffsets(Struct):
    """The topics of one group, or why there are none."""

    group_id: String
    topics: Sequence[DescribedTopicOffsets] = ()
    error: Error = ErrorCode.NONE
    message: Message = None


class DescribeShareGroupOffsetsResponse(Struct, flexible=0):
    """In the order of the request."""

    throttle_ms: Int32 = 0
    groups: Sequence[DescribedGroupOffsets]


class NamedPartitions(Struct):
    """Partitions of one topic."""

    topic: String
    partitions: Sequence[Int32]


class GroupToDescribe(Struct):
    """`topics` None: all partitions with state."""

    group_id: String
    topics: Annotated[Sequence[NamedPartitions] | None, Nullable()]


class DescribeShareGroupOffsetsRequest(
    Request[DescribeShareGroupOffsetsResponse], api=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, flexible=0
):
    """Groups."""

    groups: Sequence[GroupToDescribe]

    def refused(self, code: ErrorCode, message: str) -> DescribeShareGroupOffsetsResponse:
        """The same refusal for every group."""
        return DescribeShareGroupOffsetsResponse(
            groups=[DescribedGroupOffsets(group_id=each.group_id, error=code, message=message) for each in self.groups]
        )


class AlteredPartition(Struct):
    """The result for one partition."""

    partition: Int32
    error: Error = ErrorCode.NONE
    message: Message = None


class AlteredTopic(Struct):
    """The results for one topic."""

    topic: String
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[AlteredPartition]


class AlterShareGroupOffsetsResponse(Struct, flexible=0):
    """The error of the whole request, or the results."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    topics: Sequence[AlteredTopic] = ()


class NewOffset(Struct):
    """Where the group is to begin in a partition."""

    partition: Int32
    start_offset: Int64


class TopicToAlter(Struct):
    """Partitions of one topic."""

    topic: String
    partitions: Sequence[NewOffset]


class AlterShareGroupOffsetsRequest(
    Request[AlterShareGroupOffsetsResponse], api=ApiKey.ALTER_SHARE_GROUP_OFFSETS, flexible=0
):
    """One group."""

    group_id: String
    topics: Sequence[TopicToAlter]

    def refused(self, code: ErrorCode, message: str) -> AlterShareGroupOffsetsResponse:
        """The code for the whole request, and no topics."""
        return AlterShareGroupOffsetsResponse(error=code, message=message)


class DeletedTopicOffsets(Struct):
    """The result for one topic."""

    topic: String
    topic_id: Uuid = ZERO_UUID
    error: Error = ErrorCode.NONE
    message: Message = None


class DeleteShareGroupOffsetsResponse(Struct, flexible=0):
    """The error of the whole request, or the results."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    topics: Sequence[DeletedTopicOffsets] = ()


class TopicToDelete(Struct):
    """One topic, whose offsets are deleted."""

    topic: String


class DeleteShareGroupOffsetsRequest(
    Request[DeleteShareGroupOffsetsResponse], api=ApiKey.DELETE_SHARE_GROUP_OFFSETS, flexible=0
):
    """One group."""

    group_id: String
    topics: Sequence[TopicToDelete]

    def refused(self, code: ErrorCode, message: str) -> DeleteShareGroupOffsetsResponse:
        """The code for the whole request, and no topics."""
        return DeleteShareGroupOffsetsResponse(error=code, message=message)

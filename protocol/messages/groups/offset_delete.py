"""OffsetDelete (key 47): delete a group's committed offsets in some partitions."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int32, String


class OffsetDeletePartitionResult(Struct):
    """NONE even if there was no offset, or the error."""

    partition: Int32
    error: Error = ErrorCode.NONE


class OffsetDeleteTopicResult(Struct):
    """One topic's results."""

    name: String
    partitions: Sequence[OffsetDeletePartitionResult]


class OffsetDeleteResponse(Struct, flexible=1):
    """In the order of the request; `error` is that of the request as a whole."""

    error: Error = ErrorCode.NONE
    throttle_ms: Int32 = 0
    topics: Sequence[OffsetDeleteTopicResult] = ()


class OffsetDeletePartition(Struct):
    """One partition."""

    partition: Int32


class OffsetDeleteTopic(Struct):
    """Partitions of one topic."""

    name: String
    partitions: Sequence[OffsetDeletePartition]


class OffsetDeleteRequest(Request[OffsetDeleteResponse], api=ApiKey.OFFSET_DELETE, flexible=1):
    """One group."""

    group_id: String
    topics: Sequence[OffsetDeleteTopic]

    def refused(self, code: ErrorCode, message: str) -> OffsetDeleteResponse:
        """The code, and no topics."""
        return OffsetDeleteResponse(error=code)

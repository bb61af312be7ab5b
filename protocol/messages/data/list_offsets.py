"""ListOffsets (key 2): the offset of a timestamp, or of one of the special timestamps below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int8, Int32, Int64, String

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP: Final = -6

REMOTE_TIMEOUT_MS: Final = 30_000
"""How long the broker may look into remote storage, as in Kafka's clients."""

_SPECIAL_FROM: Final = {
    LATEST_TIMESTAMP: 1,
    EARLIEST_TIMESTAMP: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
"""The special timestamps, and the version with which each came."""

_NEVER: Final = 1 << 15


class ListOffsetsPartitionResult(Struct):
    """`offset` and `timestamp` are -1 when no record is that late; `timestamp` is -1 for latest and earliest."""

    partition: Int32
    error: Error = ErrorCode.NONE
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Int32 = since(4, default=-1)


class ListOffsetsTopicResult(Struct):
    """One topic's results, in the order of the request."""

    name: String
    partitions: Sequence[ListOffsetsPartitionResult]


class ListOffsetsResponse(Struct, flexible=6):
    """Results in the order of the request."""

    throttle_ms: Int32 = since(2, default=0)
    topics: Sequence[ListOffsetsTopicResult]


class ListOffsetsPartition(Struct):
    """`timestamp`: find the first record at or after it, or one of the special timestamps above.

    `current_leader_epoch`: the leader epoch that the client knows, -1 for no check.
    """

    partition: Int32
    current_leader_epoch: Int32 = since(4, default=-1)
    timestamp: Int64


class ListOffsetsTopic(Struct):
    """One topic's partitions."""

    name: String
    partitions: Sequence[ListOffsetsPartition]


class ListOffsetsRequest(Request[ListOffsetsResponse], api=ApiKey.LIST_OFFSETS, flexible=6):
    """`isolation`: 0 answers `latest` with the high watermark, 1 with the last stable offset."""

    replica_id: Int32 = -1
    isolation: Int8 = since(2, default=0)
    topics: Sequence[ListOffsetsTopic]
    timeout_ms: Int32 = since(10, default=0)

    def knows(self, timestamp: int) -> bool:
        """Return whether a timestamp has a meaning in the request's version."""
        return timestamp >= 0 or self.version >= _SPECIAL_FROM.get(timestamp, _NEVER)

    def refused(self, code: ErrorCode, message: str) -> ListOffsetsResponse:
        """The code for every partition."""
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResult(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResult(partition=each.partition, error=code) for each in topic.partitions
                    ],
                )
                for topic in self.topics
            ]
        )

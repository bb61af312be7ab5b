"""OffsetForLeaderEpoch (key 23): the end offset of a leader epoch, by which consumers detect log truncation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int32, Int64, String

CONSUMER_REPLICA_ID: Final = -1


class EpochPartitionResult(Struct):
    """The largest known epoch not above the requested one, and its end offset; -1 when unknown."""

    error: Error = ErrorCode.NONE
    partition: Int32
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class EpochTopicResult(Struct):
    """One topic's results, in the order of the request."""

    name: String
    partitions: Sequence[EpochPartitionResult]


class OffsetForLeaderEpochResponse(Struct, flexible=4):
    """Results in the order of the request."""

    throttle_ms: Int32 = 0
    topics: Sequence[EpochTopicResult]


class EpochPartition(Struct):
    """`leader_epoch`: the requested epoch; `current_leader_epoch`: the one the client knows, -1 for no check."""

    partition: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32


class EpochTopic(Struct):
    """One topic's partitions."""

    name: String
    partitions: Sequence[EpochPartition]


class OffsetForLeaderEpochRequest(
    Request[OffsetForLeaderEpochResponse], api=ApiKey.OFFSET_FOR_LEADER_EPOCH, flexible=4
):
    """Partitions of several topics. `replica_id`: -2 is nobody's, for tools."""

    replica_id: Int32 = since(3, default=-2)
    topics: Sequence[EpochTopic]

    def refused(self, code: ErrorCode, message: str) -> OffsetForLeaderEpochResponse:
        """The code for every partition."""
        return OffsetForLeaderEpochResponse(
            topics=[
                EpochTopicResult(
                    name=topic.name,
                    partitions=[
                        EpochPartitionResult(partition=each.partition, error=code) for each in topic.partitions
                    ],
                )
                for topic in self.topics
            ]
        )

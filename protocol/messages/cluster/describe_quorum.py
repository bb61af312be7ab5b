"""DescribeQuorum (key 55): the voters of a Raft log, its leader, and each voter's progress."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.uuids import ZERO_UUID
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int32, Int64, Message, String, UInt16, Uuid


class QuorumReplica(Struct):
    """A voter. Times in ms, by the leader's clock; an unknown directory has a zero id."""

    node_id: Int32
    directory_id: Uuid = since(2, default=ZERO_UUID)
    log_end_offset: Int64
    last_fetch_timestamp: Int64 = since(1, default=-1)
    last_caught_up_timestamp: Int64 = since(1, default=-1)


class DescribeQuorumPartitionResult(Struct):
    """One log. With an error the numbers are 0, as in Kafka."""

    partition: Int32
    error: Error = ErrorCode.NONE
    message: Message = since(2, default="")
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    high_watermark: Int64 = 0
    voters: Sequence[QuorumReplica] = ()
    observers: Sequence[QuorumReplica] = ()


class DescribeQuorumTopicResult(Struct):
    """Results of one topic."""

    name: String
    partitions: Sequence[DescribeQuorumPartitionResult]


class QuorumListener(Struct):
    """An address of a voter."""

    name: String
    host: String
    port: UInt16


class QuorumNode(Struct):
    """A voter's listeners."""

    node_id: Int32
    listeners: Sequence[QuorumListener]


class DescribeQuorumResponse(Struct, flexible=0):
    """In the order of the request; `nodes` are those of the voters."""

    error: Error = ErrorCode.NONE
    message: Message = since(2, default="")
    topics: Sequence[DescribeQuorumTopicResult] = ()
    nodes: Sequence[QuorumNode] = since(2, default=())


class DescribeQuorumPartition(Struct):
    """A partition."""

    partition: Int32


class DescribeQuorumTopic(Struct):
    """Partitions of one topic."""

    name: String
    partitions: Sequence[DescribeQuorumPartition]


class DescribeQuorumRequest(Request[DescribeQuorumResponse], api=ApiKey.DESCRIBE_QUORUM, flexible=0):
    """The logs to describe."""

    topics: Sequence[DescribeQuorumTopic]

    def refused(self, code: ErrorCode, message: str) -> DescribeQuorumResponse:
        """The code for the whole request, and no rows."""
        return DescribeQuorumResponse(error=code, message=message)

"""ElectLeaders (key 43): elect the first replica of partitions as leader, or (unclean) any live one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int8, Int32, Message, Nullable, String

PREFERRED = 0
UNCLEAN = 1


class ElectLeadersPartitionResult(Struct):
    """One partition's result."""

    partition: Int32
    error: Error
    message: Message = None


class ElectLeadersTopicResult(Struct):
    """Results of one topic."""

    name: String
    partitions: Sequence[ElectLeadersPartitionResult] = ()


class ElectLeadersResponse(Struct, flexible=2):
    """In the order of the request; `error` is that of the whole request."""

    throttle_ms: Int32 = 0
    error: Error = since(1, default=ErrorCode.NONE)
    topics: Sequence[ElectLeadersTopicResult]


class ElectLeadersTopic(Struct):
    """Partitions of one topic."""

    name: String
    partitions: Sequence[Int32]


class ElectLeadersRequest(Request[ElectLeadersResponse], api=ApiKey.ELECT_LEADERS, flexible=2):
    """`topics` None: all partitions."""

    election_type: Int8 = since(1, default=PREFERRED)
    topics: Annotated[Sequence[ElectLeadersTopic] | None, Nullable()]
    timeout_ms: Int32 = 60_000

    def refused(self, code: ErrorCode, message: str) -> ElectLeadersResponse:
        """The code for the whole request, and for every partition that it names."""
        topics = [
            ElectLeadersTopicResult(
                name=topic.name,
                partitions=[
                    ElectLeadersPartitionResult(partition=each, error=code, message=message)
                    for each in topic.partitions
                ],
            )
            for topic in self.topics or ()
        ]
        return ElectLeadersResponse(error=code, topics=topics)

"""ConsumerGroupHeartbeat (key 68): a member of a consumer group joins, stays, reports its partitions, and leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int32, Message, Nullable, NullableString, String, Uuid

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2
"""Sent by a static member that leaves and will come back."""

UNCHANGED_TIMEOUT: Final = -1


class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: tuple[Int32, ...]


class Assignment(Struct):
    """Partitions of a member."""

    topics: Sequence[TopicPartitions]


class ConsumerGroupHeartbeatResponse(Struct, flexible=0):
    """`assignment`: the partitions that the member may use from now on; None: unchanged."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    member_id: NullableString = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Annotated[Assignment | None, Nullable()] = None


class ConsumerGroupHeartbeatRequest(
    Request[ConsumerGroupHeartbeatResponse], api=ApiKey.CONSUMER_GROUP_HEARTBEAT, flexible=0
):
    """None, and -1 as `rebalance_timeout_ms`, mean unchanged. `topics`: the member's present partitions."""

    group_id: String
    member_id: String
    member_epoch: Int32
    instance_id: NullableString = None
    rack_id: NullableString = None
    rebalance_timeout_ms: Int32 = UNCHANGED_TIMEOUT
    topic_names: Annotated[Sequence[String] | None, Nullable()] = None
    topic_regex: NullableString = since(1, default=None)
    assignor: NullableString = None
    topics: Annotated[Sequence[TopicPartitions] | None, Nullable()] = None

    @property
    def owned(self) -> Mapping[bytes, Sequence[int]] | None:
        """The member's present partitions by topic id."""
        return None if self.topics is None else {each.topic_id: each.partitions for each in self.topics}

    @property
    def requires_member_id(self) -> bool:
        """Whether clients create their id themselves."""
        return self.version >= 1

    def refused(self, code: ErrorCode, message: str) -> ConsumerGroupHeartbeatResponse:
        """The refusal."""
        return ConsumerGroupHeartbeatResponse(error=code, message=message)

"""StreamsGroupHeartbeat (key 88): a member of a streams group joins, stays, reports its tasks, and leaves."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.streams_topology import (
    Endpoint,
    KeyValue,
    TaskIds,
    TaskOffset,
    Tasks,
    Topology,
    tasks_of,
)
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Int8, Int32, Message, Nullable, NullableString, String

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2

UNCHANGED_TIMEOUT: Final = -1


class StatusCode(IntEnum):
    """What a member is told about its group beside its tasks."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class GroupStatus(Struct):
    """A status with its explanation for people."""

    code: Int8
    detail: String


class TopicPartitions(Struct):
    """Partitions of a topic."""

    topic: String
    partitions: Sequence[Int32]


class EndpointPartitions(Struct):
    """The partitions whose state a member's active and standby tasks have."""

    endpoint: Endpoint
    active: Sequence[TopicPartitions]
    standby: Sequence[TopicPartitions]


class StreamsGroupHeartbeatResponse(Struct, flexible=0):
    """The three kinds of tasks are those that the member may run from now on; None: unchanged."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    member_id: String = ""
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    acceptable_recovery_lag: Int32 = 0
    task_offset_interval_ms: Int32 = 0
    status: Annotated[Sequence[GroupStatus] | None, Nullable()] = ()
    active_tasks: Annotated[Sequence[TaskIds] | None, Nullable()] = None
    standby_tasks: Annotated[Sequence[TaskIds] | None, Nullable()] = None
    warmup_tasks: Annotated[Sequence[TaskIds] | None, Nullable()] = None
    endpoint_epoch: Int32 = 0
    endpoints: Annotated[Sequence[EndpointPartitions] | None, Nullable()] = None


class StreamsGroupHeartbeatRequest(
    Request[StreamsGroupHeartbeatResponse], api=ApiKey.STREAMS_GROUP_HEARTBEAT, flexible=0
):
    """None, and -1 as `rebalance_timeout_ms`, mean unchanged."""

    group_id: String
    member_id: String
    member_epoch: Int32
    endpoint_epoch: Int32 = 0
    instance_id: NullableString = None
    rack_id: NullableString = None
    rebalance_timeout_ms: Int32 = UNCHANGED_TIMEOUT
    topology: Annotated[Topology | None, Nullable()] = None
    active_task_ids: Annotated[Sequence[TaskIds] | None, Nullable()] = None
    standby_task_ids: Annotated[Sequence[TaskIds] | None, Nullable()] = None
    warmup_task_ids: Annotated[Sequence[TaskIds] | None, Nullable()] = None
    process_id: NullableString = None
    user_endpoint: Annotated[Endpoint | None, Nullable()] = None
    client_tags: Annotated[tuple[KeyValue, ...] | None, Nullable()] = None
    task_offsets: Annotated[Sequence[TaskOffset] | None, Nullable()] = None
    task_end_offsets: Annotated[Sequence[TaskOffset] | None, Nullable()] = None
    shutdown_application: Bool = False

    @property
    def active_tasks(self) -> Tasks | None:
        """The tasks that the member runs."""
        return None if self.active_task_ids is None else tasks_of(self.active_task_ids)

    @property
    def standby_tasks(self) -> Tasks | None:
        """The tasks of which the member keeps a copy."""
        return None if self.standby_task_ids is None else tasks_of(self.standby_task_ids)

    @property
    def warmup_tasks(self) -> Tasks | None:
        """The tasks whose state the member restores."""
        return None if self.warmup_task_ids is None else tasks_of(self.warmup_task_ids)

    def refused(self, code: ErrorCode, message: str) -> StreamsGroupHeartbeatResponse:
        """The code and the message."""
        return StreamsGroupHeartbeatResponse(error=code, message=message)
